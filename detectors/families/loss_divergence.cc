// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// E1: the loss is not a number, rose and stayed, or never moved. Judged between medians and in
// logarithms, so that a loss of 10 and one of 0.1 are judged alike and noise counts as little as
// the number of points allows; a spike is not judged while it may still come back.
#include <algorithm>
#include <cmath>

#include "detectors/families/curve.h"
#include "detectors/families/rows.h"
#include "detectors/model/subs.h"

namespace rankscope::families {

using features::JobFeatures;
using features::kNoEvidence;
using features::LossFeatures;

namespace {

// Below this many points three values and common sense are all there is.
constexpr int64_t kShortest = 3;

// A training that begins spikes: from random weights, at full learning rate, before any averages
// have settled. By this step it is over.
constexpr double kPastBeginning = 100;

constexpr double kTenPercent = 0.1, kTwice = 0.69;  // in logarithms

// Losses that differ by a fifth of themselves and more, as those of adversaries do, hide any trend.
constexpr double kLoud = 0.2;

bool IsNotFinite(const JobFeatures& f) {
  const LossFeatures& loss = f.loss;
  if (loss.trailing_nonfinite >= 3) return true;
  return loss.trailing_nonfinite >= 1 && !f.running;
}

// The same of a program that prints its loss in words of its own, where nothing else is known of
// the loss. One value may be the mean of nothing.
bool OwnLossIsNotFinite(const JobFeatures& f) {
  constexpr int64_t kRunning = 5, kEnded = 2;
  return f.loss.points == 0 && f.progress == 0 && f.metric.lost >= (f.running ? kRunning : kEnded);
}

// It fell to exactly 0 at once, from where it was, and stays there. Losses that are learned away
// are small before they are rounded to 0.
bool IsZero(const LossFeatures& loss) {
  constexpr int64_t kRecords = 10;
  constexpr double kShare = 0.05;    // of where it began
  constexpr double kRounded = 0.01;  // below it two printed decimals are 0
  return loss.trailing_zeros >= kRecords && loss.before_zeros > kRounded &&
         loss.before_zeros > kShare * std::abs(loss.first);
}

// Every step of late has a gradient that is not finite. Loss scaling skips some such steps while it
// searches, and now and then one; and where the loss goes on falling the norm is only printed
// wrong.
bool GradientsAreNotFinite(const LossFeatures& loss) {
  constexpr int64_t kRecords = 30;
  constexpr double kFalls = 0.97;
  return loss.trailing_bad_grads >= kRecords && loss.at_bad_grads > 0 &&
         loss.end >= kFalls * loss.at_bad_grads;
}

// The curve ends high and does not come down again.
bool StaysUp(const LossFeatures& loss) {
  const double climbed = loss.peak_after_lowest - loss.lowest;
  const double recovered = climbed > 0 ? (loss.peak_after_lowest - loss.end) / climbed : 0;
  constexpr double kHardly = 0.2, kHalf = 0.5;
  return recovered < kHardly || (recovered < kHalf && loss.late_trend_z > -kTrendZ);
}

// A few records of a run that is well past its beginning: there the loss moves by per cents, and
// half as much again is no noise.
std::string_view ShortDivergence(const JobFeatures& f) {
  const LossFeatures& loss = f.loss;
  if (f.running || loss.points < kShortest || loss.trailing_nonfinite > 0) return {};
  if (!(f.resume.first_step >= kPastBeginning) || !(loss.first > 0)) return {};
  constexpr double kHalfMore = 0.34;  // ln 1.4
  const double risen = std::log(loss.last / loss.first);
  const double peak = std::log(loss.highest / loss.first);
  if (risen >= kHalfMore) return subs::kRose;
  return peak >= kHalfMore && risen >= kTenPercent ? subs::kRose : std::string_view();
}

// The run is over and its last few records climb away, above where it began: what it leaves behind
// is no model, whether or not it would have come back.
bool EndsOnARise(const JobFeatures& f) {
  const LossFeatures& loss = f.loss;
  constexpr int64_t kRecords = 3;
  return !f.running && loss.points_climbing >= kRecords && loss.first > 0 && loss.end > 0 &&
         std::log(loss.last / loss.first) > kTwice && std::log(loss.last / loss.end) > kTwice;
}

// It has come down from as high before, and more than once.
bool Swings(const LossFeatures& loss) {
  constexpr double kHigher = 1.5;
  constexpr int64_t kLonger = 3;
  return std::log(loss.end / loss.lowest) < kHigher * loss.log_swing &&
         loss.points_above < kLonger * loss.points_of_swing;
}

std::string_view LongDivergence(const JobFeatures& f) {
  const LossFeatures& loss = f.loss;
  if (loss.start <= 0 || loss.end <= 0 || loss.lowest <= 0) return {};
  if (loss.log_noise <= 0 && loss.noise <= 0) return {};
  const double sigma = loss.log_noise > 0 ? loss.log_noise : loss.noise / std::abs(loss.start);
  const auto error = [sigma](int64_t a, int64_t b) {
    constexpr double kMedianEfficiency =
        1.2533;  // standard error of a median against that of a mean
    return kMedianEfficiency * sigma *
           std::sqrt(1.0 / static_cast<double>(a) + 1.0 / static_cast<double>(b));
  };
  constexpr double kSigmas = 6;
  const double rise_error = error(loss.start_points, loss.end_points);
  const double regained = std::log(loss.end / loss.lowest);
  const double gained = std::log(loss.start / loss.lowest);
  const bool up = regained > kSigmas * error(loss.lowest_points, loss.end_points) && StaysUp(loss);
  if (!up || Swings(loss)) return {};
  // Few records are of many steps each; while more may come, a handful of them is no plateau.
  const int64_t few = f.running ? 20 : 5;
  const bool for_long = loss.points_above >= std::max<int64_t>(50, loss.points / 20) ||
                        loss.points_above >= std::max<int64_t>(few, loss.points / 4);
  const double risen = std::log(loss.end / loss.start);
  // A run that goes on may come back from less than twice the loss.
  if (f.running && risen < kTwice && !for_long) return {};
  // Where one batch differs from the next by a fifth, levels wander as well.
  if (risen < kTwice && sigma >= kLoud) return {};
  if (risen > std::max(kTenPercent, kSigmas * rise_error)) return subs::kRose;
  // Against the very first records too: an early spike makes the first points a poor yardstick.
  const double first_error = error(std::min<int64_t>(loss.points, 3), loss.end_points);
  if (loss.first_three > 0 &&
      std::log(loss.end / loss.first_three) > std::max(kTenPercent, kSigmas * first_error)) {
    return subs::kRose;
  }
  constexpr double kGaveBack = 0.3;  // of what had been learned
  if (gained > kSigmas * rise_error && regained > std::max(kTenPercent, kGaveBack * gained) &&
      for_long) {
    return subs::kPlateau;
  }
  return {};
}

// The loss of a run of some length shows no trend.
bool IsFlat(const LossFeatures& loss, int64_t least = 200) {
  if (loss.points < least || loss.start <= 0) return false;
  if (std::max(loss.noise, loss.swing) >= kLoud * loss.start) return false;
  return std::abs(loss.start - loss.end) < std::max(0.01 * loss.start, 2 * loss.noise) &&
         std::abs(loss.trend_z) < kTrendZ;
}

// Flat for long, with a reason that the log itself shows.
std::string_view NotLearning(const JobFeatures& f) {
  const LossFeatures& loss = f.loss;
  constexpr int64_t kDead = 50;
  constexpr double kAnything = 0.01;  // below it a loss is rounded, not dead
  if (!LossMustFall(f) || loss.start <= 0) return {};
  // Not even noise: the output does not depend on the batch any more. Nothing was learned first.
  if (loss.points_still >= std::max<int64_t>(kDead, std::min<int64_t>(loss.points, 128) / 2) &&
      loss.last > kAnything && loss.end >= 0.99 * loss.first) {
    return subs::kFrozen;
  }
  // Many schedules end on a rate of 0: only a row of them keeps a run from learning.
  if (loss.trailing_zero_rates >= loss.points / 2 && IsFlat(loss, kDead)) return subs::kLrZero;
  if (!IsFlat(loss)) return {};
  if (std::isfinite(loss.late_grad_norm) && std::isfinite(loss.early_grad_norm) &&
      loss.late_grad_norm < 0.01 * loss.early_grad_norm) {
    return subs::kFrozen;
  }
  return {};
}

// The gradient norm has left its own order of magnitude together with the loss.
bool GradientsExploded(const LossFeatures& loss) {
  constexpr double kExplosion = 5;
  return std::isfinite(loss.highest_grad_norm) && loss.early_grad_norm > 0 &&
         loss.highest_grad_norm >= kExplosion * loss.early_grad_norm;
}

// Cross entropy begins at the logarithm of the number of classes, 14 for a million of them. Sums
// over elements and squares of raw units are larger by right, so that size alone says nothing
// before a 32-bit float itself becomes too coarse.
constexpr double kHuge = 1e4, kBeyondFloats = 1e12;

// The highest in use are some tens (averaged SGD of language models, linear probes).
constexpr double kAbsurdRate = 1000;

// The loss stands high above what it can be from its beginning on, and something besides its size
// says that it should not.
struct Explosion {
  bool found = false;
  bool by_rate = false;
  proto::Tier tier = proto::TIER_W;
  Ground cap = proto::GROUND_RECORD;
  FieldValues why;
};

Explosion Exploded(const JobFeatures& f) {
  const LossFeatures& loss = f.loss;
  Explosion explosion;
  constexpr int64_t kSettled = 30;  // records of a run that goes on: a beginning may be wild
  if (loss.points < (f.running ? kSettled : kShapePoints) || loss.trailing_nonfinite > 0) return {};
  const bool falls = loss.end < 0.5 * loss.start || loss.trend_z < -kTrendZ;
  if (!(loss.end >= kHuge) || falls) return {};
  int strong = 0;
  if (loss.highest_learning_rate >= kAbsurdRate) {
    explosion.by_rate = true;
    strong += 2;
    explosion.why.Set(FieldId::kLearningRate, loss.highest_learning_rate);
  }
  constexpr double kTenfold = 10, kOrders = 1000, kLarge = 1e8;
  const bool grew = loss.first > 0 && loss.end >= kTenfold * loss.first;
  if (grew) {
    strong += loss.end >= kOrders * loss.first ? 1 : 0;
    explosion.why.Set(FieldId::kFirstLoss, loss.first);
  }
  if (loss.late_grad_norm == 0) {
    ++strong;
    explosion.why.Set(FieldId::kGradNorm, 0.0);
  } else if (loss.highest_grad_norm >= kLarge) {
    ++strong;
    explosion.why.Set(FieldId::kGradNorm, loss.highest_grad_norm);
  }
  const bool too_coarse = loss.end >= kBeyondFloats;
  if (too_coarse) {
    constexpr int kMantissa = 23;
    explosion.why.Set(FieldId::kResolution, std::exp2(std::floor(std::log2(loss.end)) - kMantissa));
  }
  explosion.found = strong > 0 || grew || too_coarse;
  if (strong > 0) explosion.tier = proto::TIER_S;
  if (strong == 1) explosion.cap = cap::kEvenOdds;
  return explosion;
}

}  // namespace

bool LossMustFall(const JobFeatures& f) {
  return !f.reward_objective;
}

std::string_view Divergence(const JobFeatures& f) {
  if (IsNotFinite(f) || OwnLossIsNotFinite(f)) return subs::kNonfinite;
  const LossFeatures& loss = f.loss;
  if (loss.trailing_silent_nan >= 2) return subs::kSilentNan;
  if (!LossMustFall(f) || loss.rate_sweep) return {};
  if (GradientsAreNotFinite(loss)) return subs::kGradient;
  if (IsZero(loss)) return subs::kZero;
  if (loss.points < kShapePoints) return ShortDivergence(f);
  const Explosion explosion = Exploded(f);
  if (explosion.by_rate) return subs::kExploded;
  if (const std::string_view sub = LongDivergence(f); !sub.empty()) return sub;
  if (explosion.found) return subs::kExploded;
  return EndsOnARise(f) ? subs::kRose : std::string_view();
}

bool EndedWithoutALoss(const JobFeatures& f, const features::Cause& end) {
  constexpr int64_t kRow = 10;
  return IsDisposition(end.event) && f.loss.trailing_nonfinite >= kRow;
}

bool HasNotMoved(const JobFeatures& f) {
  return LossMustFall(f) && Divergence(f).empty() && NotLearning(f).empty() && IsFlat(f.loss);
}

namespace {

features::EvidenceRef RootOf(const JobFeatures& f, std::string_view sub, bool own_words) {
  if (own_words) return f.metric.lost_evidence;
  return sub == subs::kNonfinite   ? f.loss.nonfinite_evidence
         : sub == subs::kSilentNan ? f.loss.silent_nan_evidence
         : sub == subs::kPlateau   ? f.loss.lowest_evidence
         : sub == subs::kZero      ? f.loss.zero_evidence
         : sub == subs::kGradient  ? f.loss.bad_grad_evidence
                                   : f.loss.end_evidence;
}

}  // namespace

namespace loss_divergence {

Finding Evaluate(const JobFeatures& f) {
  // A failed run is judged by what failed it; NaN text ("stopping training") is such an event and
  // belongs here.
  const features::Cause* primary = f.Primary();
  const bool nan_text =
      primary != nullptr && primary->incident().kind == logs::IncidentKind::kNonFiniteLoss;
  const bool ended_for_it = primary != nullptr && EndedWithoutALoss(f, *primary);
  if (primary != nullptr && !nan_text && !ended_for_it) return {};
  std::string_view sub = Divergence(f);
  // A handful of records, of a short run or at the end of a long one, is little to go by.
  bool weak = sub == subs::kRose && (f.loss.points < kShapePoints || LongDivergence(f).empty());
  Ground cap = proto::GROUND_RECORD;
  if (nan_text && sub.empty()) sub = subs::kNonfinite;
  if (sub.empty()) {
    sub = NotLearning(f);
    if (sub == subs::kFrozen) cap = cap::kLookalike;
  }
  if (sub.empty()) return {};
  // A loss with a margin is exactly 0 once all is told apart; one that ran away first is not.
  if (sub == subs::kZero && f.loss.spikes == 0) cap = cap::kLookalike;
  const Explosion explosion = sub == subs::kExploded ? Exploded(f) : Explosion();
  Finding finding;
  finding.matched = true;
  finding.sub = sub;
  finding.domain = proto::DOMAIN_WORKLOAD;
  finding.component = "training";
  finding.symptom = "wrong_result";
  finding.tier = weak ? proto::TIER_W : proto::TIER_S;
  if (weak && sub == subs::kRose && GradientsExploded(f.loss)) {
    finding.tier = proto::TIER_S;
    cap = cap::kEvenOdds;
  }
  if (explosion.found) {
    finding.tier = explosion.tier;
    cap = explosion.cap;
  }
  // A loss that rises a little under a warm-up that is not over may yet turn.
  if (sub == subs::kRose && f.loss.rate_climbs && f.loss.end < 2 * f.loss.start)
    cap = std::min(cap, cap::kEvenOdds);
  const bool own_words = sub == subs::kNonfinite && !nan_text && f.loss.points == 0;
  constexpr int64_t kOften = 10;
  if (own_words && f.metric.lost < kOften) cap = std::min(cap, cap::kEvenOdds);
  finding.cap = cap;
  if (nan_text) {
    finding.shows.push_back(primary->evidence);
    finding.root.push_back(primary->evidence);
    finding.onset = primary->incident().t;
    if (f.loss.nonfinite_evidence != kNoEvidence) finding.tier = proto::TIER_C;
  }
  const features::EvidenceRef root = RootOf(f, sub, own_words);
  if (root != kNoEvidence) {
    finding.shows.push_back(root);
    finding.root.push_back(root);
    if (finding.onset.ns == 0) finding.onset = f.evidence[static_cast<size_t>(root)].begin;
  }
  ShowCurve(f, finding);
  Show(f.loss.lowest_evidence, finding);
  Show(f.loss.highest_evidence, finding);
  // A rate that cannot be is the cause.
  const bool by_rate =
      explosion.by_rate || (sub == subs::kNonfinite && f.loss.highest_learning_rate >= kAbsurdRate);
  if (sub == subs::kLrZero || by_rate) Show(f.loss.learning_rate_evidence, finding);
  Show(f.loss.grad_norm_evidence, finding);
  if (GradientsExploded(f.loss)) Show(f.loss.highest_grad_norm_evidence, finding);
  Show(f.loss_scale.last_evidence, finding);
  ShowLeave(f, finding);
  if (f.exit_known) Show(f.exit_evidence, finding);
  finding.values = explosion.why;
  finding.values.Set(FieldId::kLowest, f.loss.lowest);
  if (sub == subs::kZero) finding.values.Set(FieldId::kLossBefore, f.loss.before_zeros);
  if (sub == subs::kZero) Show(f.loss.spike_evidence, finding);
  if (nan_text && !f.running && f.loss.trailing_nonfinite == 0)
    finding.values.Set(FieldId::kOutcome, "stopped");
  if (f.loss.never_finite) finding.values.Set(FieldId::kNeverFinite, "yes");
  if (explosion.found && !explosion.by_rate) finding.open.push_back(Question::kObjectiveScale);
  if (!by_rate) finding.open.push_back(Question::kDivergenceCause);
  return finding;
}

RuledOut RuleOut(const JobFeatures& f) {
  if (f.loss.points == 0 && f.progress == 0 && f.Primary() != nullptr) {
    return Excluded(Reason::kOtherEvent, {f.Primary()->evidence}, {{FieldId::kWhat, "training"}});
  }
  if (f.loss.points == 0)
    return NotDecidable(proto::STORE_LOG, Reason::kNoLoss, {{FieldId::kLines, f.lines}});
  if (!LossMustFall(f)) return NotDecidable(proto::STORE_LOG, Reason::kLossNeedNotFall);
  if (f.loss.rate_sweep) {
    return NotDecidable(proto::STORE_LOG, Reason::kRateRangeTest);
  }
  if (!Divergence(f).empty()) {
    return NotDecidable(proto::STORE_LOG, Reason::kCurveIsNotTheCause);
  }
  if (f.loss.points < kShapePoints) {
    return NotDecidable(proto::STORE_LOG, Reason::kFewLosses, {{FieldId::kPoints, f.loss.points}});
  }
  if (Learned(f)) {
    return Excluded(Reason::kLossFell, {f.loss.start_evidence, f.loss.end_evidence},
                    {{FieldId::kLossStart, f.loss.start}, {FieldId::kLossEnd, f.loss.end}});
  }
  return Excluded(Reason::kLossStays, {f.loss.start_evidence, f.loss.end_evidence},
                  {{FieldId::kWhat, f.loss.end > f.loss.start ? "rises" : "level"},
                   {FieldId::kLossStart, f.loss.start},
                   {FieldId::kLossEnd, f.loss.end}});
}

}  // namespace loss_divergence

}  // namespace rankscope::families
