// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Periodic numbers of one subject at three resolutions: every sample of the last two minutes,
// ten-second and one-minute means of the last hour. Columnar, one column per signal that was ever
// seen; a column is allocated once, at its first sample: (128 + 64 + 64) x 4 B + bookkeeping, so 60
// signals of 1,024 ranks take about 67 MB. History is in single precision, the newest number as it
// came: a counter of bytes must stay exact. Single writer.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "detectors/model/signals.h"
#include "detectors/model/time.h"

namespace rankscope::windows {

class SampleRings {
 public:
  static constexpr size_t kSeconds = 128;
  static constexpr size_t kTens = 64;
  static constexpr size_t kMinutes = 64;

  void Add(SignalId signal, double value, Timestamp t);

  // NaN when the signal was never seen.
  double Last(SignalId signal) const;
  Timestamp LastTime(SignalId signal) const;
  // Median of the newest `n` samples (at most kSeconds); NaN when none.
  double MedianOf(SignalId signal, size_t n) const;
  // How much a counter has grown over its newest `n` samples (at most kSeconds); NaN: fewer than
  // two, or it began again.
  double GrownOver(SignalId signal, size_t n) const;
  // The finished means of a coarse resolution, oldest first; the one being built is not among them.
  std::vector<float> TenSecondMeans(SignalId signal) const;
  std::vector<float> MinuteMeans(SignalId signal) const;
  bool Has(SignalId signal) const { return Find(signal) != nullptr; }
  // Calls `each(id, value)` with the newest number of each signal that was ever seen.
  template <typename Function>
  void EachNewest(Function each) const {
    for (const Column& column : columns_) each(column.signal, column.newest);
  }
  size_t bytes() const { return columns_.capacity() * sizeof(Column); }

  template <class A>
  void Fields(A& a) {
    a(columns_);
  }

 private:
  struct Coarse {  // a mean being built, and the ring of finished ones
    double sum = 0;
    int32_t count = 0;
    int64_t slot = -1;  // t / width of the mean being built
    template <class A>
    void Fields(A& a) {
      a(sum, count, slot);
    }
  };
  struct Column {
    SignalId signal{};
    Timestamp last;
    double newest = 0;
    uint32_t seconds = 0, tens = 0, minutes = 0;  // written so far
    Coarse ten, minute;
    std::array<float, kSeconds> second_ring{};
    std::array<float, kTens> ten_ring{};
    std::array<float, kMinutes> minute_ring{};
    template <class A>
    void Fields(A& a) {
      a(signal, last, newest, seconds, tens, minutes, ten, minute, second_ring, ten_ring,
        minute_ring);
    }
  };

  const Column* Find(SignalId signal) const;
  Column& FindOrAdd(SignalId signal);

  std::vector<Column> columns_;  // by first sight; sources send the same order each time
  size_t hint_ = 0;              // the column after the one written last
};

}  // namespace rankscope::windows
