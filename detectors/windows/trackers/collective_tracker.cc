// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/windows/trackers/collective_tracker.h"

#include <algorithm>
#include <cmath>

#include "detectors/model/event_types.h"
#include "detectors/windows/series/sample_find.h"
#include "detectors/windows/trackers/event_fields.h"

namespace rankscope::windows {
namespace {

constexpr size_t kTextCap = 200;

bool IsNccl(SignalId signal) {
  switch (signal) {
    case SignalId::kCollectivesEnqueued:
    case SignalId::kCollectiveSequence:
    case SignalId::kCollectivesCompleted:
    case SignalId::kCollectivesInFlight:
    case SignalId::kOldestCollectiveSeconds:
    case SignalId::kCommunicators:
    case SignalId::kInitsInFlight:
    case SignalId::kEventQueries:
      return true;
    default:
      return false;
  }
}

}  // namespace

void RankCollective::Reset(const ProcessKey& process) {
  *this = {};
  process_ = process;
}

double RankCollective::FlightSeconds(Timestamp now) const {
  if (in_flight_ < 1) return 0;
  return oldest_seconds_ + std::max(0.0, (now - last_).seconds());
}

double RankCollective::InitSeconds(Timestamp now) const {
  if (inits_in_flight_ < 1) return 0;
  return init_seconds_ + std::max(0.0, (now - last_).seconds());
}

void RankCollective::OnSamples(const SampleBatch& batch, Timestamp t, Timestamp unheard_until) {
  if (const auto total = FindSample(batch, SignalId::kCollectivesEnqueued)) {
    if (enqueued_total_.seen && *total < enqueued_total_.value) carried_ = true;
  }
  if (!counted_) first_ = last_entered_ = last_advance_ = t;
  counted_ = true;
  const auto take = [&batch](SignalId signal, double& out) {
    if (const auto value = FindSample(batch, signal)) out = *value;
  };
  const auto grow = [&batch](SignalId signal, Total& total) {
    const auto value = FindSample(batch, signal);
    return value ? total.Grow(*value) : 0.0;
  };
  const double entered = grow(SignalId::kCollectivesEnqueued, enqueued_total_);
  const double completed = grow(SignalId::kCollectivesCompleted, completed_total_);
  if (grow(SignalId::kEventQueries, queries_) > 0) {
    asked_ = true;
    last_asked_ = t;
  }
  grow(SignalId::kCommunicatorAborts, aborts_);
  sequence_ = FindSample(batch, SignalId::kCollectiveSequence).value_or(-1);
  const double flies = FindSample(batch, SignalId::kCollectivesInFlight).value_or(in_flight_);
  if (entered > 0 || flies > 0) {
    flight_known_ = true;
    carried_ = false;
  }
  if (!carried_) {
    in_flight_ = flies;
    take(SignalId::kOldestCollectiveSeconds, oldest_seconds_);
  } else if (in_flight_ >= 1) {
    oldest_seconds_ += std::max(0.0, (t - last_).seconds());  // it was, and nothing tells of an end
  }
  take(SignalId::kCommunicators, communicators_);
  take(SignalId::kInitsInFlight, inits_in_flight_);
  take(SignalId::kCommunicatorInitSeconds, init_seconds_);
  entered_ += entered;
  completed_ += completed;
  if (entered > 0 || completed > 0) {
    if (last_advance_ >= unheard_until) pauses_.Add((t - last_advance_).seconds());
    last_advance_ = t;
  }
  if (entered > 0) {
    last_entered_ = t;
    written_at_entered_ = written_.value;
    cpu_at_entered_ = cpu_.value;
  }
  last_ = t;
}

void RankCollective::OnOthers(const SampleBatch& batch) {
  // A total that is first heard now was not written since the last collective, as far as is known.
  const auto take = [&batch](SignalId signal, Total& total, double& base) {
    const auto value = FindSample(batch, signal);
    if (!value) return;
    if (!total.seen || *value < total.value) base = *value;
    total.Grow(*value);
  };
  take(SignalId::kWriteBytes, written_, written_at_entered_);
  take(SignalId::kCpuSeconds, cpu_, cpu_at_entered_);
}

void RankCollective::OnCommunicator(double ranks, std::string_view what) {
  if (what == "created" && ranks >= ranks_of_largest_) ranks_of_largest_ = ranks;
}

void RankCollective::OnCallFailed(std::string_view call, double result) {
  failed_call_.assign(call.substr(0, kTextCap));
  failed_result_ = result;
}

RankCollective* CollectiveTracker::Find(const Speaker& speaker) {
  if (speaker.rank < 0) return nullptr;
  const auto found = ranks_.find(speaker.rank);
  if (found == ranks_.end() && ranks_.size() >= kMaxRanks) return nullptr;
  RankCollective& rank = found == ranks_.end() ? ranks_[speaker.rank] : found->second;
  if (speaker.process.pid != 0 && rank.process() != speaker.process) rank.Reset(speaker.process);
  return &rank;
}

void CollectiveTracker::OnEvent(const Event& event, const Speaker& speaker, Timestamp) {
  const bool made = event.type == WireType(EventType::kCommunicator) ||
                    event.type == WireType(EventType::kCommunicatorInit);
  const bool failed = event.type == WireType(EventType::kNcclCallFailed);
  if (!made && !failed) return;
  RankCollective* rank = Find(speaker);
  if (rank == nullptr) return;
  if (made) {
    rank->OnCommunicator(NumberOrNan(event, "nranks"), TextOf(event, "what"));
  } else {
    rank->OnCallFailed(TextOf(event, "call"), NumberOrNan(event, "result"));
  }
}

void CollectiveTracker::OnSamples(const SampleBatch& batch, const Speaker& speaker, Timestamp t) {
  if (speaker.rank < 0) return;
  bool nccl = false;
  for (const Sample& sample : batch.samples) {
    // -1 communicators: its calls are not all seen, and nothing is known of them.
    if (sample.signal == SignalId::kCommunicators && sample.value < 0) return;
    nccl = nccl || IsNccl(sample.signal);
  }
  if (nccl) {
    if (RankCollective* rank = Find(speaker)) rank->OnSamples(batch, t, speaker.unheard_until);
  }
  if (const auto known = ranks_.find(speaker.rank);
      known != ranks_.end() && known->second.process() == speaker.process)
    known->second.OnOthers(batch);
}

void CollectiveTracker::OnProcessExit(const ProcessKey& process) {
  for (auto& [number, rank] : ranks_) {
    if (rank.process() == process) rank.OnExit();
  }
}

}  // namespace rankscope::windows
