// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What a job's window takes that is not text: samples, signals, the scheduler's facts, kernel
// events.
#include "detectors/windows/job_window.h"

namespace rankscope::windows {

using logs::Incident;
using logs::IncidentKind;
using logs::Role;

void JobWindow::OnSample(int32_t rank, const SampleBatch& batch, Timestamp t) {
  if (rank < 0 || (ranks_.size() >= kMaxRanks && !ranks_.contains(rank))) return;
  RankWindow& window = ranks_[rank];
  window.rank = rank;
  for (const Sample& sample : batch.samples) window.rings.Add(sample.signal, sample.value, t);
}

void JobWindow::OnSignal(const SignalSent& signal, const attribution::ProcessInfo& target,
                         Timestamp t) {
  Candidate candidate;
  candidate.incident.kind = IncidentKind::kSignalDeath;
  candidate.incident.role =
      signal.signo == 15 || signal.signo == 2 ? Role::kCascade : Role::kInitiating;
  candidate.incident.signal = signal.signo;
  candidate.incident.rank = target.rank;
  candidate.incident.pid = target.key.pid;
  candidate.incident.shape = "signal_sent";
  candidate.incident.fields = {{"sender", signal.sender_comm},
                               {"sender_uid", std::to_string(signal.sender_uid)}};
  candidate.incident.t = t;
  candidate.store = proto::STORE_KERNEL;
  candidate.attempt = suspected_ ? suspected_ordinal_ : attempt_.ordinal;
  candidate.progress_before = current_.progress;
  candidate.process = signal.target;
  incidents_.Add(std::move(candidate));
}

void JobWindow::OnSchedulerFact(const SchedulerFact& fact, Timestamp t) {
  constexpr size_t kMaxFacts = 64;
  if (scheduler_fields_.size() < kMaxFacts) scheduler_fields_.push_back({fact.field, fact.value});
  if (fact.field != "state") return;
  struct StateRow {
    std::string_view state, sub;
  };
  constexpr StateRow kStates[] = {{"TIMEOUT", "time_limit"},  {"PREEMPTED", "preemption"},
                                  {"REQUEUED", "requeue"},    {"NODE_FAIL", "node_failure"},
                                  {"CANCELLED", "cancelled"}, {"OUT_OF_MEMORY", "oom"}};
  for (const StateRow& row : kStates) {
    if (!fact.value.starts_with(row.state)) continue;
    Candidate candidate;
    candidate.incident.kind =
        row.sub == "oom" ? IncidentKind::kHostOom : IncidentKind::kSchedulerEnd;
    candidate.incident.sub = row.sub;
    candidate.incident.shape = "scheduler_state";
    candidate.incident.fields = {
        {"field", fact.field}, {"value", fact.value}, {"origin", fact.origin}};
    candidate.incident.t = t;
    candidate.store = proto::STORE_SCHEDULER;
    candidate.attempt = attempt_.ordinal;
    candidate.progress_before = current_.progress;
    incidents_.Add(std::move(candidate));
  }
}

void JobWindow::OnKernelEvent(const KernelEvent& event, const attribution::ProcessInfo* victim,
                              Timestamp t) {
  Candidate candidate;
  Incident& incident = candidate.incident;
  if (event.type == "oom_kill") {
    incident.kind = IncidentKind::kHostOom;
    incident.signal = 9;
  } else if (event.type == "xid") {
    incident.kind = IncidentKind::kXid;
    incident.fields = {{"code", std::to_string(event.code)}, {"bus_id", event.gpu_bus_id}};
  } else if (event.type == "segfault") {
    incident.kind = IncidentKind::kSignalDeath;
    incident.signal = 11;
  } else {
    return;
  }
  incident.shape = "kernel_event";
  incident.line.assign(std::string_view(event.text).substr(0, logs::kCitationCap));
  incident.t = t;
  if (victim != nullptr) {
    incident.rank = victim->rank;
    incident.pid = victim->key.pid;
    candidate.process = victim->key;
  }
  candidate.store = proto::STORE_KERNEL;
  candidate.attempt = attempt_.ordinal;
  candidate.progress_before = current_.progress;
  incidents_.Add(std::move(candidate));
}

}  // namespace rankscope::windows
