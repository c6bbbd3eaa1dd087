// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// X24: the loss scale collapses.
#include "detectors/families/curve.h"
#include "detectors/families/rows.h"
#include "detectors/model/subs.h"

namespace rankscope::families::precision_collapse {

using features::Cause;
using features::JobFeatures;
using features::LossScaleFeatures;

namespace {

bool IsScaleCollapse(const logs::Incident& incident) {
  return incident.kind == logs::IncidentKind::kNonFiniteLoss && incident.sub == subs::kScaleMinimum;
}

// Halvings in a row that are no search for the scale: the search is over after some fifty records,
// or some hundred steps where records are rare. A row that the run has left behind is over too.
bool KeepsFalling(const JobFeatures& f) {
  constexpr int64_t kFalls = 5;
  constexpr int64_t kSearchRecords = 50;
  constexpr double kSearchSteps = 200;
  constexpr int64_t kLeftBehind = 20;
  const LossScaleFeatures& scale = f.loss_scale;
  if (scale.falls < kFalls || scale.records_since >= kLeftBehind) return false;
  return scale.records_before >= kSearchRecords || scale.step_before >= kSearchSteps;
}

// At 1 and below nothing is scaled any more, and gradients still overflow.
bool ReachedTheBottom(const JobFeatures& f) {
  constexpr int64_t kFalls = 5;
  constexpr int64_t kLeftBehind = 20;
  const LossScaleFeatures& scale = f.loss_scale;
  return scale.falls >= kFalls && scale.value <= 1 && scale.records_since < kLeftBehind;
}

}  // namespace

Finding Evaluate(const JobFeatures& f) {
  const Cause* primary = f.Primary();
  Finding finding;
  if (primary != nullptr) {
    if (!IsScaleCollapse(primary->incident())) return {};
    finding = FromPrimary(f);
    finding.sub = "at_minimum";
  } else {
    const bool bottom = ReachedTheBottom(f);
    // Where the loss itself went wrong, that is the answer and this its cause.
    if ((!bottom && !KeepsFalling(f)) || !Divergence(f).empty()) return {};
    finding.matched = true;
    finding.sub = bottom ? "at_minimum" : "falling";
    finding.tier = proto::TIER_S;
    finding.onset = f.evidence[static_cast<size_t>(f.loss_scale.last_evidence)].begin;
    finding.root = {f.loss_scale.last_evidence};
  }
  finding.domain = proto::DOMAIN_WORKLOAD;
  finding.component = "precision";
  finding.symptom = "wrong_result";
  Show(f.loss_scale.first_evidence, finding);
  Show(f.loss_scale.last_evidence, finding);
  ShowCurve(f, finding);
  ShowLeave(f, finding);
  finding.open.push_back(Question::kDivergenceCause);
  return finding;
}

RuledOut RuleOut(const JobFeatures& f) {
  for (const Cause& cause : f.causes) {
    if (!IsScaleCollapse(cause.incident())) continue;
    if (cause.role == Cause::Role::kRecovered)
      return Excluded(Reason::kWentOn, {cause.evidence, f.last_progress_evidence});
    return Excluded(Reason::kOtherEvent, {cause.evidence});
  }
  if (f.loss_scale.falls > 0) {
    return Excluded(
        Reason::kScaleRecovered, {f.loss_scale.last_evidence},
        {{FieldId::kFalls, f.loss_scale.falls}, {FieldId::kRecords, f.loss_scale.records_since}});
  }
  return NoSuchText(f, "loss_scale");
}

}  // namespace rankscope::families::precision_collapse
