// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/sentences/reasons.h"

#include <array>

#include "detectors/sentences/render.h"

namespace rankscope::sentences {
namespace {

using families::Reason;

constexpr std::array kRows = {
#define REASON(reason, text, facts) ReasonRow{Reason::reason, text, facts},
#include "detectors/sentences/reasons.inc"
#undef REASON
};

constexpr bool EachReasonHasItsRow() {
  if (kRows.size() != families::kReasons) return false;
  for (size_t i = 0; i < kRows.size(); ++i) {
    if (kRows[i].reason != static_cast<Reason>(i)) return false;
  }
  return true;
}
static_assert(EachReasonHasItsRow());

}  // namespace

std::span<const ReasonRow> ReasonRows() {
  return kRows;
}

std::string ReasonText(Reason reason, const FieldValues& values) {
  return Render(kRows[static_cast<size_t>(reason)].text, values);
}

std::vector<std::string> ReasonFacts(Reason reason, const FieldValues& values) {
  return Facts(kRows[static_cast<size_t>(reason)].facts, values);
}

}  // namespace rankscope::sentences
