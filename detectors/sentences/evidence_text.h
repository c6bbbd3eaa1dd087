// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Observations -> sentences, by the rows of evidence.inc; every number in a sentence is one of its
// observation. Pure; any thread.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "detectors/features/evidence.h"
#include "detectors/sentences/facts.h"
#include "detectors/sentences/template.h"

namespace rankscope::sentences {

struct EvidenceRow {
  features::EvidenceKind kind;
  std::string_view signal;  // machine name of what is observed: "loss", "wait_status"
  Condition when;
  Template text;
  FactList facts;
};
std::span<const EvidenceRow> EvidenceRows();

// The row that words this observation: each kind has one without a condition.
const EvidenceRow& FindRow(const features::Evidence& evidence);

std::string_view EvidenceSignal(features::EvidenceKind kind);
std::string EvidenceText(const features::Evidence& evidence);
// The observed value where it is not a number.
std::string_view ObservedText(const features::Evidence& evidence);

}  // namespace rankscope::sentences
