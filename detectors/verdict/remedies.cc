// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/verdict/remedies.h"

#include <array>

namespace rankscope::engine {
namespace {

constexpr auto kNever = proto::RETRY_CANNOT_RECOVER;
constexpr auto kMaybe = proto::RETRY_MAY_RECOVER;
constexpr auto kUnknownOutlook = proto::RETRY_UNKNOWN;

constexpr std::array kRemedies = {
#define REMEDY(code, sub, implies, remedy, immediate, structural, verify, retry) \
  RemedyRow{code, sub, implies, remedy, immediate, structural, verify, retry},
#include "detectors/sentences/remedies_slow.inc"
// The last row of all is the one for everything else.
#include "detectors/sentences/remedies_ended.inc"
#undef REMEDY
};

}  // namespace

std::span<const RemedyRow> Remedies() {
  return kRemedies;
}

const RemedyRow& FindRemedy(std::string_view code, std::string_view sub) {
  constexpr std::string_view kAnyFamily = "*", kAnySub = "*";
  const RemedyRow* any = &kRemedies.back();
  const RemedyRow* shared = nullptr;
  for (const RemedyRow& row : kRemedies) {
    if (row.code == kAnyFamily && row.sub == sub && sub != kAnySub) shared = &row;
    if (row.code != code) continue;
    if (row.sub == sub) return row;
    if (row.sub == kAnySub) any = &row;
  }
  return shared != nullptr ? *shared : *any;
}

}  // namespace rankscope::engine
