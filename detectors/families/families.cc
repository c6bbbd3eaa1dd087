// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include <array>

#include "detectors/families/family.h"
#include "detectors/families/rows.h"

namespace rankscope::families {
namespace {

constexpr Duration kAtOnce{};
constexpr Duration kTwoTicks = Seconds(2);

constexpr std::array kFamilies = {
#define FAMILY(code, name, group, incident, hold, clear, what) \
  FamilyRow{#code, Group::group, incident, hold, clear, name::Evaluate, name::RuleOut},
#include "detectors/families/families.inc"
#undef FAMILY
};

}  // namespace

std::span<const FamilyRow> Families() {
  return kFamilies;
}

}  // namespace rankscope::families
