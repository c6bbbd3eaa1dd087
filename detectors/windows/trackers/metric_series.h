// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Losses and rewards that are printed outside of training records, by their names: a value that is
// printed again and again and changes shows that something is being trained, whatever the program
// calls it. A listing of source code or a note on results prints no such row. A loss among them
// that is not finite any more is no loss either. Fed in order; single writer; bounded.
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
  int64_t finite_elsewhere = 0;  // values of other losses since this one was printed last
  bool is_loss = false;          // of the training, by its name or by the graph that hangs on it
  double first = std::numeric_limits<double>::quiet_NaN();  // finite
  CitedPoint last;
  CitedPoint first_nonfinite;  // of those at the end

  template <class A>
  void Fields(A& a) {
    a(name_hash, name, values, changes, trailing_nonfinite, finite_elsewhere, is_loss, first, last,
      first_nonfinite);
  }
};

class MetricSeries {
 public:
  static constexpr size_t kRows = 8;  // the row that changed least gives way to a new name

  // `has_graph`: the value was printed as a tensor that can be differentiated.
  void Add(std::string_view name, double value, bool has_graph, uint32_t stream, int64_t offset,
           std::string_view line, Timestamp t);

  // The row that changed most often; nullptr where nothing was printed.
  const MetricRow* Longest() const;

  // The loss of the training that ends in the longest row of values which are not finite; nullptr
  // where there is none. One whose name is not printed any more while other losses are does not
  // count.
  const MetricRow* NotFinite() const;

  template <class A>
  void Fields(A& a) {
    a(rows_);
  }

 private:
  std::array<MetricRow, kRows> rows_;
};

}  // namespace rankscope::windows
