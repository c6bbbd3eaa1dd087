// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/families/confidence.h"

#include <array>

namespace rankscope::families {
namespace {

constexpr int kGrounds = proto::GROUND_RECORD;

struct Row {
  Group group;
  std::array<double, kGrounds> right;  // from GROUND_HEURISTIC on
};

constexpr std::array<Row, kGroups> kRows = {{
#define GROUP(group, ...) {Group::group, {__VA_ARGS__}},
#include "detectors/families/confidence.inc"
#undef GROUP
}};

constexpr double kMaxOfOneStore = 0.85;

constexpr bool IsSound(const Row& row, int number) {
  if (static_cast<int>(row.group) != number) return false;
  for (int i = 1; i < kGrounds; ++i) {
    if (row.right[i] < row.right[i - 1] || row.right[i] >= 1) return false;
  }
  return row.right[proto::GROUND_TWO_SOURCES - 1] <= kMaxOfOneStore;
}

constexpr bool AllSound() {
  for (int i = 0; i < kGroups; ++i) {
    if (!IsSound(kRows[i], i)) return false;
  }
  return true;
}

static_assert(AllSound(), "one row per group, in order, none falls, none of one store above 0.85");

}  // namespace

double Confidence(Group group, Ground ground) {
  const int number = ground == proto::GROUND_UNSPECIFIED ? 0 : ground - proto::GROUND_HEURISTIC;
  return kRows[static_cast<size_t>(group)].right[number];
}

}  // namespace rankscope::families
