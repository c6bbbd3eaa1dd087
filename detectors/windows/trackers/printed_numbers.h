// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The newest of each number that training records print and nothing else is made of: a row takes
// one from the record to /metrics. Bounded by the rows. Single writer.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include "detectors/logs/record.h"
#include "detectors/model/signals.h"

namespace rankscope::windows {

struct PrintedRow {
  SignalId id;
  double logs::Progress::*field;
  double scale = 1;
};

inline constexpr std::array kPrintedRows = {
    PrintedRow{SignalId::kTokensPerSecond, &logs::Progress::tokens_per_second},
    PrintedRow{SignalId::kSamplesPerSecond, &logs::Progress::samples_per_second},
    PrintedRow{SignalId::kModelFlops, &logs::Progress::tflops, 1e12},
    PrintedRow{SignalId::kModelFlopsShare, &logs::Progress::mfu},
    PrintedRow{SignalId::kLossScale, &logs::Progress::loss_scale},
    PrintedRow{SignalId::kGradientZeros, &logs::Progress::num_zeros},
    PrintedRow{SignalId::kParameterNorm, &logs::Progress::params_norm},
};

constexpr bool IsPrinted(SignalId id) {
  return std::any_of(kPrintedRows.begin(), kPrintedRows.end(),
                     [id](const PrintedRow& row) { return row.id == id; });
}

class PrintedNumbers {
 public:
  void Add(const logs::Progress& progress) {
    for (const PrintedRow& row : kPrintedRows) {
      const double value = progress.*row.field;
      if (std::isfinite(value)) Set(row.id, value * row.scale);
    }
  }

  // Calls `each(id, value)` for each number that was ever printed.
  template <typename Function>
  void Each(Function each) const {
    for (const auto& [id, value] : newest_) each(id, value);
  }

  template <class A>
  void Fields(A& a) {
    a(newest_);
    if (newest_.size() > kPrintedRows.size()) newest_.resize(kPrintedRows.size());  // damaged bytes
  }

 private:
  void Set(SignalId id, double value) {
    for (auto& [known, newest] : newest_) {
      if (known != id) continue;
      newest = value;
      return;
    }
    newest_.emplace_back(id, value);
  }

  std::vector<std::pair<SignalId, double>> newest_;
};

}  // namespace rankscope::windows
