// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What the agent shows of itself and of the jobs: the state that HTTP threads read.
#include <algorithm>
#include <charconv>
#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "exporter/daemon/agent.h"
#include "exporter/notify/left_messages.h"
#include "exporter/run/clock.h"
#include "exporter/version.h"

namespace rankscope::exporter {
namespace {

// How long an HTTP thread may wait for the loop: less than the daemon has to end in.
constexpr Duration kExplainTimeout = Milliseconds(500);
// A restart after that is none that somebody waits for; whoever asks for messages the first time
// does not want those of the whole day.
constexpr int64_t kUntoldNs = int64_t{600} * 1'000'000'000;

// Nothing where the text is no number, or more than one.
std::optional<int32_t> CountIn(std::string_view text) {
  int32_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole && count > 0 ? std::optional(count) : std::nullopt;
}

}  // namespace

void Agent::CheckTrouble() {
  const std::string& refused =
      verdicts_.files().waiting() > 0 ? verdicts_.files().trouble() : std::string();
  if (refused != document_trouble_) {
    document_trouble_ = refused;
    if (refused.empty()) {
      log_.Info("all verdicts are written to disk again");
    } else {
      log_.Warn(
          "verdicts cannot be written to disk and are kept in memory; free space in state.dir",
          {{"reason", refused}});
    }
  }
  const std::string trouble = recordings_.trouble();
  if (trouble == trouble_) return;
  trouble_ = trouble;
  if (trouble.empty()) {
    log_.Info("recording works again");
  } else {
    log_.Warn("recordings cannot be written; verdicts and metrics are still served",
              {{"reason", trouble}});
  }
}

void Agent::StartNotifier(NotifyConfig config) {
  notifier_ = std::make_unique<Notifier>(
      loop_, log_, std::move(config),
      Notifier::Place{config_.state.dir + "/notify", node_, notify::kSharedFolder}, users_);
  const Status opened = notifier_->Open(run::WallNowNs(), config_.state.keep);
  if (!opened.ok()) log_.Warn("notifications cannot be kept", {{"reason", opened.error()}});
  // Whose verdict was on the disk, and whose message was not, when the daemon was killed.
  const int64_t now = run::WallNowNs();
  for (const std::shared_ptr<const JobStatus>& job : verdicts_.Jobs()) {
    if (job->verdict.updated_ns() + kUntoldNs < now) continue;
    notifier_->Judged(*job, ReadJobSummary(summaries_.Find(job->job_id)), now);
    notifier_->Kept(job->job_id);
  }
}

// Once attribution knows whose it is.
void Agent::NoteAsked(const ProcessStart& start) {
  if (!notifier_) return;
  for (const KeyValue& entry : start.env) {
    const bool wish = entry.key == "RANKSCOPE_NOTIFY";
    if (!wish && entry.key != "SLURM_ARRAY_TASK_COUNT") continue;
    const attribution::ProcessInfo* process = recordings_.Find(start.key);
    if (process == nullptr || process->job_id.empty()) continue;
    if (wish) {
      notifier_->Wished(process->job_id, process->uid, entry.value);
    } else if (const auto tasks = CountIn(entry.value)) {
      notifier_->Sized(process->job_id, *tasks);
    }
  }
}

void Agent::CheckMemory() {
  jobs_measured_ = engine_.jobs();
  const auto most = static_cast<size_t>(config_.state.max_jobs);
  const size_t allowed = memory_.JobsAllowed(engine_.jobs(), most);
  engine_.SetMaxJobs(static_cast<int32_t>(allowed), "memory is short: " + memory_.Words());
  const bool is_short = allowed < most;
  if (is_short == std::exchange(memory_short_, is_short)) return;
  log_.Warn(is_short ? "memory limit nearly reached: fewer jobs are watched; raise state.memory or "
                       "the limit of the daemon's cgroup"
                     : "memory is sufficient again: up to state.max_jobs jobs are watched",
            {{"limit", std::to_string(memory_.limit())},
             {"used", std::to_string(memory_.used())},
             {"jobs", std::to_string(allowed)}});
}

std::shared_ptr<JobStatus> Agent::NoteRecording(const JobStatus& job) const {
  const bool exact = recordings_.Exact(job.job_id);
  if (exact && trouble_.empty()) return nullptr;
  auto noted = std::make_shared<JobStatus>(job);
  proto::DataQuality& quality = *noted->verdict.mutable_data_quality();
  if (!exact) {
    quality.set_exact(false);
    quality.add_notes("the recording is incomplete: observations are missing from it");
  }
  if (!trouble_.empty()) quality.add_notes("not recorded: " + trouble_);
  return noted;
}

// Once: jobs come and go, and rankscope_series_missing says what is missing now.
void Agent::NoteSeries(const metrics::Snapshot& snapshot) {
  if (snapshot.left_out == 0 || std::exchange(series_noted_, true)) return;
  log_.Warn(
      "/metrics leaves series out, which rankscope_series_missing names; raise metrics.max_series",
      {{"series", std::to_string(snapshot.left_out)},
       {"shown", std::to_string(snapshot.SeriesCount())}});
}

void Agent::Publish(Timestamp now, double tick_seconds) {
  auto published = std::make_shared<metrics::Published>();
  published->tick = now;
  published->wall_seconds = static_cast<double>(now.ns + wall_offset_ns_) * 1e-9;
  metrics::AgentStatus& agent = published->agent;
  agent.version = kVersionText;
  agent.node = node_;
  agent.start_wall_seconds = start_wall_seconds_;
  agent.config = config_read_;
  agent.ready = ready_;
  if (!ready_) agent.not_ready_reason = "starting: the recordings of running jobs are being read";
  agent.sources = sources_.Status(wall_offset_ns_);
  agent.engine = engine_.counters();
  agent.max_jobs = static_cast<int64_t>(engine_.max_jobs());
  agent.memory_limit_bytes = memory_.limit();
  agent.memory_used_bytes = memory_.used();
  agent.recorder_bytes = recordings_.bytes();
  agent.recorder_lost = recordings_.lost();
  agent.recorder_write_errors =
      recordings_.errors() + verdicts_.files().errors() + summaries_.files().errors();
  agent.documents_waiting =
      static_cast<int64_t>(verdicts_.files().waiting() + summaries_.files().waiting());
  agent.documents_damaged = verdicts_.damaged() + summaries_.damaged();
  const Duration behind = std::max(recording_disk_.behind(), documents_disk_.behind());
  agent.disk_behind_seconds = static_cast<double>(behind.ns) * 1e-9;
  if (listener_ != nullptr) {
    agent.http = listener_->Counts();
    agent.web_config = listener_->WebReading();
  }
  if (notifier_ != nullptr) agent.notify = notifier_->status();
  agent.tick_seconds = tick_seconds;

  PublishedJobs::Notes notes;
  notes.on_running = [this](const JobStatus& job) { return NoteRecording(job); };
  notes.is_unkept = [this](const std::string& id) { return verdicts_.files().IsWaiting(id); };
  notes.why_unkept = document_trouble_;
  published->jobs = published_jobs_.All(statuses_, verdicts_.Jobs(), notes);
  published->summaries = summaries_.all();
  std::shared_ptr<const metrics::Snapshot> snapshot = snapshots_.Build(*published);
  NoteSeries(*snapshot);
  auto exposition = std::make_shared<const http::Exposition>(std::move(snapshot));
  state_.Publish(std::make_shared<const http::State>(std::move(published), std::move(exposition),
                                                     state_.Current().get()));
}

void Agent::SetAccess(http::ListenerOptions& options) {
  options.web_config = config_.web.config_file;
  options.plain_loopback = config_.web.plain_loopback;
  for (const std::string& text : config_.web.roles) {
    if (const auto row = http::ParseRole(text)) options.roles.push_back(*row);
  }
  options.on_web_config = [this](const Status& reading) {
    if (reading) return log_.Info("web.config_file and its certificates were read again");
    log_.Warn("web.config_file or a certificate is broken: what was read before stays in force",
              {{"reason", reading.error()}});
  };
  if (!options.web_config.empty()) return;
  for (const std::string& address : BeyondLoopback(config_)) {
    log_.Warn(
        "other hosts can reach this address of web.listen without authentication: text of logs is "
        "not served there; name users or certificates in a web.config_file",
        {{"address", address}});
  }
}

std::optional<std::string> Agent::OnLoop(std::function<std::string()> ask, Duration deadline) {
  const auto answer = std::make_shared<std::promise<std::string>>();
  auto future = answer->get_future();
  loop_.Post([ask = std::move(ask), answer] { answer->set_value(ask()); });
  const Duration timeout = std::min(deadline, kExplainTimeout);
  if (future.wait_for(std::chrono::nanoseconds(timeout.ns)) != std::future_status::ready)
    return std::nullopt;
  return future.get();
}

std::optional<std::string> Agent::Explain(int32_t pid, Duration deadline) {
  return OnLoop([this, pid] { return engine_.Explain(pid); }, deadline);
}

}  // namespace rankscope::exporter
