// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/windows/trackers/launch_tracker.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "detectors/model/event_types.h"
#include "detectors/windows/series/sample_find.h"
#include "detectors/windows/series/statistics.h"
#include "detectors/windows/trackers/event_fields.h"

namespace rankscope::windows {
namespace {

constexpr int64_t kPieceNs = 10'000'000'000;
constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
constexpr size_t kTextCap = 200;
constexpr double kLeastCounted = 0.01;  // less is not looked at

bool IsCuda(SignalId signal) {
  switch (signal) {
    case SignalId::kKernelLaunches:
    case SignalId::kGraphLaunches:
    case SignalId::kCudaSyncSeconds:
    case SignalId::kOldestSyncSeconds:
    case SignalId::kSyncCalls:
    case SignalId::kAllocationFailures:
    case SignalId::kCudaErrors:
    case SignalId::kLastLaunchAge:
      return true;
    default:
      return false;
  }
}

}  // namespace

void Pauses::Add(double seconds) {
  if (!(seconds > 0)) return;
  newest.Push(static_cast<float>(seconds));
  if (seconds > longest) {
    second = longest;
    longest = seconds;
  } else {
    second = std::max(second, seconds);
  }
}

double Pauses::Median() const {
  if (newest.empty()) return 0;
  std::vector<double> values;
  for (size_t i = 0; i < newest.size(); ++i) values.push_back(newest[i]);
  return windows::Median(values);
}

double Total::Grow(double next) {
  const double grown = seen && next > value ? next - value : 0;
  seen = true;
  value = next;
  return grown;
}

// What the counters of one batch have grown by.
struct RankCalls::Growth {
  double wall = 0;
  double launches = 0;
  double launch_seconds = 0;
  double sync_calls = 0;
  double sync = 0;
  double copy = 0;
  double allocation = 0;

  double Calls() const { return sync + copy + allocation; }
};

void RankCalls::Reset(const ProcessKey& process) {
  *this = {};
  process_ = process;
}

void RankCalls::OnCpu(double seconds) {
  current_.cpu_seconds += static_cast<float>(cpu_.Grow(seconds));
}

void RankCalls::TurnPiece(Timestamp t) {
  const int64_t index = t.ns / kPieceNs;
  if (current_.index == index) return;
  if (current_.index >= 0 && current_.wall_seconds > 0) pieces_.Push(current_);
  current_ = {};
  current_.index = index;
}

void RankCalls::NoteLaunches(const Growth& growth, double age_seconds, double gap_seconds,
                             Timestamp t, Timestamp unheard_until) {
  calls_since_launch_ += growth.Calls();
  if (growth.launches <= 0) return;
  const double before = launches_;
  launches_ += growth.launches;
  const double age = std::isfinite(age_seconds) ? std::min(age_seconds, growth.wall) : 0;
  if (launched_ && last_launch_ >= unheard_until) {
    // Nothing was launched up to the batch before this one, at least; the gap says it better, where
    // it is this one's.
    const double until_before = (t - last_launch_).seconds() - growth.wall;
    const double at_most = (t - last_launch_).seconds() - age;
    const double pause = std::max(until_before, std::min(gap_seconds, at_most));
    pauses_.Add(pause);
    const double own = pause - calls_since_launch_;
    if (own >= kStallSeconds) {
      current_.stalls += 1;
      current_.stall_seconds += static_cast<float>(own);
      if (turn_begun_at_ >= 0) turns_.Push(static_cast<float>(before - turn_begun_at_));
      turn_begun_at_ = before;
    }
  } else {
    turn_begun_at_ = -1;
  }
  launched_ = true;
  last_launch_ = t - Seconds(age);
  calls_since_launch_ = 0;
}

void RankCalls::NoteFailures(double failures, double bytes, Timestamp t) {
  // A total that was not 0 when it first came: it failed before this rank was heard.
  const bool more = failures > (failures_.seen ? failures_.value : 0);
  failures_.Grow(failures);
  if (!more) return;
  if (std::isfinite(bytes)) last_failed_bytes_ = bytes;
  failed_at_ = t;
  launches_at_failure_ = launches_;
}

void RankCalls::OnAllocationFailed(std::string_view call, double bytes, Timestamp t) {
  failed_call_.assign(call.substr(0, kTextCap));
  if (std::isfinite(bytes)) last_failed_bytes_ = bytes;
  failed_at_ = t;
  launches_at_failure_ = launches_;
  if (failures_.value < 1) failures_.value = 1;  // the total may come later
}

void RankCalls::OnCallFailed(std::string_view call, double result) {
  error_call_.assign(call.substr(0, kTextCap));
  last_error_ = result;
  if (errors_.value < 1) errors_.value = 1;
}

double RankCalls::SyncSeconds(Timestamp now) const {
  return sync_open_seconds_ > 0 ? sync_open_seconds_ + std::max(0.0, (now - last_).seconds()) : 0;
}

void RankCalls::OnSamples(const SampleBatch& batch, Timestamp t, Timestamp unheard_until) {
  Growth growth;
  growth.wall = counted_ ? std::max(0.0, (t - last_).seconds()) : 0;
  if (!counted_) first_ = t;
  counted_ = true;
  TurnPiece(t);
  const auto grow = [&batch](Total& total, SignalId signal) {
    const std::optional<double> value = FindSample(batch, signal);
    return value ? total.Grow(*value) : 0.0;
  };
  growth.launches = grow(kernels_, SignalId::kKernelLaunches);
  growth.launches += grow(graphs_, SignalId::kGraphLaunches);
  growth.launch_seconds = grow(launch_seconds_, SignalId::kLaunchSeconds);
  growth.sync_calls = grow(sync_calls_, SignalId::kSyncCalls);
  growth.copy = grow(copy_seconds_, SignalId::kCopySeconds);
  growth.allocation = grow(allocation_seconds_, SignalId::kAllocationSeconds);
  const double open = FindSample(batch, SignalId::kOldestSyncSeconds).value_or(sync_open_seconds_);
  const auto synced = FindSample(batch, SignalId::kCudaSyncSeconds);
  if (synced && sync_seconds_.seen && *synced < sync_seconds_.value) sync_known_ = false;
  if (open > 0 || growth.launches > 0 || growth.sync_calls > 0) sync_known_ = true;
  if (sync_known_) {
    sync_open_seconds_ = open;
  } else if (sync_open_seconds_ > 0) {
    sync_open_seconds_ += growth.wall;  // it was, and nothing tells of an end
  }
  // Threads may wait side by side: of the wall, at most all of it.
  growth.sync = std::min(grow(sync_seconds_, SignalId::kCudaSyncSeconds), growth.wall);
  if (const auto share = FindSample(batch, SignalId::kCountedShare))
    counted_share_ = std::min(*share, 1.0);
  NoteLaunches(growth, FindSample(batch, SignalId::kLastLaunchAge).value_or(kUnknown),
               FindSample(batch, SignalId::kLargestLaunchGapSeconds).value_or(0), t, unheard_until);
  if (const auto failures = FindSample(batch, SignalId::kAllocationFailures)) {
    NoteFailures(*failures,
                 FindSample(batch, SignalId::kLastFailedAllocationBytes).value_or(kUnknown), t);
  }
  if (const auto errors = FindSample(batch, SignalId::kCudaErrors)) errors_.Grow(*errors);
  // Over a gap the counts may have begun anew: it is of no piece.
  if (last_ < unheard_until) growth = {};
  current_.wall_seconds += static_cast<float>(growth.wall);
  const double counted = std::max(counted_share_, kLeastCounted);
  current_.launches += static_cast<float>(growth.launches / counted);
  current_.launch_seconds += static_cast<float>(growth.launch_seconds / counted);
  current_.sync_calls += static_cast<float>(growth.sync_calls);
  current_.sync_seconds += static_cast<float>(growth.sync);
  current_.copy_seconds += static_cast<float>(growth.copy);
  current_.allocation_seconds += static_cast<float>(growth.allocation);
  current_.counted_share = std::min(current_.counted_share, static_cast<float>(counted_share_));
  if (const auto share = FindSample(batch, SignalId::kTimedShare))
    current_.timed_share = std::min(current_.timed_share, static_cast<float>(*share));
  last_ = t;
}

RankCalls* LaunchTracker::Find(const Speaker& speaker) {
  if (speaker.rank < 0) return nullptr;
  const auto found = ranks_.find(speaker.rank);
  if (found == ranks_.end() && ranks_.size() >= kMaxRanks) return nullptr;
  RankCalls& rank = found == ranks_.end() ? ranks_[speaker.rank] : found->second;
  if (speaker.process.pid != 0 && rank.process() != speaker.process) rank.Reset(speaker.process);
  return &rank;
}

void LaunchTracker::OnEvent(const Event& event, const Speaker& speaker, Timestamp t) {
  const bool failed = event.type == WireType(EventType::kAllocationFailed);
  if (!failed && event.type != WireType(EventType::kCudaCallFailed)) return;
  RankCalls* rank = Find(speaker);
  if (rank == nullptr) return;
  if (failed) {
    rank->OnAllocationFailed(TextOf(event, "call"), NumberOrNan(event, "bytes"), t);
  } else {
    rank->OnCallFailed(TextOf(event, "call"), NumberOrNan(event, "result"));
  }
}

void LaunchTracker::OnProcessExit(const ProcessKey& process) {
  for (auto& [number, rank] : ranks_) {
    if (rank.process() == process) rank.OnExit();
  }
}

void LaunchTracker::OnSamples(const SampleBatch& batch, const Speaker& speaker, Timestamp t) {
  if (speaker.rank < 0) return;
  bool cuda = false;
  const Sample* cpu = nullptr;
  for (const Sample& sample : batch.samples) {
    cuda = cuda || IsCuda(sample.signal);
    if (sample.signal == SignalId::kCpuSeconds) cpu = &sample;
  }
  if (cpu != nullptr) {
    if (const auto known = ranks_.find(speaker.rank);
        known != ranks_.end() && known->second.process() == speaker.process)
      known->second.OnCpu(static_cast<double>(cpu->value));
  }
  if (!cuda) return;
  if (RankCalls* rank = Find(speaker)) rank->OnSamples(batch, t, speaker.unheard_until);
}

}  // namespace rankscope::windows
