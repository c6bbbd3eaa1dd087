// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include <array>
#include <string_view>

#include "detectors/families/family.h"
#include "detectors/families/rows.h"
#include "detectors/families/target.h"

namespace rankscope::families {
namespace {

constexpr Duration kAtOnce{};
constexpr Duration kTwoTicks = Seconds(2);

using EvaluateFunction = Finding (*)(const features::JobFeatures&);

template <EvaluateFunction evaluate, bool of_rank>
Finding Paced(const features::JobFeatures& f) {
  return AgainstTarget(f, evaluate(f), of_rank);
}

// A family of pace is measured against the run's target.
template <EvaluateFunction evaluate>
constexpr EvaluateFunction Measured(std::string_view code, Group group) {
  if (group != Group::kPace) return evaluate;
  const bool of_rank = code == "D3" || code == "X14" || code == "X17";
  return of_rank ? Paced<evaluate, true> : Paced<evaluate, false>;
}

constexpr std::array kFamilies = {
#define FAMILY(code, name, group, incident, hold, clear, what)                         \
  FamilyRow{#code,        Group::group, incident,                                      \
            hold,         clear,        Measured<name::Evaluate>(#code, Group::group), \
            name::RuleOut},
#include "detectors/families/families.inc"
#undef FAMILY
};

}  // namespace

std::span<const FamilyRow> Families() {
  return kFamilies;
}

}  // namespace rankscope::families
