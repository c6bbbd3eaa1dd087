// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/windows/trackers/checkpoint_tracker.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include "detectors/logs/record.h"
#include "detectors/model/event_types.h"
#include "detectors/windows/series/statistics.h"

namespace rankscope::windows {
namespace {

constexpr size_t kMaxName = 512;
constexpr int64_t kMostBytes = int64_t{1} << 60;  // a stranger's number; sums stay in range

int64_t Number(const Event& event, std::string_view key, int64_t otherwise) {
  for (const IntKeyValue& pair : event.num) {
    if (pair.key == key) return pair.value;
  }
  return otherwise;
}

// With its folder, where that is told: every checkpoint of a run may hold a model.pt.
std::string NameOf(const Event& event) {
  std::string_view name, directory;
  for (const KeyValue& pair : event.str) {
    if (pair.key == "name") name = std::string_view(pair.value).substr(0, kMaxName);
    if (pair.key == "directory") directory = std::string_view(pair.value).substr(0, kMaxName);
  }
  if (directory.empty()) return std::string(name);
  return std::string(directory) + '/' + std::string(name);
}

// Writing takes some seconds to some hours.
double SecondsOf(const Event& event) {
  const int64_t microseconds = Number(event, "microseconds", -1);
  const double seconds = microseconds >= 0 ? static_cast<double>(microseconds) * 1e-6
                                           : static_cast<double>(Number(event, "seconds", 0));
  return std::clamp(seconds, 0.0, 86400.0);
}

}  // namespace

void CheckpointTracker::OnEvent(const Event& event, const Speaker& speaker, Timestamp t) {
  if (event.type != WireType(EventType::kCheckpointWritten)) return;
  const std::string name = NameOf(event);
  const int64_t bytes = std::clamp<int64_t>(Number(event, "bytes", 0), 0, kMostBytes);
  const bool complete = Number(event, "complete", 1) != 0;
  const Timestamp begin = t - Seconds(SecondsOf(event));

  const bool goes_on = newest_.present() && (begin - newest_.end).seconds() <= kPauseSeconds;
  if (!goes_on) {
    if (newest_.present()) {
      intervals_.Push((begin - newest_.begin).seconds());
      newest_.free_bytes = free_bytes_;
      if (before_.present() && before_.free_bytes >= 0 && newest_.free_bytes >= 0)
        losses_.Push(before_.free_bytes - newest_.free_bytes);
      if (newest_.whole()) whole_ = newest_;
      before_ = newest_;
    }
    newest_ = {};
    newest_.begin = begin;
    ++saves_;
  }
  newest_.begin = std::min(newest_.begin, begin);
  newest_.end = std::max(newest_.end, t);
  ++newest_.files;
  newest_.bytes = std::min(newest_.bytes + bytes, kMostBytes);
  if (!complete) ++newest_.incomplete;
  if (bytes > newest_.largest) {
    newest_.largest = bytes;
    newest_.name = name;
  }
  if (!complete) {
    torn_.t = t;
    torn_.rank = speaker.rank;
    torn_.bytes = bytes;
    torn_.name = name;
  } else if (torn_.present() && torn_.name == name) {
    torn_ = {};  // written anew
  }
}

void CheckpointTracker::OnSamples(const SampleBatch& batch, const Speaker&, Timestamp) {
  for (const Sample& sample : batch.samples) {
    if (sample.signal == SignalId::kCheckpointFreeBytes && std::isfinite(sample.value) &&
        sample.value >= 0) {
      free_bytes_ = sample.value;
    }
  }
}

const SaveSeen& CheckpointTracker::newest_whole(Timestamp now) const {
  return newest_.whole() && !under_way(now) ? newest_ : whole_;
}

bool CheckpointTracker::under_way(Timestamp now) const {
  return newest_.present() && (now - newest_.end).seconds() <= kPauseSeconds;
}

double CheckpointTracker::IntervalSeconds() const {
  return intervals_.empty() ? logs::kAbsent : Median(intervals_.ToVector());
}

double CheckpointTracker::LossPerInterval() const {
  return losses_.empty() ? logs::kAbsent : Median(losses_.ToVector());
}

}  // namespace rankscope::windows
