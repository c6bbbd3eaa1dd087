// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Numbers of a job that its processes count, by the rows of signals.inc of origin Summed and Rate.
// A sum does not fall when a process ends, and a process that counts from 0 again adds what it has
// counted since. Bounded: 64 processes of a node x 200 B. Single writer.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <vector>

#include "detectors/model/observation.h"
#include "detectors/model/signal_table.h"
#include "detectors/model/time.h"
#include "detectors/windows/trackers/speaker.h"

namespace rankscope::windows {

constexpr bool IsOfProcesses(const SignalRow& row) {
  return row.scope == SignalScope::Job &&
         (row.origin == SignalOrigin::Summed || row.origin == SignalOrigin::Rate);
}

class ProcessTotals {
 public:
  static constexpr size_t kMaxProcesses = 64;
  static constexpr Duration kRateWindow = Seconds(60);
  static constexpr Duration kRateMin = Seconds(10);  // below this a rate is that of a burst

  void OnSamples(const SampleBatch& batch, const Speaker& speaker, Timestamp t);

  // tell(id, value) for each that is known.
  template <typename F>
  void Each(Timestamp now, F&& tell) const {
    for (size_t place = 0; place != kCount; ++place) {
      if (!known_[place]) continue;
      const SignalRow& row = kSignals[kRows[place]];
      const double value = row.origin == SignalOrigin::Rate ? RateOf(place, now) : grown_[place];
      if (value >= 0) tell(row.id, value);
    }
  }

 private:
  static constexpr size_t kCount =
      static_cast<size_t>(std::count_if(kSignals.begin(), kSignals.end(), IsOfProcesses));
  using Numbers = std::array<double, kCount>;
  static constexpr auto kRows = [] {
    std::array<size_t, kCount> rows{};
    size_t next = 0;
    for (size_t i = 0; i < kSignals.size(); ++i) {
      if (IsOfProcesses(kSignals[i])) rows[next++] = i;
    }
    return rows;
  }();

  struct Process {
    Timestamp heard;
    Numbers newest;  // negative: not counted
  };
  struct Point {
    Timestamp t;
    Numbers grown;
  };

  void Advance(Timestamp t);
  double RateOf(size_t place, Timestamp now) const;  // negative: not known

  std::map<ProcessKey, Process> processes_;
  std::array<bool, kCount> known_{};
  Numbers grown_{};  // of all processes that there have been
  Timestamp heard_;
  std::vector<Point> points_;  // one in 5 s, of the last minute
};

}  // namespace rankscope::windows
