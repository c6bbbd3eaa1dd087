// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// A1: dies before the first training step by its own error.
#include <algorithm>

#include "detectors/families/own_exception.h"
#include "detectors/families/rows.h"

namespace rankscope::families::startup_crash {

using features::Cause;
using features::JobFeatures;

Finding Evaluate(const JobFeatures& f) {
  if (f.exec_failed) {
    Finding finding;
    finding.matched = true;
    finding.sub = "exec";
    finding.fault_class = "env";
    finding.domain = proto::DOMAIN_WORKLOAD;
    finding.component = "command";
    finding.tier = proto::TIER_P;
    finding.shows = finding.root = {f.exit_evidence};
    return finding;
  }
  const Cause* primary = f.Primary();
  if (primary == nullptr || !IsMine(*primary)) return {};
  const When when = Place(f, *primary);
  if (when == When::kTraining || when == When::kUnknown) return {};
  Finding finding = Describe(f, *primary);
  if (when == When::kProbablyStart) finding.cap = cap::kLookalike;
  if (when == When::kPerhapsStart) finding.tier = proto::TIER_W;
  // It may have trained where nobody can read it any more.
  if (f.beginning_unread && f.progress == 0) finding.cap = std::min(finding.cap, cap::kEvenOdds);
  return finding;
}

RuledOut RuleOut(const JobFeatures& f) {
  if (f.recognised)
    return Excluded(
        Reason::kTrainingBegan, {f.steps_evidence},
        {{FieldId::kSteps, f.steps}, {FieldId::kWhat, f.steps_known ? "steps" : "records"}});
  for (const Cause& cause : f.causes) {
    if (IsMine(cause) && cause.role != Cause::Role::kInitiating) {
      return Excluded(Reason::kConsequence, {cause.evidence}, {{FieldId::kWhat, "startup"}});
    }
    if (IsMine(cause) && &cause == f.Primary()) {
      return NotDecidable(proto::STORE_LOG, Reason::kStartNotKnown);
    }
  }
  if (const Cause* const others = FindCause(f, logs::IncidentKind::kException))
    return Excluded(Reason::kOtherFamily, {others->evidence});
  return NoSuchText(f, "exception");
}

}  // namespace rankscope::families::startup_crash
