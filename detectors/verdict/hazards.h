// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Settings and versions that are known to hurt trainings, as a table: where to see them, what they
// do to whom, what to do, and who says so. A hazard is only mentioned (`info`) unless the symptom
// that it is known for is seen in the same run; then the warning says that it is supported. It is
// never the cause of a verdict: many runs live with one in good health. Pure; loop thread.
#pragma once

#include <span>
#include <string_view>

#include "detectors/sentences/template.h"
#include "detectors/verdict/evidence_writer.h"
#include "detectors/verdict/verdict_builder.h"

namespace rankscope::engine {

// Where a condition looks, and what it asks of the value there.
struct HazardCondition {
  enum class Where : uint8_t { kNowhere, kVariable, kFact };
  enum class Test : uint8_t { kSet, kOneOf, kBegins, kContains, kVersionBelow, kSharedPath };
  Where where = Where::kNowhere;
  std::string_view name;   // of the variable or the fact; several, '|' between them
  Test test = Test::kSet;  // kOneOf, kBegins, kContains: values with '|' between them
  std::string_view value;
};

struct HazardRow {
  std::string_view name;
  HazardCondition condition;
  HazardCondition unless;     // seen in the same run, and the hazard is none
  std::string_view symptoms;  // family codes, warning kinds and signals of evidence; ' ' between
  sentences::Template text;   // with {setting}, {name}, {value}
  std::string_view remedy;
  std::string_view source;
};
std::span<const HazardRow> Hazards();

// In words, for tables: "NCCL_PROTO is set".
std::string DescribeCondition(const HazardCondition& condition);

void AddHazards(const VerdictContext& context, EvidenceWriter& writer, proto::Verdict& verdict);

}  // namespace rankscope::engine
