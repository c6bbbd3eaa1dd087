// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/features/scheduler.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "detectors/features/suspect_node.h"
#include "detectors/model/subs.h"

namespace rankscope::features {
namespace {

using windows::SchedulerHistory;
using windows::SchedulerNode;
using windows::SchedulerRun;

// A node is called down when its daemon has been silent for SlurmdTimeout, 300 s by default; and
// what ends a run may have begun a little before somebody took the node out.
constexpr Duration kBeforeTheEnd = Seconds(120);
constexpr Duration kAfterTheEnd = Seconds(300);

constexpr size_t kShownRuns = 8;

std::string Text(int64_t number) {
  return std::to_string(number);
}

std::string_view FieldOf(const logs::Incident& incident, std::string_view key) {
  for (const KeyValue& field : incident.fields) {
    if (field.key == key) return field.value;
  }
  return {};
}

Timestamp EndOf(const windows::JobWindow& job, const JobFeatures& f) {
  return job.end().ended ? std::min(job.end().t, f.now) : f.now;
}

Evidence FromRecord(EvidenceKind kind, std::string_view field, std::string value,
                    std::string_view origin) {
  Evidence evidence;
  evidence.kind = kind;
  evidence.store = proto::STORE_SCHEDULER;
  evidence.values = {{FieldId::kField, std::string(field)},
                     {FieldId::kValue, std::move(value)},
                     {FieldId::kOrigin, std::string(origin)}};
  return evidence;
}

// The evidence's times are those of the record, where it tells any.
Evidence FromRun(const SchedulerRun& run, size_t number, size_t runs) {
  Evidence evidence = FromRecord(EvidenceKind::kSchedulerRun, "state", run.state, run.origin);
  const double seconds = run.seconds();
  if (std::isfinite(seconds)) evidence.observed = seconds;
  evidence.unit = "s";
  evidence.begin = run.start_t;
  evidence.end = run.ended() ? run.end_t : run.start_t;
  evidence.values.Set(FieldId::kNumber, static_cast<int64_t>(number))
      .Set(FieldId::kRuns, static_cast<int64_t>(runs))
      .Set(FieldId::kNodes, run.nodes)
      .Set(FieldId::kBy, run.by)
      .Set(FieldId::kReason, run.reason);
  return evidence;
}

// By its start, where what explains the end is the record of a run; else by its times.
int32_t JudgedRun(const std::vector<SchedulerRun>& runs, const windows::JobWindow& job,
                  const JobFeatures& f) {
  if (const Cause* primary = f.Primary()) {
    const std::string_view start = FieldOf(primary->incident(), "run_start");
    for (size_t i = 0; i < runs.size() && !start.empty(); ++i) {
      if (Text(runs[i].start) == start) return static_cast<int32_t>(i);
    }
  }
  for (size_t i = runs.size(); i-- > 0;) {
    if (!runs[i].clocked) continue;
    if (!f.running && runs[i].start_t > job.end().t) continue;  // begun after this one had ended
    // Its times are cut to whole seconds.
    const bool before = runs[i].ended() && runs[i].end_t + Seconds(1) < job.now().begin;
    return before ? -1 : static_cast<int32_t>(i);
  }
  return runs.empty() ? -1 : static_cast<int32_t>(runs.size()) - 1;
}

std::string_view RerunOf(std::string_view state) {
  if (state == "COMPLETED") return "completed";
  if (windows::SchedulerStateWaits(state)) return "waiting";
  return windows::SchedulerStateGoesOn(state) ? "running" : "failed";
}

// Why it waits, as it was told last: squeue(1), "JOB REASON CODES".
std::string ReasonToWait(const windows::JobWindow& job) {
  const auto& marks = job.scheduler_marks();
  for (auto mark = marks.rbegin(); mark != marks.rend(); ++mark) {
    const bool waits = windows::SchedulerStateWaits(mark->value) || mark->value == "blocked";
    if (waits && !mark->reason.empty()) return mark->reason;
  }
  return {};
}

// Held by its owner or an operator, or since it was requeued so: it does not start by itself.
bool IsHeld(std::string_view reason) {
  return reason.find("Held") != reason.npos || reason.find("held") != reason.npos;
}

void DescribeRerun(const windows::JobWindow& job, SchedulerFeatures& s, int32_t judged, bool ended,
                   Citer& citer) {
  const SchedulerHistory& history = job.scheduler();
  const std::vector<SchedulerRun>& runs = history.runs();
  if (judged >= 0 && static_cast<size_t>(judged) + 1 < runs.size()) {
    s.rerun_state = runs.back().state;
    s.rerun = RerunOf(s.rerun_state);
    s.rerun_evidence = s.runs.empty() ? kNoEvidence : s.runs.back().evidence;
  }
  // It may have been put back, once more; or cancelled before it had nodes again.
  const bool waits = windows::SchedulerStateWaits(history.state());
  const bool cancelled = history.state().starts_with("CANCELLED") && !runs.empty() &&
                         !runs.back().state.starts_with("CANCELLED");
  if (!ended || !(waits || cancelled)) return;
  const std::string reason = waits ? ReasonToWait(job) : std::string();
  s.rerun_state = history.state();
  s.rerun = cancelled ? "cancelled" : IsHeld(reason) ? "held" : RerunOf(s.rerun_state);
  Evidence evidence =
      FromRecord(EvidenceKind::kSchedulerRun, "state", s.rerun_state, history.state_origin());
  evidence.values.Set(FieldId::kReason, reason);
  s.rerun_evidence = citer.Add(std::move(evidence));
}

// Ends of runs in the half hour before the last of them.
int64_t EndsInHalfHour(const std::vector<SchedulerRun>& runs) {
  constexpr int64_t kHalfHour = 1800;
  int64_t last = 0, count = 0;
  for (const SchedulerRun& run : runs) last = run.ended() ? std::max(last, run.end) : last;
  for (const SchedulerRun& run : runs) {
    if (run.ended() && run.end > 0 && last - run.end < kHalfHour) ++count;
  }
  return count;
}

// One card of this node for each of its ranks: then so it is on the others.
int64_t GpusOf(const SchedulerHistory& history, const JobFeatures& f) {
  if (history.gpus() > 0) return history.gpus();
  const bool each = !f.gpu.gpus.empty() && f.gpu.gpus.size() == f.rank_pids.size();
  return each ? std::max<int64_t>(f.world_size, static_cast<int64_t>(f.gpu.gpus.size())) : 0;
}

void DescribeBoot(const windows::JobWindow& job, Citer& citer, SchedulerFeatures& s) {
  const windows::BootSeen& boot = job.boot();
  if (boot.id.empty() || boot.node.empty()) return;
  const bool another = !boot.again.empty();
  // Of another node this one's boot says nothing; that it was booted itself is its own matter.
  if (!another && s.failed_node != boot.node) return;
  s.boot = another ? SchedulerFeatures::Boot::kAnother : SchedulerFeatures::Boot::kSame;
  Evidence evidence;
  evidence.kind = EvidenceKind::kBoot;
  evidence.store = proto::STORE_PROCESS;
  evidence.process = job.root();
  evidence.values = {{FieldId::kSetting, another ? boot.id + " -> " + boot.again : boot.id},
                     {FieldId::kNode, boot.node},
                     {FieldId::kAnother, another ? "yes" : ""}};
  s.boot_evidence = citer.Add(std::move(evidence));
}

}  // namespace

void DescribeNodeRecord(const windows::JobWindow& job, const windows::AttemptWindow& window,
                        Citer& citer, JobFeatures& f) {
  if (&window != &job.now()) return;
  const SchedulerNode* worst = nullptr;
  for (const SchedulerNode& node : job.scheduler().nodes()) {
    const bool out = node.state == "down" || node.state == "failed";
    const bool drained = node.state == "drained" || node.state == "draining";
    if (!out && !drained) continue;
    const bool worse = worst == nullptr || (out && worst->state.starts_with("drain"));
    if (worse) worst = &node;
  }
  if (worst == nullptr) return;
  SchedulerFeatures& s = f.scheduler;
  s.failed_node = worst->node;
  s.node_state = worst->state;
  s.node_reason = worst->reason;
  s.node_class = worst->reason_class;
  Evidence evidence =
      FromRecord(EvidenceKind::kNodeState, "node_state", worst->state, worst->origin);
  evidence.begin = evidence.end = worst->t;
  evidence.values.Set(FieldId::kNode, s.failed_node)
      .Set(FieldId::kNodeReason, s.node_reason)
      .Set(FieldId::kNodeClass, s.node_class);
  s.node_evidence = citer.Add(std::move(evidence));
  // A node that is drained lets its jobs run on; one that is down has none any more. Without the
  // job's own record its state and the run's end must meet, and the end must be a bad one.
  const bool down = s.node_state == "down" || s.node_state == "failed";
  const Timestamp end = EndOf(job, f);
  const bool ended_well = f.exit_known && f.exit_code == 0;
  if (!down || !f.ended || ended_well || f.train_end || !worst->clocked) return;
  if (worst->t < end - kBeforeTheEnd || worst->t > end + kAfterTheEnd) return;
  auto candidate = std::make_shared<windows::Candidate>();
  candidate->incident.kind = logs::IncidentKind::kSchedulerEnd;
  candidate->incident.sub = subs::kNodeFailure;
  candidate->incident.shape = "node_record";
  candidate->incident.fields = {{"node", s.failed_node}};
  candidate->incident.t = worst->t;
  candidate->store = proto::STORE_SCHEDULER;
  candidate->attempt = job.attempt().ordinal;
  candidate->progress_before = f.progress;
  f.inferred.push_back({std::move(candidate), s.node_evidence});
}

void DescribeRecord(const windows::JobWindow& job, const windows::AttemptWindow& window,
                    Citer& citer, JobFeatures& f) {
  if (&window != &job.now()) return;
  const SchedulerHistory& history = job.scheduler();
  const std::vector<SchedulerRun>& runs = history.runs();
  SchedulerFeatures& s = f.scheduler;
  const int32_t judged = JudgedRun(runs, job, f);
  const size_t first = runs.size() > kShownRuns ? runs.size() - kShownRuns : 0;
  for (size_t i = first; i < runs.size(); ++i) {
    s.runs.push_back({runs[i].state, runs[i].ended(), runs[i].seconds(),
                      citer.Add(FromRun(runs[i], static_cast<size_t>(history.dropped()) + i + 1,
                                        static_cast<size_t>(history.dropped()) + runs.size()))});
  }
  if (judged >= static_cast<int32_t>(first)) s.judged = judged - static_cast<int32_t>(first);
  if (judged >= 0) {
    const SchedulerRun& run = runs[static_cast<size_t>(judged)];
    s.judged_seconds = run.seconds();
    if (s.failed_node.empty()) s.failed_node = run.failed_node;
  }
  // srun names the node that failed; slurmstepd the one that it runs on itself.
  for (const Cause& cause : f.causes) {
    const logs::Incident& incident = cause.incident();
    if (s.failed_node.empty() && incident.sub == subs::kNodeFailure &&
        incident.shape != "slurmstepd")
      s.failed_node = FieldOf(incident, "node");
  }
  // A host list of one name is that name.
  if (s.failed_node.empty() && judged >= 0 &&
      runs[static_cast<size_t>(judged)].nodes.find_first_of("[,") == std::string::npos)
    s.failed_node = runs[static_cast<size_t>(judged)].nodes;
  if (judged >= 0 && runs[static_cast<size_t>(judged)].ended() &&
      runs[static_cast<size_t>(judged)].state != "COMPLETED")
    s.end_state = runs[static_cast<size_t>(judged)].state;
  // Slurm calls a job FAILED of which a step ran out of memory.
  for (const windows::StepSeen& step : job.steps().all()) {
    if (step.state == "OUT_OF_MEMORY") s.end_state = step.state;
  }
  DescribeRerun(job, s, judged, f.ended, citer);
  s.runs_in_half_hour = EndsInHalfHour(runs);
  s.runs_told = runs.size() >= 2;
  DescribeSuspectNode(history, citer, s.suspect);
  s.restarts = history.restarts();
  if (s.restarts > 0) {
    Evidence evidence = FromRecord(EvidenceKind::kSchedulerRestarts, "restarts", Text(s.restarts),
                                   history.origin());
    evidence.observed = static_cast<double>(s.restarts);
    s.restarts_evidence = citer.Add(std::move(evidence));
  }
  int64_t limit = history.time_limit_seconds();
  if (judged >= 0 && runs[static_cast<size_t>(judged)].time_limit_seconds > 0)
    limit = runs[static_cast<size_t>(judged)].time_limit_seconds;
  if (limit > 0) {
    s.limit_seconds = static_cast<double>(limit);
    Evidence evidence =
        FromRecord(EvidenceKind::kTimeLimit, "time_limit_seconds", Text(limit), history.origin());
    evidence.observed = s.limit_seconds;
    evidence.unit = "s";
    s.limit_evidence = citer.Add(std::move(evidence));
  }
  s.gpus = GpusOf(history, f);
  DescribeBoot(job, citer, s);
}

namespace {

// The newest save that was completed: begun when, and cited where.
struct Saved {
  bool present = false;
  Timestamp begin;
  Evidence evidence;
};

Saved FromFiles(const windows::CheckpointTracker& files, Timestamp end) {
  Saved saved;
  const windows::SaveSeen& whole = files.newest_whole(end + Seconds(3600));
  if (!whole.present()) return saved;
  saved.present = true;
  saved.begin = whole.begin;
  saved.evidence.store = proto::STORE_KERNEL;
  saved.evidence.begin = whole.begin;
  saved.evidence.end = whole.end;
  saved.evidence.line = whole.name + ", complete";
  saved.evidence.values = {{FieldId::kShape, "checkpoint_written"}, {FieldId::kText, whole.name}};
  return saved;
}

// A framework's word that it has saved; or, where it never says so, that it saves, and trained on
// behind it.
Saved FromText(const windows::AttemptWindow& window, const Citer& citer) {
  Saved saved;
  const windows::MarkerSeen& begun = window.marker(logs::MarkerKind::kSaveBegin);
  const windows::MarkerSeen& ended = window.marker(logs::MarkerKind::kSaveEnd);
  const bool went_on = begun.count > 0 && window.clock.last_progress() > begun.last;
  if (ended.count == 0 && !went_on) return saved;
  const windows::MarkerSeen& seen = ended.count > 0 ? ended : begun;
  saved.present = true;
  // The end of the save that was begun, or the only thing that is said of one.
  saved.begin = begun.count > 0 && begun.last <= seen.last ? begun.last : seen.last;
  saved.evidence = citer.Quote(EvidenceKind::kLostWork, seen);
  return saved;
}

void DescribeFinalSave(const windows::AttemptWindow& window, Timestamp end, Citer& citer,
                       JobFeatures& f) {
  LostWork& lost = f.lost;
  const windows::CheckpointTracker& files = window.kernel.checkpoints;
  const windows::SaveSeen& newest = files.newest();
  // Files of the last seconds, one of which its writer left behind.
  constexpr Duration kJustNow = Seconds(60);
  if (newest.present() && newest.incomplete > 0 && end - newest.end < kJustNow) {
    lost.in_save = lost.save_cut = true;
    Evidence evidence;
    evidence.kind = EvidenceKind::kFinalSave;
    evidence.store = proto::STORE_KERNEL;
    evidence.begin = newest.begin;
    evidence.end = newest.end;
    const windows::TornFile& torn = files.torn();
    evidence.line = (torn.present() ? torn.name : newest.name) + ", not complete";
    evidence.observed = static_cast<double>(newest.incomplete);
    evidence.expected = static_cast<double>(newest.files);
    evidence.values = {{FieldId::kShape, "checkpoint_written"},
                       {FieldId::kText, torn.present() ? torn.name : newest.name}};
    lost.save_evidence = citer.Add(std::move(evidence));
  } else if (f.phase == proto::PHASE_SAVE) {
    lost.in_save = true;
    lost.save_evidence =
        citer.AddMarker(EvidenceKind::kFinalSave, window.marker(logs::MarkerKind::kSaveBegin));
  }
}

}  // namespace

void DescribeLostWork(const windows::JobWindow& job, const windows::AttemptWindow& window,
                      Citer& citer, JobFeatures& f) {
  const bool ended_well = (f.exit_known && f.exit_code == 0) || f.train_end;
  if (&window != &job.now() || !f.ended || ended_well || !f.timed) return;
  const Timestamp end = EndOf(job, f);
  DescribeFinalSave(window, end, citer, f);
  if (window.progress == 0) return;
  LostWork& lost = f.lost;
  const windows::CheckpointTracker& files = window.kernel.checkpoints;
  Saved saved = files.saves() > 0 ? FromFiles(files, end) : FromText(window, citer);
  Timestamp since = window.first_progress.t;
  Evidence evidence;
  if (saved.present) {
    lost.saved = true;
    since = saved.begin;
    evidence = std::move(saved.evidence);
  } else {
    // Of what it writes without a word, only the kernel could tell.
    lost.sure = f.storage.seen;
    evidence = citer.Quote(EvidenceKind::kLostWork, window.first_progress);
  }
  lost.seconds = std::max(0.0, (end - since).seconds());
  lost.gpu_seconds = lost.seconds * static_cast<double>(f.scheduler.gpus);
  evidence.kind = EvidenceKind::kLostWork;
  evidence.observed = lost.seconds;
  evidence.unit = "s";
  evidence.values.Set(FieldId::kWasSaved, lost.saved ? "yes" : "")
      .Set(FieldId::kSure, lost.sure ? "yes" : "");
  if (f.scheduler.gpus > 0) evidence.values.Set(FieldId::kGpus, int64_t{f.scheduler.gpus});
  lost.evidence = citer.Add(std::move(evidence));
}

}  // namespace rankscope::features
