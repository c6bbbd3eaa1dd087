// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Losses and rewards that are printed outside of training records, by their names: a value that is
// printed again and again and changes shows that something is being trained, whatever the program
// calls it. A listing of source code or a note on results prints no such row. Fed in order; single
// writer; bounded.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "detectors/windows/trackers/loss_tracker.h"

namespace rankscope::windows {

struct MetricRow {
  uint64_t name_hash = 0;
  std::string name;     // as first printed
  int64_t values = 0;   // how often it was printed
  int64_t changes = 0;  // how often with another value than before
  int64_t trailing_nonfinite = 0;
  double first = std::numeric_limits<double>::quiet_NaN();  // finite
  CitedPoint last;

  template <class A>
  void Fields(A& a) {
    a(name_hash, name, values, changes, trailing_nonfinite, first, last);
  }
};

class MetricSeries {
 public:
  static constexpr size_t kRows = 8;  // the row that changed least gives way to a new name

  void Add(std::string_view name, double value, uint32_t stream, int64_t offset,
           std::string_view line, Timestamp t);

  // The row that changed most often; nullptr where nothing was printed.
  const MetricRow* Longest() const;

  template <class A>
  void Fields(A& a) {
    a(rows_);
  }

 private:
  std::array<MetricRow, kRows> rows_;
};

}  // namespace rankscope::windows
