// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What a job's window takes that is not text: samples, signals, the scheduler's facts, kernel
// events.
#include <algorithm>
#include <deque>
#include <optional>
#include <utility>

#include "detectors/model/event_types.h"
#include "detectors/model/subs.h"
#include "detectors/windows/job_window.h"
#include "detectors/windows/signal_sender.h"

namespace rankscope::windows {

using logs::Incident;
using logs::IncidentKind;

namespace {

// "1000", or with the name that whoever read the record knows for the number: "alice(1000)".
void AddCanceller(std::string_view by, std::vector<KeyValue>& fields) {
  if (by.empty()) return;
  const auto number = [](std::string_view text) {
    return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
  };
  std::string_view uid = number(by) ? by : std::string_view();
  if (const size_t bracket = by.rfind('('); bracket != by.npos && by.ends_with(')')) {
    uid = by.substr(bracket + 1, by.size() - bracket - 2);
    if (!number(uid)) uid = {};
    if (bracket > 0 && !uid.empty()) by = by.substr(0, bracket);
  }
  fields.push_back({"by", number(by) ? "uid " + std::string(by) : std::string(by)});
  if (!uid.empty()) fields.push_back({"by_uid", std::string(uid)});
}

}  // namespace

void JobWindow::OnEvent(const Event& event, const Speaker& speaker, Timestamp t) {
  attempts_.Each([&](AttemptWindow& attempt) { attempt.kernel.OnEvent(event, speaker, t); });
  suspension_.OnEvent(event, t);
  if (event.type == WireType(EventType::kTarget)) targets_.OnEvent(event);
  if (event.type == WireType(EventType::kOutputRead)) hearing_.OnOutputRead();
}

void JobWindow::OnGpuEnvironment(const attribution::ProcessInfo& process,
                                 const attribution::GpuEnvironment& told) {
  // A worker's is its rank's.
  if (process.role == attribution::ProcessRole::kWorker) return;
  gpu_claims_.OnEnvironment(told,
                            process.role == attribution::ProcessRole::kRank ? process.rank : -1);
}

void JobWindow::OnGpuMapping(std::vector<attribution::GpuName> cards, Timestamp t) {
  const bool had = gpu_claims_.given();
  gpu_claims_.OnMapping(std::move(cards));
  if (wrapped_ || processes_seen_ > 0 || !streams_.empty()) return;
  if (gpu_claims_.given()) end_ = {};
  if (!had || gpu_claims_.given()) return;
  end_.ended = true;
  end_.t = t;
  end_.streams_closed = true;
  end_.streams_closed_t = t;
}

// The ranks of this attempt, while it trains.
void JobWindow::CompareRanks(const SampleBatch& batch, const Speaker& speaker, Timestamp t) {
  if (leads_attempt_ != attempt().ordinal) leads_ = {};
  leads_attempt_ = attempt().ordinal;
  const proto::Phase phase = now().phase.phase();
  leads_.Pause(phase == proto::PHASE_SAVE || phase == proto::PHASE_EVAL);
  leads_.OnSamples(batch, speaker, t);
  if (batch.subject.kind != Subject::Kind::kGpu) return;
  const std::map<std::string, GpuWindow>& gpus = now().kernel.gpus.gpus();
  const auto gpu = gpus.find(batch.subject.name);
  if (gpu != gpus.end()) leads_.OnGpu(gpu->second, t, speaker.unheard_until);
}

void JobWindow::OnSample(const Speaker& who, const SampleBatch& batch, Timestamp t) {
  Speaker speaker = who;
  speaker.unheard_until = hearing_.resumed();
  attempts_.Each([&](AttemptWindow& attempt) { attempt.kernel.OnSamples(batch, speaker, t); });
  CompareRanks(batch, speaker, t);
  suspension_.OnSamples(batch, speaker, t);
  process_totals_.OnSamples(batch, speaker, t);
  if (!speaker.foreign) {
    for (const Sample& sample : batch.samples) {
      const SignalRow* row = JobSignals::RowOf(sample.signal);
      if (row != nullptr && row->origin == SignalOrigin::Sampled)
        sampled_.Set(sample.signal, sample.value);
    }
  }
  const int32_t rank = speaker.rank;
  if (rank < 0 || (ranks_.size() >= kMaxRanks && !ranks_.contains(rank))) return;
  RankWindow& window = ranks_[rank];
  window.rank = rank;
  for (const Sample& sample : batch.samples) {
    if (const auto slot = LaunchGapSlot(sample.signal)) {
      window.launch_gaps[*slot] = std::max(0.0, sample.value);
      window.launch_gaps_counted = true;
    } else if (JobSignals::RowOf(sample.signal) == nullptr) {
      window.rings.Add(sample.signal, sample.value, t);
    }
  }
}

// A signal may be handled or outlived: it counts once its target has ended by it.
void JobWindow::OnSignal(const SignalSent& signal, const attribution::ProcessInfo& target,
                         const attribution::ProcessInfo* sender, Timestamp t) {
  constexpr int kStop = 19, kTerminalStop = 20;  // nobody ends by them
  if (signal.signo == kStop || signal.signo == kTerminalStop) {
    attempts_.Each(
        [&signal](AttemptWindow& attempt) { attempt.kernel.waits.OnStopSignal(signal); });
    return;
  }
  Candidate candidate;
  candidate.incident.kind = IncidentKind::kSignalDeath;
  candidate.incident.signal = signal.signo;
  candidate.incident.rank = target.rank;
  candidate.incident.local_rank = target.local_rank;
  candidate.incident.pid = target.key.pid;
  candidate.incident.shape = "signal_sent";
  std::vector<KeyValue>& fields = candidate.incident.fields;
  fields = {{"sent_by", std::string(SenderKind(signal, target, sender))},
            {"si_code", std::to_string(signal.si_code)}};
  if (target.role == attribution::ProcessRole::kWorker) fields.push_back({"worker", "yes"});
  if (signal.sender.pid != 0) {
    fields.push_back({"sender", signal.sender_comm});
    fields.push_back({"sender_pid", std::to_string(signal.sender.pid)});
    fields.push_back({"sender_uid", std::to_string(signal.sender_uid)});
    fields.push_back({"sender_cgroup", signal.sender_cgroup});
    fields.push_back({"target_uid", std::to_string(target.uid)});
  }
  candidate.incident.t = t;
  candidate.store = proto::STORE_KERNEL;
  candidate.process = signal.target;
  candidate.progress_before = now().progress;
  pending_signals_.push_back(std::move(candidate));
  if (pending_signals_.size() > kMaxPendingSignals) pending_signals_.pop_front();
}

// A request to stop that came from outside the job and that the process followed in its own way,
// with an exit status: launchers and trainers handle SIGTERM. One that is followed after a minute
// may have been a notice, and the end another's doing.
void JobWindow::TakeRequest(const attribution::ProcessInfo& process, bool counts, Timestamp t) {
  constexpr Duration kFollowed = Seconds(60);
  if (!counts || !process.status_known || (process.wait_status & 0x7f) != 0) return;
  if (process.wait_status == 0) return;
  for (const Candidate& candidate : pending_signals_) {
    const int32_t signal = candidate.incident.signal;
    if (candidate.process != process.key || (signal != 15 && signal != 2)) continue;
    const std::string& by = candidate.incident.fields.front().value;
    if (by == "job" || by == "launcher" || by == "itself" || by == "kernel") continue;
    if (t - candidate.incident.t > kFollowed) continue;
    Candidate request = candidate;
    request.incident.kind = IncidentKind::kTerminated;
    request.incident.sub = "requested";
    request.incident.fields.push_back({"signal", signal == 15 ? "SIGTERM" : "SIGINT"});
    request.attempt = attempts_.ordinal_now();
    incidents_.Add(std::move(request));
    return;
  }
}

// The signal that this process ended by, as it was sent; what else was sent to it is forgotten. A
// handler that has cleaned up ends its process by sending it the same signal again: then the first
// sender is who ended it.
void JobWindow::TakeSignal(const attribution::ProcessInfo& process, bool counts) {
  // Of an end that nobody saw, SIGKILL alone is sure to be the reason.
  const int signal = process.status_known ? process.wait_status & 0x7f : 9;
  std::optional<Candidate> killer;
  for (Candidate& candidate : pending_signals_) {
    if (candidate.process != process.key || candidate.incident.signal != signal) continue;
    const bool again = candidate.incident.fields.front().value == "itself";
    if (!killer || !again) killer = std::move(candidate);
  }
  std::erase_if(pending_signals_,
                [&](const Candidate& candidate) { return candidate.process == process.key; });
  // A worker that its own pool ends, ends by SIGTERM.
  const bool worker =
      process.role == attribution::ProcessRole::kWorker && process.status_known && signal != 15;
  if (!killer || !(counts || worker)) return;
  killer->process = process.key;
  killer->attempt = attempts_.ordinal_now();
  killer->progress_before = now().progress;
  incidents_.Add(std::move(*killer));
}

bool JobWindow::scheduler_told_state() const {
  const std::vector<SchedulerRun>& runs = scheduler_.runs();
  const bool state = scheduler_state_attempt_ == attempt().ordinal && !scheduler_.state().empty() &&
                     !SchedulerStateGoesOn(scheduler_.state());
  return state || std::any_of(runs.begin(), runs.end(), [this](const SchedulerRun& run) {
           return run.ended() && AttemptOf(&run, run.end_t, run.clocked) == attempt().ordinal;
         });
}

void JobWindow::OnBoot(std::string_view node, std::string_view boot_id) {
  const std::string id(boot_id.substr(0, BootSeen::kIdCap));
  if (id.empty()) return;
  boot_.node = node;
  if (boot_.id.empty()) boot_.id = id;
  boot_.again = id == boot_.id ? std::string() : id;
}

void JobWindow::AddSchedulerMark(SchedulerMark mark) {
  for (std::string* text : {&mark.value, &mark.reason, &mark.origin})
    text->resize(std::min(text->size(), kMarkTextCap));
  const bool known = std::any_of(
      scheduler_marks_.begin(), scheduler_marks_.end(), [&mark](const SchedulerMark& each) {
        return each.t == mark.t && each.field == mark.field && each.value == mark.value &&
               (each.reason == mark.reason || !mark.value.starts_with("step_"));
      });
  if (known) return;
  scheduler_marks_.push_back(std::move(mark));
  if (scheduler_marks_.size() > kMaxSchedulerMarks) scheduler_marks_.pop_front();
}

void JobWindow::NoteScheduler(const SchedulerRecord& record, const WallClock& clock) {
  if (record.submit > 0)
    AddSchedulerMark(
        {clock.AtSecond(record.submit).value_or(clock.now), "submit", {}, {}, record.origin});
  if (record.start > 0)
    AddSchedulerMark(
        {clock.AtSecond(record.start).value_or(clock.now), "start", {}, {}, record.origin});
  const bool of_state = !record.state.empty();
  if (!of_state && record.event.empty()) return;
  AddSchedulerMark({clock.At(record.wall_ns).value_or(clock.now), of_state ? "state" : "event",
                    of_state ? record.state : record.event,
                    record.reason == "None" ? std::string() : record.reason, record.origin});
}

void JobWindow::OnSchedulerRecord(const SchedulerRecord& record, const WallClock& clock) {
  NoteScheduler(record, clock);
  parents_.OnSchedulerRecord(record, clock.now);
  TakeSchedulerState(record.state.empty() ? "event" : "state", scheduler_.OnRecord(record, clock),
                     clock.At(record.wall_ns), clock.now);
}

void JobWindow::OnSchedulerFact(const SchedulerFact& fact, const WallClock& clock) {
  if (fact.field == "parent_summary") return parents_.OnSummary(fact, clock.now);
  if (!fact.step_id.empty()) return OnStepFact(fact, clock);
  // What a job follows is known before its state is.
  SchedulerRecord alone;
  alone.origin = fact.origin;
  if (SetField(alone, fact.field, fact.value)) parents_.OnSchedulerRecord(alone, clock.now);
  if (auto record = scheduler_.OnFact(fact, clock)) OnSchedulerRecord(*record, clock);
}

// That a step ran out of memory is the scheduler's own word, though the job may have gone on.
void JobWindow::OnStepFact(const SchedulerFact& fact, const WallClock& clock) {
  const Timestamp t = clock.At(fact.wall_ns).value_or(clock.now);
  const bool ended = steps_.OnFact(fact, clock);
  const auto step = std::find_if(steps_.all().begin(), steps_.all().end(),
                                 [&fact](const StepSeen& each) { return each.id == fact.step_id; });
  if (step == steps_.all().end()) return;
  const std::string name = step->id + (step->name.empty() ? "" : " (" + step->name + ")");
  if (fact.field == "start") AddSchedulerMark({t, "event", "step_started", name, step->origin});
  if (ended)
    AddSchedulerMark(
        {t, "event", "step_ended", name + " " + step->state + " " + step->exit, step->origin});
  if (!ended || step->state != "OUT_OF_MEMORY") return;
  Candidate candidate;
  candidate.incident.kind = IncidentKind::kHostOom;
  candidate.incident.sub = subs::kOom;
  candidate.incident.shape = "scheduler_state";
  candidate.incident.fields = {{"field", "state"},
                               {"value", fact.value},
                               {"origin", fact.origin.substr(0, 64)},
                               {"step", fact.step_id.substr(0, 32)}};
  candidate.incident.t = t;
  candidate.store = proto::STORE_SCHEDULER;
  candidate.attempt = attempt().ordinal;
  candidate.progress_before = now().progress;
  incidents_.Add(std::move(candidate));
}

void JobWindow::TakeSchedulerState(std::string_view field, const SchedulerHistory::State& state,
                                   std::optional<Timestamp> happened, Timestamp now) {
  const bool clocked = happened.has_value();
  const Timestamp t = happened.value_or(now);
  // What is read again is told again. But of an attempt that has begun since, in the word of the
  // one before and without its times, it is news.
  const bool of_next = field == "state" && !clocked && scheduler_state_attempt_ > 0 &&
                       scheduler_state_attempt_ < attempt().ordinal &&
                       !SchedulerStateGoesOn(scheduler_.state());
  if (!state.changed && !of_next) return;
  if (SchedulerStateWaits(scheduler_.state())) return TakeReturnToQueue(t);
  if (!SchedulerStateGoesOn(scheduler_.state()))
    scheduler_state_attempt_ = AttemptOf(state.run, t, clocked);
  TakeSchedulerEnd(field, state, t, clocked);
}

// Of which attempt here an end that the record tells is; 0 = of one that was not here. The record's
// times are cut to whole seconds.
int32_t JobWindow::AttemptOf(const SchedulerRun* run, Timestamp t, bool clocked) const {
  constexpr Duration kWholeSeconds = Seconds(1);
  if (!clocked) return attempt().ordinal;
  if ((run != nullptr ? run->end_t : t) + kWholeSeconds < now().begin) return attempt().ordinal - 1;
  const bool later = end_.ended && run != nullptr && run->clocked && run->start_t > end_.t;
  return later ? 0 : attempt().ordinal;
}

void JobWindow::TakeSchedulerEnd(std::string_view field, const SchedulerHistory::State& told,
                                 Timestamp t, bool clocked) {
  struct StateRow {
    std::string_view state, sub;
  };
  constexpr StateRow kStates[] = {
      {"TIMEOUT", subs::kTimeLimit},   {"PREEMPTED", subs::kPreemption},
      {"REQUEUED", subs::kRequeue},    {"NODE_FAIL", subs::kNodeFailure},
      {"CANCELLED", subs::kCancelled}, {"OUT_OF_MEMORY", subs::kOom}};
  const SchedulerRun* const run = told.run;
  const std::string& state = scheduler_.state();
  const auto* const row = std::find_if(
      std::begin(kStates), std::end(kStates),
      [&state](const StateRow& each) { return std::string_view(state).starts_with(each.state); });
  if (row == std::end(kStates)) return;
  Candidate candidate;
  candidate.incident.kind =
      row->sub == subs::kOom ? IncidentKind::kHostOom : IncidentKind::kSchedulerEnd;
  candidate.incident.sub = row->sub;
  candidate.incident.shape = "scheduler_state";
  std::vector<KeyValue>& fields = candidate.incident.fields;
  fields = {{"field", std::string(field)}, {"value", state}, {"origin", scheduler_.state_origin()}};
  if (row->sub == subs::kCancelled) {
    // sacct: "CANCELLED by 1000"; other texts say who in a field of its own, and some do not.
    constexpr std::string_view kBy = "CANCELLED by ";
    std::string by = state.starts_with(kBy) ? state.substr(kBy.size()) : std::string();
    if (by.empty()) by = run != nullptr && !run->by.empty() ? run->by : told.by;
    AddCanceller(by, fields);
  }
  if (run != nullptr && run->start > 0) fields.push_back({"run_start", std::to_string(run->start)});
  if (run != nullptr && !run->failed_node.empty()) fields.push_back({"node", run->failed_node});
  candidate.incident.t = t;
  candidate.store = proto::STORE_SCHEDULER;
  candidate.attempt = AttemptOf(run, t, clocked);
  candidate.progress_before = now().progress;
  incidents_.Add(std::move(candidate));
}

// Without accounting only the controller is left to say what became of a job that has ended here:
// that it waits again, and has been restarted once more than the attempt that was here. Why, it
// does not say.
void JobWindow::TakeReturnToQueue(Timestamp t) {
  if (!end_.ended || scheduler_.restarts() <= attempt().slurm_restart) return;
  const std::vector<SchedulerRun>& runs = scheduler_.runs();
  if (!runs.empty() && runs.back().ended()) return;  // which is said of the run itself
  Candidate candidate;
  candidate.incident.kind = IncidentKind::kSchedulerEnd;
  candidate.incident.sub = subs::kRequeue;
  candidate.incident.shape = "scheduler_restarts";
  candidate.incident.fields = {{"field", "restarts"},
                               {"value", std::to_string(scheduler_.restarts())},
                               {"origin", scheduler_.state_origin().substr(0, 64)}};
  // It is submitted anew when it is put back.
  const Timestamp submitted = scheduler_.submitted();
  candidate.incident.t = submitted > now().begin ? std::min(submitted, t) : t;
  candidate.store = proto::STORE_SCHEDULER;
  candidate.attempt = attempt().ordinal;
  candidate.progress_before = now().progress;
  incidents_.Add(std::move(candidate));
}

// The driver's library and the kernel's log tell of the same error, in either order.
bool JobWindow::IsTold(const logs::Incident& xid, Timestamp t) const {
  constexpr Duration kSame = Seconds(5);
  const auto field = [](const logs::Incident& of, std::string_view key) {
    const auto found = std::find_if(of.fields.begin(), of.fields.end(),
                                    [key](const KeyValue& each) { return each.key == key; });
    return found == of.fields.end() ? std::string_view() : std::string_view(found->value);
  };
  return std::any_of(incidents_.all().begin(), incidents_.all().end(), [&](const Candidate& known) {
    return (known.store == proto::STORE_KERNEL || known.store == proto::STORE_GPU) &&
           known.incident.kind == IncidentKind::kXid && t - known.incident.t < kSame &&
           field(known.incident, "code") == field(xid, "code") &&
           field(known.incident, "bus_id") == field(xid, "bus_id");
  });
}

void JobWindow::OnKernelEvent(const KernelEvent& event, const attribution::ProcessInfo* victim,
                              const std::optional<logs::Incident>& read, Timestamp t) {
  Candidate candidate;
  Incident& incident = candidate.incident;
  if (event.type == KernelEventType::kOomKill) {
    incident.kind = IncidentKind::kHostOom;
    incident.signal = 9;
    incident.sub = event.scope;
    const auto field = [&incident](std::string_view key, const std::string& value) {
      if (!value.empty()) incident.fields.push_back({std::string(key), value});
    };
    field("scope", event.scope);
    field("oom_memcg", event.cgroup);
    if (event.limit_bytes > 0) field("limit_bytes", std::to_string(event.limit_bytes));
    if (event.used_bytes > 0) field("used_bytes", std::to_string(event.used_bytes));
  } else if (read && read->kind == IncidentKind::kXid) {
    if (IsTold(*read, t)) return;
    incident = *read;
    if (const GpuWindow* gpu = now().kernel.gpus.HeldAt(event.gpu_bus_id)) {
      incident.fields.push_back({"gpu", std::to_string(gpu->index)});
      incident.fields.push_back({"gpu_uuid", gpu->uuid});
      // The driver's library has no words to cite.
      if (event.text.empty()) {
        incident.fields.push_back(
            {"query", "rankscope_gpu_xid_errors_total{gpu_uuid=\"" + gpu->uuid + "\"}"});
      }
      if (victim == nullptr) candidate.ranks = gpu->ranks;
    }
  } else if (event.type == KernelEventType::kSegfault) {
    incident.kind = IncidentKind::kSignalDeath;
    incident.signal = 11;
  } else {
    return;
  }
  incident.shape = "kernel_event";
  incident.line.assign(std::string_view(event.text).substr(0, logs::kCitationCap));
  if (candidate.ranks.size() == 1) incident.rank = candidate.ranks.front();
  incident.t = t;
  if (victim != nullptr) {
    incident.rank = victim->rank;
    incident.pid = victim->key.pid;
    if (victim->role == attribution::ProcessRole::kWorker)
      incident.fields.push_back({"worker", "yes"});
    candidate.process = victim->key;
  }
  const bool library = incident.kind == IncidentKind::kXid && event.text.empty();
  candidate.store = library ? proto::STORE_GPU : proto::STORE_KERNEL;
  candidate.attempt = attempt().ordinal;
  candidate.progress_before = now().progress;
  incidents_.Add(std::move(candidate));
}

}  // namespace rankscope::windows
