// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// X26: reinforcement learning without a signal.
#include <cmath>

#include "detectors/families/curve.h"
#include "detectors/families/rows.h"

namespace rankscope::families::reward_collapse {

using features::Cause;
using features::JobFeatures;
using features::RewardFeatures;

namespace {

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
  return (reward.kl_records >= kRecords || reward.kl_rose_early) && reward.usual_kl > 0 &&
         reward.last_kl > kTimes * reward.usual_kl && reward.last_kl > kFar;
}

// It has come to write on until it is cut, and is paid less than when it began. A reward that falls
// while completions end by themselves is another matter; so are completions that are cut from the
// start, as those of long chains of thought are.
bool Collapsed(const RewardFeatures& reward) {
  constexpr int64_t kRecords = 40;
  constexpr double kMostAreCut = 0.5, kMoreThanBefore = 0.3;
  constexpr double kFall = 0.2;  // of the best or the first, whichever is larger
  if (reward.reward_records < kRecords || !(reward.late_clipped >= kMostAreCut)) return false;
  if (!(reward.late_clipped - reward.early_clipped >= kMoreThanBefore)) return false;
  const double scale = std::max(std::abs(reward.best_median), std::abs(reward.first));
  return reward.last < reward.first && reward.best_median - reward.last > kFall * scale;
}

}  // namespace

Finding Evaluate(const JobFeatures& f) {
  if (f.Primary() != nullptr) return {};
  const bool flat = NothingToTellApart(f.reward);
  const bool collapsed = !flat && Collapsed(f.reward);
  if (!flat && !collapsed && !LeftItsReference(f.reward)) return {};
  Finding finding;
  finding.matched = true;
  finding.sub = flat ? "no_spread" : collapsed ? "collapsed" : "kl_blowup";
  finding.tier = proto::TIER_S;
  // A policy that begins at its reference departs from it, and some do so fast.
  if (!flat && !collapsed && f.reward.kl_rose_early) finding.cap = cap::kLookalike;
  finding.domain = proto::DOMAIN_WORKLOAD;
  finding.component = "training";
  finding.symptom = "wrong_result";
  const features::EvidenceRef root = flat        ? f.reward.flat_evidence
                                     : collapsed ? f.reward.clipped_evidence
                                                 : f.reward.kl_evidence;
  Show(root, finding);
  finding.root = {root};
  finding.onset = f.evidence[static_cast<size_t>(root)].begin;
  Show(f.reward.first_evidence, finding);
  Show(f.reward.last_evidence, finding);
  ShowLeave(f, finding);
  if (f.exit_known) Show(f.exit_evidence, finding);
  finding.values = {
      {FieldId::kRecords, f.reward.trailing_flat}, {FieldId::kKl, f.reward.last_kl},
      {FieldId::kUsualKl, f.reward.usual_kl},      {FieldId::kRewardStart, f.reward.first},
      {FieldId::kRewardEnd, f.reward.last},        {FieldId::kRewardBest, f.reward.best_median}};
  finding.open.push_back(Question::kRewardCause);
  return finding;
}

RuledOut RuleOut(const JobFeatures& f) {
  const RewardFeatures& reward = f.reward;
  if (reward.records == 0) {
    return f.progress > 0
               ? Excluded(Reason::kNoReward, {f.last_progress_evidence},
                          {{FieldId::kRecords, f.progress}})
               : NotDecidable(proto::STORE_LOG, Reason::kNoRecord, {{FieldId::kLines, f.lines}});
  }
  if (const Cause* primary = f.Primary())
    return Excluded(Reason::kOtherEvent, {primary->evidence}, {{FieldId::kWhat, "running"}});
  if (reward.trailing_flat == 0 && std::isfinite(reward.last)) {
    return Excluded(Reason::kRewardsDiffer, {reward.last_evidence});
  }
  return NotDecidable(proto::STORE_LOG, Reason::kFewFlatRewards,
                      {{FieldId::kRecords, reward.trailing_flat}});
}

}  // namespace rankscope::families::reward_collapse
