// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What a verdict says beside its answer: sightings in the training's own numbers that deserve a
// look, errors that were survived, and known hazards (hazards.h). A warning is secondary: it never
// changes family, confidence or tier. Called once a verdict is otherwise built; loop thread.
#pragma once

#include <string_view>

#include "detectors/sentences/template.h"
#include "detectors/verdict/evidence_writer.h"
#include "detectors/verdict/verdict_builder.h"

namespace rankscope::engine {

// The closed list of kinds, for the documents and the metric's label.
struct WarningRow {
  std::string_view kind;
  std::string_view subject;
  std::string_view signal;    // of its evidence
  std::string_view severity;  // info: nothing to do unless something else is wrong; warning
  sentences::Template text;   // follows the evidence's sentence where that has one
  std::string_view remedy;
};
std::span<const WarningRow> Warnings();

void AddWarnings(const VerdictContext& context, EvidenceWriter& writer, proto::Verdict& verdict);

}  // namespace rankscope::engine
