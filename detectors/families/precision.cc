// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// X24 and X26: training that goes through its motions and learns nothing, for a reason that it
// prints: a loss scale that falls and falls, rewards that tell nothing apart.
#include <cmath>

#include "detectors/families/curve.h"
#include "detectors/families/rows.h"

namespace rankscope::families {
namespace {

using features::Cause;
using features::JobFeatures;
using features::kNoEvidence;
using features::LossScaleFeatures;
using features::RewardFeatures;

bool IsScaleCollapse(const logs::Incident& incident) {
  return incident.kind == logs::IncidentKind::kNonFiniteLoss && incident.sub == "scale_minimum";
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

// Groups whose rewards are all equal have no advantage to learn from. Where every answer is right,
// that is success.
bool NothingToTellApart(const RewardFeatures& reward) {
  constexpr int64_t kLong = 50;
  if (reward.trailing_flat < kLong) return false;
  const bool known = std::isfinite(reward.first) && std::isfinite(reward.last);
  const bool solved = known && reward.last > reward.first &&
                      reward.last >= reward.best - 0.05 * std::abs(reward.best);
  return !solved;
}

bool LeftItsReference(const RewardFeatures& reward) {
  constexpr int64_t kRecords = 74;  // 64 for what is usual, ten of the end
  constexpr double kTimes = 10;
  constexpr double kFar = 0.1;  // nats; below it ten times nothing is nothing
  return reward.kl_records >= kRecords && reward.usual_kl > 0 &&
         reward.last_kl > kTimes * reward.usual_kl && reward.last_kl > kFar;
}

}  // namespace

Finding EvaluateX24(const JobFeatures& f) {
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

RuledOut RuleOutX24(const JobFeatures& f) {
  for (const Cause& cause : f.causes) {
    if (!IsScaleCollapse(cause.incident())) continue;
    if (cause.role == Cause::Role::kRecovered)
      return Excluded("the run went on after it", {cause.evidence, f.last_progress_evidence});
    return Excluded("another event explains the end", {cause.evidence});
  }
  if (f.loss_scale.falls > 0) {
    return Excluded("the loss scale fell " + std::to_string(f.loss_scale.falls) +
                        " times in a row, and " + std::to_string(f.loss_scale.records_since) +
                        " training records follow",
                    {f.loss_scale.last_evidence});
  }
  return NoSuchText(f, "no loss scale at its minimum");
}

Finding EvaluateX26(const JobFeatures& f) {
  if (f.Primary() != nullptr) return {};
  const bool flat = NothingToTellApart(f.reward);
  if (!flat && !LeftItsReference(f.reward)) return {};
  Finding finding;
  finding.matched = true;
  finding.sub = flat ? "no_spread" : "kl_blowup";
  finding.tier = proto::TIER_S;
  finding.domain = proto::DOMAIN_WORKLOAD;
  finding.component = "training";
  finding.symptom = "wrong_result";
  const features::EvidenceRef root = flat ? f.reward.flat_evidence : f.reward.kl_evidence;
  Show(root, finding);
  finding.root = {root};
  finding.onset = f.evidence[static_cast<size_t>(root)].begin;
  Show(f.reward.first_evidence, finding);
  Show(f.reward.last_evidence, finding);
  ShowLeave(f, finding);
  if (f.exit_known) Show(f.exit_evidence, finding);
  finding.values = {{"records", std::to_string(f.reward.trailing_flat)},
                    {"kl", Number(f.reward.last_kl)},
                    {"usual_kl", Number(f.reward.usual_kl)}};
  finding.open.push_back(Question::kRewardCause);
  return finding;
}

RuledOut RuleOutX26(const JobFeatures& f) {
  const RewardFeatures& reward = f.reward;
  if (reward.records == 0) {
    return f.progress > 0 ? Excluded("no reward in " + Counted(static_cast<double>(f.progress),
                                                               "training record"),
                                     {f.last_progress_evidence})
                          : NotDecidable(proto::STORE_LOG, "no training record is readable");
  }
  if (const Cause* primary = f.Primary())
    return Excluded("another event ended the run", {primary->evidence});
  if (reward.trailing_flat == 0 && std::isfinite(reward.last)) {
    return Excluded("rewards still differ within their groups", {reward.last_evidence});
  }
  return NotDecidable(proto::STORE_LOG, "too few records without a difference of rewards: " +
                                            std::to_string(reward.trailing_flat));
}

}  // namespace rankscope::families
