// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Why a family is ruled out or open, in words. Pure; any thread.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "detectors/families/reason.h"
#include "detectors/sentences/facts.h"
#include "detectors/sentences/template.h"

namespace rankscope::sentences {

struct ReasonRow {
  families::Reason reason;
  Template text;
  FactList facts;
};

// In the order of Reason.
std::span<const ReasonRow> ReasonRows();

// Empty for kNone, and where a value that the sentence needs is absent.
std::string ReasonText(families::Reason reason, const FieldValues& values);

std::vector<std::string> ReasonFacts(families::Reason reason, const FieldValues& values);

}  // namespace rankscope::sentences
