// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/model/signals.h"

#include <algorithm>
#include <array>

namespace rankscope {
namespace {

constexpr std::array kTable = {
#define SIGNAL(id, constant, name, unit, kind) \
  SignalRow{SignalId::constant, name, unit, SignalKind::kind},
#include "detectors/model/signals.inc"
#undef SIGNAL
};

constexpr bool Rising() {
  for (size_t i = 1; i < kTable.size(); ++i) {
    if (kTable[i].id <= kTable[i - 1].id) return false;
  }
  return true;
}
static_assert(Rising(), "signals.inc: ids must rise");

}  // namespace

std::span<const SignalRow> SignalTable() {
  return kTable;
}

std::optional<SignalRow> FindSignal(uint32_t id) {
  const auto row = std::lower_bound(
      kTable.begin(), kTable.end(), id,
      [](const SignalRow& r, uint32_t wanted) { return static_cast<uint32_t>(r.id) < wanted; });
  if (row == kTable.end() || static_cast<uint32_t>(row->id) != id) return std::nullopt;
  return *row;
}

}  // namespace rankscope
