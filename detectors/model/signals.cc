// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/model/signals.h"

#include <algorithm>

#include "detectors/model/signal_table.h"

namespace rankscope {

std::span<const SignalRow> SignalTable() {
  return kSignals;
}

std::optional<SignalRow> FindSignal(uint32_t id) {
  const auto row = std::lower_bound(
      kSignals.begin(), kSignals.end(), id,
      [](const SignalRow& r, uint32_t wanted) { return static_cast<uint32_t>(r.id) < wanted; });
  if (row == kSignals.end() || static_cast<uint32_t>(row->id) != id) return std::nullopt;
  return *row;
}

}  // namespace rankscope
