// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/engine/engine.h"

#include <algorithm>
#include <utility>

#include "detectors/engine/engine_impl.h"
#include "detectors/engine/summarize_job.h"
#include "detectors/model/archive.h"

namespace rankscope::engine {
namespace {

// Python writes a chained traceback in one go; after this much silence what was said is complete.
constexpr Duration kTextPause = Seconds(2);

// Most of what is told of an ended job comes within this; then its state is packed up, and unpacked
// for what comes later.
constexpr Duration kRest = Seconds(30);

}  // namespace

Engine::Engine(Config config, std::string node)
    : impl_(std::make_unique<Impl>(config, std::move(node))) {}

Engine::~Engine() = default;

void Engine::Accept(const Observation& observation) {
  ++impl_->counters.observations;
  if (!Plausible(observation.t.ns)) {
    ++impl_->counters.malformed;
    return;
  }
  impl_->NoteLate(observation);
  std::visit([&](const auto& kind) { impl_->On(kind, observation); }, observation.kind);
}

Output Engine::Tick(Timestamp now) {
  Output output;
  if (!Plausible(now.ns)) return output;
  impl_->NoteMissedTicks(now);
  impl_->table.Tick(now, impl_->wall_offset_ns);
  for (auto it = impl_->jobs.begin(); it != impl_->jobs.end();) {
    Job& job = it->second;
    const bool final_before = job.judge.is_final();
    // A traceback waits for the rest of its chain; after a pause, or when another attempt has
    // begun, there is none.
    if (job.open_text &&
        (now - job.window.last_text() >= kTextPause || job.window.attempt_ended())) {
      impl_->FlushReaders(job, now);
      job.dirty = true;
    }
    // A running job is judged at each tick, for silence is an observation too; a final one only by
    // an authoritative record.
    const bool renewed = job.dirty || !final_before;
    if (renewed) {
      const JudgeContext context{&impl_->config,
                                 impl_->node,
                                 impl_->wall_offset_ns,
                                 impl_->clock_uncertainty_s,
                                 StoresOf(job, impl_->sources),
                                 &impl_->sources,
                                 job.record,
                                 SchedulerMayTell(job, impl_->sources),
                                 job.scheduler.told_attempt == job.window.attempt().ordinal
                                     ? job.scheduler.told_end
                                     : Timestamp{},
                                 job.AwaitsOutput(),
                                 job.output.unread,
                                 job.output.closed};
      const bool judged = !final_before || !job.record.empty();
      job.window.SetKernelLog(&impl_->kernel_log);
      if (judged && job.judge.Evaluate(job.window, context, now))
        output.changed.push_back(it->first);
      job.judged = now;
      job.why_fewer = final_before ? std::string() : impl_->table.why_fewer();
      output.renewed.push_back(it->first);
      job.dirty = false;
      job.record.clear();
      const bool live = job.judge.verdict().state() == proto::LIVE;
      // A training that was well may be followed by a step that was not.
      const std::string& how = job.judge.verdict().disposition().kind();
      const bool well = how.empty() || how == "completed" || how == "unknown";
      const bool badly = !live && (job.judge.verdict().code() != "G1" || !well);
      job.scheduler.Ask(it->first, job.window.attempt().ordinal, live, badly, now, output.requests);
      if (!job.judge.is_final()) job.scheduler.AskParents(job.window, now, output.requests);
    }
    if (job.judge.is_final() && now - job.judge.final_since() >= impl_->config.forget_after_end) {
      output.ended.push_back(it->first);
      it = impl_->table.Erase(it);
    } else if (job.judge.is_final() && !renewed && now - job.judge.final_since() >= kRest) {
      it = impl_->table.Rest(it);
    } else {
      ++it;
    }
  }
  impl_->table.ForgetResting(now - impl_->config.forget_after_end);
  output.shed = impl_->table.TakeShed();
  for (std::string& id : impl_->table.TakeWritten()) output.renewed.push_back(std::move(id));
  for (std::string& id : impl_->table.TakeEnded()) output.ended.push_back(std::move(id));
  return output;
}

std::vector<JobView> Engine::Jobs() const {
  std::vector<JobView> all;
  all.reserve(CountJobs());
  for (const auto& [id, job] : impl_->jobs) {
    if (job.judge.has_judged()) all.push_back(impl_->View(job));
  }
  impl_->table.ForEachStored([&all](const JobView& view) { all.push_back(view); });
  std::sort(all.begin(), all.end(),
            [](const JobView& a, const JobView& b) { return a.job_id < b.job_id; });
  return all;
}

size_t Engine::CountJobs() const {
  return impl_->jobs.size() + impl_->table.CountStored();
}

bool Engine::Watches(std::string_view job_id) const {
  return impl_->FindJob(job_id) != nullptr || impl_->table.Rests(job_id);
}

void Engine::SetMaxJobs(int32_t most, std::string why) {
  impl_->table.SetMost(most, std::move(why));
}

int32_t Engine::max_jobs() const {
  return impl_->table.most();
}

size_t Engine::jobs() const {
  return impl_->jobs.size();
}

std::optional<JobView> Engine::Find(std::string_view job_id) const {
  const Job* job = impl_->FindJob(job_id);
  if (job == nullptr) return impl_->table.FindStored(job_id);
  if (!job->judge.has_judged()) return std::nullopt;
  return impl_->View(*job);
}

std::optional<JobSummary> Engine::Summarize(std::string_view job_id, Timestamp now) const {
  const Job* job = impl_->FindJob(job_id);
  if (job == nullptr) return std::nullopt;
  return SummarizeJob(job->window, job->judge.verdict(), impl_->wall_offset_ns, now);
}

std::string Engine::Explain(int32_t pid) const {
  const attribution::ProcessInfo* process = impl_->processes.FindPid(pid);
  return process == nullptr ? "" : ExplainProcess(*process, impl_->FindJob(process->job_id));
}

Engine::Counters Engine::counters() const {
  Counters counters = impl_->counters;
  counters.jobs_dropped = impl_->table.dropped();
  return counters;
}

// Stands first in a saved state, whose bytes have no tags: those of a build that saves other
// members must not be read. Raised with each change to what is saved.
constexpr uint64_t kStateVersion = 0x6b73'7261'6e6b'0019;

std::string Engine::Save() const {
  ArchiveWriter archive;
  archive(kStateVersion);
  const std::vector<std::pair<std::string, std::string>> jobs = impl_->table.SaveAll();
  archive(impl_->processes, impl_->sources, impl_->boot_id, impl_->wall_offset_ns,
          impl_->clock_uncertainty_s, impl_->last_tick, impl_->kernel_log,
          static_cast<uint64_t>(jobs.size()));
  for (const auto& [id, bytes] : jobs) archive(id, bytes);
  return archive.TakeSealed();
}

bool Engine::Restore(std::string_view bytes) {
  const std::optional<std::string_view> content = ArchiveReader::Unseal(bytes);
  if (!content) return false;
  auto next = std::make_unique<Impl>(impl_->config, impl_->node);
  next->counters = impl_->counters;
  next->table.set_dropped(impl_->table.dropped());
  ArchiveReader archive(*content);
  uint64_t version = 0;
  archive(version);
  if (version != kStateVersion) return false;
  uint64_t jobs = 0;
  archive(next->processes, next->sources, next->boot_id, next->wall_offset_ns,
          next->clock_uncertainty_s, next->last_tick, next->kernel_log, jobs);
  for (uint64_t i = 0; i < jobs && archive.ok(); ++i) {
    std::string id, job;
    archive(id, job);
    if (!archive.ok() || !LoadJob(job, next->jobs[id])) return false;
  }
  if (!archive.Complete()) return false;
  // What the sources of this process have said goes before what was stored.
  windows::KernelLogSpans kernel_log = next->kernel_log;
  if (!impl_->sources.empty()) kernel_log.GoOn(impl_->kernel_log, next->last_tick);
  for (const SourceState& state : impl_->sources) next->On(state, {});
  next->kernel_log = std::move(kernel_log);
  impl_ = std::move(next);
  return true;
}

}  // namespace rankscope::engine
