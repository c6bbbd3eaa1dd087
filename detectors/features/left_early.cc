// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/features/left_early.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "detectors/features/cause_relations.h"
#include "detectors/windows/ended_well.h"

namespace rankscope::features {
namespace {

using logs::IncidentKind;
using windows::Candidate;

// The socket tells the peers of an exit before the kernel tells of the status: Python closes it,
// and ends its other threads and its CUDA context after that.
constexpr Duration kTogether = Seconds(1);

// Finalising an interpreter with a CUDA context takes that long.
constexpr Duration kSlowExit = Seconds(10);

struct Left {
  int32_t rank = -1;
  const Candidate* end = nullptr;   // as the kernel tells it; null: only srun does
  const Candidate* word = nullptr;  // srun's, or a peer's that it has lost a connection

  bool well() const { return end != nullptr && end->incident.shape == windows::kEndedWell; }
  Timestamp t() const { return end->incident.t; }
};

bool IsOfAttempt(const windows::JobWindow& job, const Candidate& candidate) {
  return candidate.attempt >= job.attempt().ordinal;
}

// The rank that was the first to end.
Left FirstToEnd(const windows::JobWindow& job) {
  Left first;
  for (const Candidate& end : job.incidents().all()) {
    const std::string_view shape = end.incident.shape;
    if (shape != windows::kEndedWell && shape != "wait_status") continue;
    const int32_t rank = end.incident.rank;
    const auto now = job.ranks().find(rank);
    if (!IsOfAttempt(job, end) || now == job.ranks().end()) continue;
    if (now->second.process != end.process) continue;  // it runs again
    if (first.end == nullptr || end.incident.t < first.t()) first = {rank, &end, nullptr};
  }
  return first;
}

// Whoever is asked to stop may end with 0.
bool WasAskedToStop(const windows::JobWindow& job, const Left& left) {
  const std::vector<Candidate>& all = job.incidents().all();
  return std::any_of(all.begin(), all.end(), [&](const Candidate& said) {
    const bool asks =
        IsTakedown(said.incident) || said.incident.kind == IncidentKind::kSchedulerEnd;
    return asks && IsOfAttempt(job, said) && said.incident.t <= left.t() + kTogether;
  });
}

// A peer that lost its connection when the rank had left, or in the same moment. Where the peer's
// kernel closed the connection in order and all ranks are here, no path broke and nobody else was
// lost: then the first to end has left, however long its end took.
const Candidate* LossAfter(const windows::JobWindow& job, const Left& left, int32_t world_size) {
  const std::vector<Candidate>& all = job.incidents().all();
  const auto lost = [&job](const Candidate& said) {
    return said.incident.kind == IncidentKind::kPeerLost && IsOfAttempt(job, said) &&
           OfProcessGroup(said.incident);
  };
  // Who tells of the loss itself has lost somebody else.
  const bool itself = std::any_of(all.begin(), all.end(), [&](const Candidate& said) {
    return lost(said) && said.incident.rank == left.rank;
  });
  if (itself) return nullptr;
  const bool all_here = !job.ranks().empty() && world_size > 1 &&
                        job.ranks().size() >= static_cast<size_t>(world_size);
  const auto found = std::find_if(all.begin(), all.end(), [&](const Candidate& said) {
    const bool slow = all_here && WasClosedInOrder(said.incident);
    return lost(said) && left.t() <= said.incident.t + (slow ? kSlowExit : kTogether);
  });
  return found == all.end() ? nullptr : &*found;
}

const Candidate* WordOfSrun(const windows::JobWindow& job, std::string_view shape) {
  const std::vector<Candidate>& all = job.incidents().all();
  const auto found = std::find_if(all.begin(), all.end(), [&](const Candidate& said) {
    return said.incident.shape == shape && IsOfAttempt(job, said);
  });
  return found == all.end() ? nullptr : &*found;
}

bool HasFinished(const JobFeatures& f) {
  const bool all = f.steps_known && std::isfinite(f.total_steps) && f.total_steps > 0 &&
                   f.steps >= f.total_steps;
  return f.train_end || all;
}

// By the kernel's record of its exit, else by srun's list of its tasks.
Left EndedBySrun(const windows::JobWindow& job) {
  const Candidate* const wait = WordOfSrun(job, "srun_wait");
  if (wait == nullptr) return {};
  Left left = FirstToEnd(job);
  left.word = wait;
  if (left.end != nullptr) return left.well() ? left : Left{};
  const Candidate* const listed = WordOfSrun(job, "srun_state");
  if (listed == nullptr) return {};
  left.rank = listed->incident.rank;
  left.word = listed;
  return left;
}

void Infer(const Left& left, std::string_view shape, const windows::JobWindow& job,
           const windows::AttemptWindow& window, Citer& citer, JobFeatures& f) {
  auto candidate = std::make_shared<Candidate>();
  logs::Incident& incident = candidate->incident;
  incident.kind = IncidentKind::kNonZeroExit;
  incident.role = logs::Role::kWrapper;
  incident.shape = shape;
  incident.rank = left.rank;
  Evidence evidence;
  if (left.end != nullptr) {
    incident.pid = left.end->process.pid;
    incident.t = left.t();
    candidate->process = left.end->process;
    candidate->store = proto::STORE_PROCESS;
    evidence.store = proto::STORE_PROCESS;
    evidence.process = left.end->process;
  } else {
    incident.t = left.word->incident.t;
    evidence = citer.Quote(EvidenceKind::kNonZeroExit, left.word->stream,
                           left.word->incident.offset, left.word->incident.line, incident.t);
  }
  if (left.rank >= 0) candidate->ranks = {left.rank};
  candidate->attempt = job.attempt().ordinal;
  candidate->progress_before = window.progress;
  evidence.kind = EvidenceKind::kNonZeroExit;
  evidence.ranks = candidate->ranks;
  evidence.begin = evidence.end = incident.t;
  evidence.observed = 0;
  evidence.values = {{FieldId::kShape, std::string(shape)}};
  f.inferred.push_back({std::move(candidate), citer.Add(std::move(evidence))});
}

}  // namespace

bool IsOfWhoLeft(const logs::Incident& incident) {
  return incident.shape == kLeftEarly || incident.shape == kLeftBeforeWait;
}

void DescribeWhoLeft(const windows::JobWindow& job, const windows::AttemptWindow& window,
                     Citer& citer, JobFeatures& f) {
  if (&window != &job.now() || f.progress == 0 || HasFinished(f)) return;
  if (const Left left = EndedBySrun(job); left.word != nullptr)
    return Infer(left, kLeftBeforeWait, job, window, citer, f);
  if (f.world_size <= 1 || !f.timed) return;
  Left left = FirstToEnd(job);
  if (!left.well() || WasAskedToStop(job, left)) return;
  left.word = LossAfter(job, left, f.world_size);
  if (left.word != nullptr) Infer(left, kLeftEarly, job, window, citer, f);
}

}  // namespace rankscope::features
