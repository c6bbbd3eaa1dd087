// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/windows/trackers/process_totals.h"

#include <utility>

namespace rankscope::windows {
namespace {

constexpr Duration kPointEvery = Seconds(5);
constexpr double kNotKnown = -1;

}  // namespace

void ProcessTotals::OnSamples(const SampleBatch& batch, const Speaker& speaker, Timestamp t) {
  if (speaker.process.pid == 0 || speaker.foreign) return;
  Process* process = nullptr;
  for (const Sample& sample : batch.samples) {
    for (size_t place = 0; place != kCount; ++place) {
      const SignalRow& row = kSignals[kRows[place]];
      if (row.id != sample.signal || !(sample.value >= 0)) continue;
      if (process == nullptr) {
        Advance(t);
        auto found = processes_.find(speaker.process);
        if (found == processes_.end()) {
          if (processes_.size() >= kMaxProcesses) {
            processes_.erase(std::min_element(
                processes_.begin(), processes_.end(),
                [](const auto& a, const auto& b) { return a.second.heard < b.second.heard; }));
          }
          found = processes_.emplace(speaker.process, Process{}).first;
          found->second.newest.fill(kNotKnown);
        }
        process = &found->second;
        process->heard = t;
      }
      double& newest = process->newest[place];
      const bool first = newest < 0;
      // What a process had counted before it was heard took a time that is not known.
      if (!first || row.origin == SignalOrigin::Summed)
        grown_[place] += first || sample.value < newest ? sample.value : sample.value - newest;
      newest = sample.value;
      known_[place] = true;
    }
  }
}

// Between two times, so that a point has what all processes sent at its own.
void ProcessTotals::Advance(Timestamp t) {
  if (t <= heard_) return;
  const Timestamp before = std::exchange(heard_, t);
  if (before.ns == 0 || (!points_.empty() && before - points_.back().t < kPointEvery)) return;
  points_.push_back({before, grown_});
  // The first one kept is the newest that is a whole window old.
  while (points_.size() > 1 && t - points_[1].t >= kRateWindow) points_.erase(points_.begin());
}

double ProcessTotals::RateOf(size_t place, Timestamp now) const {
  const Point* begin = nullptr;
  for (const Point& point : points_) {
    if (begin == nullptr || now - point.t >= kRateWindow) begin = &point;
  }
  if (begin == nullptr || now - begin->t < kRateMin) return kNotKnown;
  const auto counting = std::count_if(processes_.begin(), processes_.end(), [&](const auto& entry) {
    return entry.second.newest[place] >= 0 && now - entry.second.heard < kRateWindow;
  });
  if (counting == 0) return kNotKnown;
  const double seconds = static_cast<double>((now - begin->t).ns) * 1e-9;
  return (grown_[place] - begin->grown[place]) / seconds / static_cast<double>(counting);
}

}  // namespace rankscope::windows
