// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/daemon/agent.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "detectors/attribution/cgroup_path.h"
#include "detectors/document/verdict_json.h"
#include "exporter/daemon/dcgm_names.h"
#include "exporter/daemon/reload.h"
#include "exporter/daemon/site_targets.h"
#include "exporter/daemon/sources.h"
#include "exporter/loop/start_thread.h"
#include "exporter/output/heard_files.h"
#include "exporter/probes/attach/tracked_map.h"
#include "exporter/processes/process_table.h"
#include "exporter/run/clock.h"
#include "exporter/run/process_facts.h"
#include "exporter/run/run_listener.h"
#include "exporter/version.h"

namespace rankscope::exporter {
namespace {

constexpr Duration kTick = Seconds(1);
// From an abnormal end, or an error of a GPU, to its judgement: what the kernel says of a kill
// follows it by some milliseconds, and of many ends at once one judgement is enough.
constexpr Duration kJudgeDelay = Milliseconds(150);
// House-keeping of files, in ticks: expired verdicts, the node's budget.
constexpr int64_t kHouseKeepingTicks = 60;
// Of a restored job: as long as the engine gives.
constexpr Duration kParentPatience = Seconds(100);
// Where no cgroup limits it: some ten times what 256 jobs of 8 ranks take.
constexpr int64_t kMostMemory = int64_t{2} << 30;
// Jobs that may begin before memory is looked at again within a tick.
constexpr size_t kJobsUnmeasured = 8;

recording::Header RecordingHeader(const std::string& node, const std::string& boot_id) {
  recording::Header header;
  header.tool_version = kVersionText;
  header.node = node;
  header.boot_id = boot_id;
  return header;
}

metrics::SnapshotOptions SnapshotOptionsOf(const Config& config, Logger& log) {
  metrics::SnapshotOptions options;
  options.profile =
      config.metrics.profile == "full" ? metrics::Profile::kFull : metrics::Profile::kDefault;
  const DcgmNames names = DecideDcgmNames(config);
  log.Info(names.shown ? "GPU metrics have dcgm-exporter's names as well"
                       : "GPU metrics have no dcgm-exporter's names",
           {{"reason", names.reason}});
  options.dcgm_names = names.shown;
  options.dcgm_names_yield = names.yields;
  options.max_series = static_cast<int32_t>(config.metrics.max_series);
  return options;
}

}  // namespace

engine::Config Agent::EngineConfig(const Config& config) {
  engine::Config engine;
  engine.hang_floor = config.families.hang_floor;
  engine.rendezvous_suspect = config.families.rendezvous_suspect;
  engine.rendezvous_fire = config.families.rendezvous_fire;
  engine.max_jobs = static_cast<int32_t>(config.state.max_jobs);
  return engine;
}

Agent::Agent(Config config, EventLoop& loop, Logger& log, LoadConfig load)
    : config_(std::move(config)),
      load_(std::move(load)),
      loop_(loop),
      log_(log),
      node_(config_.node.name.empty() ? run::ReadHostName() : config_.node.name),
      boot_id_(run::ReadBootId()),
      engine_(EngineConfig(config_), node_),
      statuses_([users = users_](int64_t uid) { return users->Known(uid); }),
      memory_({config_.state.memory, kMostMemory}),
      recording_disk_(loop),
      documents_disk_(loop),
      verdicts_(loop, documents_disk_,
                [this](const std::string& job_id) {
                  recordings_.MarkFinished(job_id);
                  if (notifier_) notifier_->Kept(job_id);
                }),
      summaries_(loop, documents_disk_),
      recordings_({config_.state.dir, config_.state.job_bytes, config_.state.total_bytes,
                   RecordingHeader(node_, boot_id_),
                   [this](const std::string& job_id) { return engine_.Watches(job_id); }},
                  log, recording_disk_, documents_disk_),
      processes_(std::make_shared<collectors::ProcessTable>()),
      tracked_(std::make_shared<probes::TrackedMap>(processes_)),
      files_heard_(std::make_shared<collectors::HeardFiles>()),
      waiting_room_([this](const ProcessKey& key) { return recordings_.Knows(key); },
                    [this](const Observation& observation) { Record(observation); }),
      sources_(loop, log, node_, [this](const Observation& observation) { Pass(observation); }),
      snapshots_(SnapshotOptionsOf(config_, log)) {}

Agent::~Agent() {
  Stop();
}

Observation Agent::OfAgent(decltype(Observation::kind) kind) {
  Observation observation;
  observation.t = loop_.Now();
  observation.seq = ++seq_;
  observation.source = kAgentSource;
  observation.node = node_;
  observation.kind = std::move(kind);
  return observation;
}

Status Agent::Start() {
  const Epoch epoch = run::ReadEpoch();
  wall_offset_ns_ = epoch.wall_offset_ns;
  start_wall_seconds_ = static_cast<double>(run::WallNowNs()) * 1e-9;
  config_read_.good_wall_seconds = start_wall_seconds_;  // read right before

  // The address first: when it is taken, nothing else may have been touched.
  http::ListenerOptions options;
  options.addresses = config_.web.listen;
  options.max_requests = static_cast<int>(config_.web.max_requests);
  SetAccess(options);
  http::RouterOptions router;
  router.explain = [this](int32_t pid, Duration deadline) { return Explain(pid, deadline); };
  router.now = run::MonotonicNow;
  router.names = {run::ReadHostName(), config_.web.hosts};
  router.names.hosts.push_back(node_);
  router.open_paths = config_.web.open_paths;
  router.config = [this](Duration deadline) {
    return OnLoop([this] { return WithoutSecrets(PrintConfig(config_)); }, deadline);
  };
  if (config_.web.enable_lifecycle)
    router.reload = [this](Duration deadline) { return ReloadFrom(deadline); };
  Publish(loop_.Now(), 0);
  auto listener = http::Listener::Start(
      options, [this] { return state_.Current(); }, http::Router(std::move(router)));
  if (!listener) return Error{listener.error()};
  listener_ = std::move(*listener);
  if (!listener_->trouble().empty())
    log_.Warn("HTTP listener works with a restriction", {{"reason", listener_->trouble()}});

  // Broken or foreign state costs memory of the past, not the present.
  const Status recordings = recordings_.Open();
  const Status verdicts = recordings.ok() ? verdicts_.Open(config_.state.dir + "/verdicts",
                                                           run::WallNowNs(), config_.state.keep)
                                          : recordings;
  if (recordings.ok() && !verdicts.ok())
    log_.Warn("stored verdicts were not all read", {{"reason", verdicts.error()}});
  const Status summaries =
      recordings.ok() ? summaries_.Open(config_.state.dir + "/summaries") : recordings;
  if (recordings.ok() && !summaries.ok())
    log_.Warn("stored job summaries were not all read", {{"reason", summaries.error()}});
  CheckTrouble();
  // Without channels there is nobody to tell.
  if (!config_.notify.file.empty()) {
    NotifyOutcome notify = LoadNotifyConfig(config_.notify.file);
    if (!notify.problems.empty()) return Error{notify.problems.front()};
    StartNotifier(std::move(notify.config));
  }
  users_->OnName([this](int64_t uid) { loop_.Post([this, uid] { statuses_.Named(uid); }); });

  engine_.Accept(OfAgent(epoch));
  recordings_.SetPreamble({OfAgent(epoch)});
  Restore();
  StartSources();
  std::vector<Observation> preamble = sources_.States();
  preamble.insert(preamble.begin(), OfAgent(epoch));
  recordings_.SetPreamble(std::move(preamble));

  // What its comment says of those that an earlier daemon has watched is in no recording.
  statuses_.ForEach([this](const std::shared_ptr<const JobStatus>& job) {
    if (notifier_ && job->running) slurm_questions_->Ask({job->job_id, false, {}, false, true});
  });
  ready_ = true;
  for (engine::Request request : std::exchange(parents_asked_, {})) {
    request.deadline = loop_.Now() + kParentPatience;
    FindParent(request);
  }
  tick_timer_ = loop_.Every(kTick, [this] { OnTick(); });
  Publish(loop_.Now(), 0);
  return {};
}

void Agent::StartSources() {
  SourceContext context{config_, processes_, tracked_, {}, {}, {}, {}, slurm_questions_};
  context.streams_heard = streams_heard_;
  context.files_heard = files_heard_;
  context.wall_offset_ns = wall_offset_ns_;
  context.before_judging = [this](std::function<void()> tell) {
    before_judging_.push_back(std::move(tell));
  };
  context.on_summary = [this](const JobSummary& summary) { Keep(summary); };
  context.who = [this](const ProcessKey& key) { return recordings_.Find(key); };
  context.on_wrapper_end = [this](const std::string& job_id) {
    Judge();
    const std::shared_ptr<const JobStatus> job = statuses_.Find(job_id);
    if (job != nullptr && job->verdict.state() != proto::LIVE) Answer(*job);
    Publish(loop_.Now(), 0);
  };
  context.resume_after = [this](const std::string& job_id, int slot) {
    awaited_.erase(job_id);
    return recordings_.TakeWrapperSeq(job_id, slot);
  };
  context.owner_of = [this](const std::string& job_id) { return OwnerOf(job_id); };
  context.knows_job = [this](const std::string& job_id) {
    return engine_.Find(job_id) || verdicts_.Contains(job_id);
  };
  context.ask_owner = [this](const std::string& job_id) {
    if (slurm_questions_->tells_owners()) slurm_questions_->Ask({job_id, false, {}, true});
    return slurm_questions_->tells_owners();
  };
  context.on_wish = [this](const std::string& job_id, std::string wish) {
    if (notifier_) notifier_->WishedInComment(job_id, std::move(wish));
  };
  context.on_owner = [this](const std::string& job_id, std::optional<uint32_t> uid) {
    if (wrappers_ != nullptr) wrappers_->OwnerTold(job_id, uid);
  };
  uint32_t number = 0;
  for (const SourceRow& row : SourceTable()) {
    const SourceSettings* settings = config_.FindSource(row.name);
    const bool forbidden = row.in_kernel && config_.ebpf.mode == "off";
    const bool enabled = (settings == nullptr || settings->enabled) && !forbidden;
    std::unique_ptr<Source> source = enabled ? row.make(context) : nullptr;
    if (number == kRunSource) wrappers_ = static_cast<run::RunListener*>(source.get());
    sources_.Add(number, std::string(row.name), settings ? settings->interval : Duration{},
                 std::move(source),
                 forbidden ? "switched off: ebpf.mode is off"
                           : "switched off: sources." + std::string(row.name) + ".enabled is false",
                 std::string(row.superseded_by));
    ++number;
  }
  for (const auto& [job_id, uid] : std::exchange(holders_, {})) {
    if (wrappers_ != nullptr) wrappers_->Hold(job_id, uid);
  }
  sources_.Start();
}

// Root's processes stand in the cgroups of others' jobs: a prolog, the step daemon.
std::optional<run::JobOwner> Agent::OwnerOf(const std::string& job_id) const {
  const attribution::JobFacts* facts = recordings_.FactsOf(job_id);
  if (facts == nullptr || facts->uid == 0) return std::nullopt;
  return run::JobOwner{facts->uid, facts->by_cgroup};
}

// Before the process itself is told: what a stranger has said of the job goes first.
void Agent::NoteOwner(const ProcessStart& start) {
  if (wrappers_ == nullptr || start.cgroup.empty()) return;
  const attribution::CgroupFacts facts = attribution::ReadCgroup(start.cgroup);
  const auto owner = facts.uid >= 0 ? static_cast<uint32_t>(facts.uid) : start.uid;
  if (!facts.job_id.empty() && owner != 0) wrappers_->NoteOwner(facts.job_id, owner);
}

void Agent::Pass(const Observation& observation) {
  // The wrapper's own ticks and clock are for its own judgement; here the agent's count.
  if (std::holds_alternative<Tick>(observation.kind) ||
      std::holds_alternative<Epoch>(observation.kind) ||
      std::holds_alternative<EngineState>(observation.kind)) {
    return;
  }
  if (const auto* mark = std::get_if<RunMark>(&observation.kind)) {
    if (mark->what == RunMark::What::kBegin && mark->root.pid > 0) {
      processes_->NoteWrapped(mark->root);
      processes_->AddRoot(mark->root, mark->job_id);
    }
  }
  if (const auto* start = std::get_if<ProcessStart>(&observation.kind)) NoteOwner(*start);
  if (const auto* fact = std::get_if<SchedulerFact>(&observation.kind);
      fact != nullptr && fact->field == "parent_summary") {
    std::erase_if(parents_asked_, [fact](const engine::Request& asked) {
      return asked.job_id == fact->job_id && fact->value.starts_with(asked.other + " ");
    });
  }
  waiting_room_.Accept(observation, loop_.Now());
  const auto* exit = std::get_if<ProcessExit>(&observation.kind);
  if (exit != nullptr && exit->status_known && exit->wait_status != 0) JudgeSoon();
  if (const auto* event = std::get_if<KernelEvent>(&observation.kind);
      event != nullptr &&
      (event->type == KernelEventType::kXid || event->type == KernelEventType::kGpuLost) &&
      loop_.Now() - hurried_ >= kTick) {
    // The first of a burst; the others are judged with the next tick.
    hurried_ = loop_.Now();
    JudgeSoon();
  }
}

void Agent::Record(const Observation& observation) {
  if (const auto* line = std::get_if<LogLine>(&observation.kind)) {
    files_heard_->Note(*line, observation.t);
    if (notifier_) notifier_->Heard(*line);
  }
  // The engine first: of a job that it does not take there is no recording.
  engine_.Accept(observation);
  recordings_.Accept(observation);
  if (const auto* start = std::get_if<ProcessStart>(&observation.kind)) NoteAsked(*start);
  if (const auto* record = std::get_if<SchedulerRecord>(&observation.kind)) {
    for (Event& target : TargetsOf(*record, config_.slurm.targets)) {
      const Observation told = OfAgent(std::move(target));
      engine_.Accept(told);
      recordings_.Accept(told);
    }
  }
  if (engine_.jobs() >= jobs_measured_ + kJobsUnmeasured) CheckMemory();
}

void Agent::Judge() {
  for (const auto& tell : before_judging_) tell();
  const Observation tick = OfAgent(Tick{});
  recordings_.Accept(tick);
  // Before anybody hears of it: whoever takes over after kill -9 knows what was said, and why.
  recordings_.Flush();
  Handle(engine_.Tick(tick.t));
}

void Agent::JudgeSoon() {
  if (judge_timer_ != 0 || tick_timer_ == 0) return;
  judge_timer_ = loop_.After(kJudgeDelay, [this] {
    judge_timer_ = 0;
    Judge();
    Publish(loop_.Now(), 0);
  });
}

void Agent::OnTick() {
  const Timestamp now = loop_.Now();
  const Epoch epoch = run::ReadEpoch();
  if (std::abs(epoch.wall_offset_ns - wall_offset_ns_) > Seconds(1).ns) {
    // The wall clock was set: times that are printed from now on are the new ones.
    const Observation observation = OfAgent(epoch);
    recordings_.Accept(observation);
    engine_.Accept(observation);
  }
  wall_offset_ns_ = epoch.wall_offset_ns;
  if (std::optional<Event> gap = node_clock_.Look(ReadNodeCounts())) {
    const Observation observation = OfAgent(std::move(*gap));
    recordings_.Accept(observation);
    engine_.Accept(observation);
  }

  sources_.TellLosses();
  waiting_room_.Release(now);
  CheckMemory();
  Judge();
  if (++ticks_ % kHouseKeepingTicks == 0) {
    verdicts_.Expire(now.ns + wall_offset_ns_, config_.state.keep);
    recordings_.EnforceTotal();
  }
  CheckTrouble();
  if (notifier_) notifier_->Tick(now.ns + wall_offset_ns_);
  Publish(now, static_cast<double>(run::MonotonicNow().ns - now.ns) * 1e-9);
}

void Agent::Handle(const engine::Output& output) {
  statuses_.Update(engine_, output);
  for (const std::string& job_id : output.changed) {
    const std::shared_ptr<const JobStatus> job = statuses_.Find(job_id);
    if (job == nullptr) continue;
    const proto::Verdict& verdict = job->verdict;
    log_.Info("verdict changed",
              {{"job_id", job_id},
               {"family", verdict.family()},
               {"sub", verdict.sub()},
               {"state", proto::State_Name(verdict.state())},
               {"confidence", std::to_string(verdict.confidence()).substr(0, 4)}});
    if (notifier_) {
      notifier_->Judged(*job, engine_.Summarize(job_id, loop_.Now()),
                        loop_.Now().ns + wall_offset_ns_);
    }
    if (verdict.state() == proto::FINAL) {
      const std::shared_ptr<const JobStatus> noted = NoteRecording(*job);
      verdicts_.Put(noted != nullptr ? *noted : *job, loop_.Now().ns + wall_offset_ns_);
      statuses_.Replace(verdicts_.Find(job_id));
      KeepSummary(job_id);
      recordings_.Finish(job_id);
    }
    if (verdict.state() == proto::PROVISIONAL || verdict.state() == proto::FINAL) Answer(*job);
  }
  for (const std::string& job_id : output.shed) {
    recordings_.Drop(job_id);
  }
  if (!output.shed.empty()) {
    log_.Warn(
        "jobs are no longer watched: the limit of jobs is reached and other users' jobs were "
        "admitted; raise state.max_jobs",
        {{"jobs", std::to_string(output.shed.size())}, {"first", output.shed.front()}});
  }
  for (const std::string& job_id : output.ended) {
    recordings_.Forget(job_id);
    files_heard_->ForgetJob(job_id);
    if (notifier_) notifier_->Ended(job_id);
  }
  for (const engine::Request& request : output.requests) {
    switch (request.what) {
      case engine::Request::What::kSchedulerBegin:
        slurm_questions_->Ask({request.job_id, false});
        break;
      case engine::Request::What::kSchedulerEnd:
        slurm_questions_->Ask({request.job_id, true});
        break;
      case engine::Request::What::kJobSummary:
        FindParent(request);
        break;
    }
  }
  GiveUpParents(loop_.Now());
}

void Agent::KeepSummary(const std::string& job_id) {
  if (const auto summary = engine_.Summarize(job_id, loop_.Now())) Keep(*summary);
}

void Agent::Keep(const JobSummary& summary) {
  summaries_.Put(summary);
}

void Agent::FindParent(const engine::Request& request) {
  if (!ready_) {  // of a recording; the answer may be in it, and Slurm's source is not there yet
    parents_asked_.push_back(request);
    return;
  }
  if (const auto summary = ReadJobSummary(summaries_.Find(request.other))) {
    TellParent(request, JobSummaryToText(*summary), "state");
    // A job that is begun anew each time elsewhere may have come further since it was here.
    const std::shared_ptr<const JobStatus> job =
        request.other == request.job_id ? statuses_.Find(request.job_id) : nullptr;
    if (job == nullptr || summary->restarts + 1 >= job->attempt.slurm_restart) return;
  }
  // Of several thousand jobs that wait for others a node runs a few.
  constexpr size_t kMostAsked = 256;
  if (parents_asked_.size() < kMostAsked) parents_asked_.push_back(request);
  slurm_questions_->Ask({request.job_id, false, request.other});
}

void Agent::TellParent(const engine::Request& request, std::string_view found,
                       std::string_view origin) {
  SchedulerFact told;
  told.job_id = request.job_id;
  told.field = "parent_summary";
  told.value = request.other + " " + std::string(found);
  told.origin = origin;
  Pass(OfAgent(std::move(told)));
}

// Who could be asked has not answered, or there is nobody: then this is what is known.
void Agent::GiveUpParents(Timestamp now) {
  if (!ready_) return;
  for (size_t i = 0; i < parents_asked_.size();) {
    if (parents_asked_[i].deadline > now) {
      ++i;
      continue;
    }
    const engine::Request late = std::move(parents_asked_[i]);
    parents_asked_.erase(parents_asked_.begin() + static_cast<ptrdiff_t>(i));
    TellParent(late, "unknown", "state");
  }
}

void Agent::Answer(const JobStatus& job) {
  if (wrappers_ == nullptr) return;
  wrappers_->Answer(job.job_id, VerdictToJson(job.verdict),
                    VerdictToText(job.verdict, Detail::kShort),
                    notifier_ != nullptr && job.watched);
}

// Clients that stall keep the listener's threads for longer than there is time.
}  // namespace rankscope::exporter
