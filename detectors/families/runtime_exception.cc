// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// X1: an exception in the middle of training.
#include <algorithm>

#include "detectors/families/curve.h"
#include "detectors/families/own_exception.h"
#include "detectors/families/rows.h"

namespace rankscope::families::runtime_exception {

using features::Cause;
using features::JobFeatures;

Finding Evaluate(const JobFeatures& f) {
  const Cause* primary = f.Primary();
  if (primary == nullptr || !IsMine(*primary)) return {};
  const When when = Place(f, *primary);
  if (when != When::kTraining && when != When::kUnknown) return {};
  Finding finding = Describe(f, *primary);
  if (when == When::kUnknown) finding.tier = proto::TIER_W;
  if (TrainedInNobodysWords(f, *primary)) {
    finding.tier = proto::TIER_S;
    finding.cap = std::min(finding.cap, cap::kLookalike);
  }
  if (TrainedInItsOwnWords(f)) {
    finding.tier = proto::TIER_S;
    finding.cap = std::min(finding.cap, cap::kEvenOdds);
    Show(f.metric.evidence, finding);
  }
  if (f.steps_evidence != features::kNoEvidence) finding.shows.push_back(f.steps_evidence);
  // Nothing of the training is lost where it had said its end, and only the text tells of this one.
  if (f.train_end && !f.exit_known) {
    Show(f.train_end_evidence, finding);
    finding.cap = std::min(finding.cap, cap::kLookalike);
  }
  // What is imported is mostly there before the first step. Records behind the line may have lain
  // in a buffer, or the program went on without it.
  const features::Evidence* const first = f.At(f.first_progress_evidence);
  const bool before_all = first != nullptr && primary->incident().offset < first->offset;
  if (before_all && primary->incident().frame == logs::FrameKind::kImport && !f.exit_known)
    finding.cap = std::min(finding.cap, cap::kEvenOdds);
  if (f.progress == 0 && when == When::kTraining) Show(f.collectives.advance_evidence, finding);
  return finding;
}

RuledOut RuleOut(const JobFeatures& f) {
  for (const Cause& cause : f.causes) {
    if (!IsMine(cause)) continue;
    if (cause.role == Cause::Role::kRecovered) {
      return Excluded(Reason::kWentOn, {cause.evidence, f.last_progress_evidence},
                      {{FieldId::kWhat, "exception"}});
    }
    if (cause.role != Cause::Role::kInitiating)
      return Excluded(Reason::kConsequence, {cause.evidence}, {{FieldId::kWhat, "exception"}});
    if (f.progress == 0) return Excluded(Reason::kNoStepBefore, {cause.evidence});
  }
  // One that another family names, as a failed allocation or write that was raised.
  for (const Cause& cause : f.causes) {
    if (IsMine(cause) || !cause.incident().exception_type.empty())
      return Excluded(Reason::kOtherFamily, {cause.evidence});
  }
  return NoSuchText(f, "exception");
}

}  // namespace rankscope::families::runtime_exception
