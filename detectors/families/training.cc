// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// E1, E3, G1 and U0: what the training curve itself says when nothing ended the run by an event.
// Health needs positive evidence; a curve that cannot be read is unverifiable, never healthy.
#include <algorithm>
#include <cmath>

#include "detectors/families/rows.h"

namespace rankscope::families {
namespace {

using features::JobFeatures;
using features::kNoEvidence;
using features::LossFeatures;

// Below this many points a curve has no shape.
constexpr int64_t kShapePoints = 8;
// 5 % of a two-sided test on Mann-Kendall's z.
constexpr double kTrendZ = 1.96;
constexpr double kUndertrainedSteps = 10;
constexpr double kHealthySteps = 50;

// Rewards, preferences and adversaries make losses that may do anything.
bool LossMustFall(const JobFeatures& f) {
  return !f.reward_objective;
}

std::string_view Divergence(const JobFeatures& f) {
  const LossFeatures& loss = f.loss;
  if (loss.trailing_nonfinite >= 3) return "nonfinite";
  if (loss.trailing_nonfinite >= 1 && !f.running && loss.points >= 1 &&
      loss.trailing_nonfinite == loss.nonfinite && loss.points <= kShapePoints) {
    return "nonfinite";  // a short run that ends on NaN
  }
  if (loss.trailing_nonfinite >= 1 && !f.running) return "nonfinite";
  if (loss.trailing_silent_nan >= 2) return "silent_nan";
  if (!LossMustFall(f) || loss.points < kShapePoints || loss.start <= 0) return {};
  if (loss.log_noise <= 0 && loss.noise <= 0) return {};
  // In logarithms, so that a loss of 10 and one of 0.1 are judged alike; between medians, so that
  // noise counts as little as their number of points allows.
  const double sigma = loss.log_noise > 0 ? loss.log_noise : loss.noise / std::abs(loss.start);
  const auto error = [sigma](int64_t a, int64_t b) {
    constexpr double kMedianEfficiency =
        1.2533;  // standard error of a median against that of a mean
    return kMedianEfficiency * sigma *
           std::sqrt(1.0 / static_cast<double>(a) + 1.0 / static_cast<double>(b));
  };
  constexpr double kSigmas = 6;
  if (loss.end <= 0 || loss.lowest <= 0) return {};
  const double risen = std::log(loss.end / loss.start);
  const double regained = std::log(loss.end / loss.lowest);
  const double gained = std::log(loss.start / loss.lowest);
  const double rise_error = error(loss.start_points, loss.end_points);
  const double regain_error = error(loss.lowest_points, loss.end_points);
  constexpr double kTenPercent = 0.1, kTwentyPercent = 0.18;  // in logarithms
  const bool still_up = regained > kSigmas * regain_error && loss.late_trend_z > -kTrendZ;
  if (risen > std::max(kTenPercent, kSigmas * rise_error) && still_up) return "rose";
  constexpr double kGaveBack = 0.3;  // of what had been learned
  if (gained > kSigmas * rise_error && regained > std::max(kTwentyPercent, kGaveBack * gained) &&
      still_up && loss.points_since_lowest >= std::max<int64_t>(50, loss.points / 20)) {
    return "plateau";
  }
  return {};
}

// Flat for long, with a reason that the log itself shows.
std::string_view NotLearning(const JobFeatures& f) {
  const LossFeatures& loss = f.loss;
  constexpr int64_t kLong = 200;
  if (!LossMustFall(f) || loss.points < kLong || loss.start <= 0) return {};
  const bool flat = std::abs(loss.start - loss.end) < std::max(0.01 * loss.start, 2 * loss.noise) &&
                    std::abs(loss.trend_z) < kTrendZ;
  if (!flat) return {};
  if (std::isfinite(loss.late_learning_rate) && loss.late_learning_rate == 0) return "lr_zero";
  if (std::isfinite(loss.late_grad_norm) && std::isfinite(loss.early_grad_norm) &&
      loss.late_grad_norm < 0.01 * loss.early_grad_norm) {
    return "frozen";
  }
  return "flat";
}

void ShowCurve(const JobFeatures& f, Finding& finding) {
  for (const features::EvidenceRef ref : {f.loss.start_evidence, f.loss.end_evidence}) {
    if (ref != kNoEvidence) finding.shows.push_back(ref);
  }
}

bool EndedWell(const JobFeatures& f) {
  if (f.Primary() != nullptr || f.wrapper_lost) return false;
  // A launcher that reports a failed child denies a good end, even when nobody says why.
  for (const features::Cause& cause : f.causes) {
    const bool report = cause.incident().kind == logs::IncidentKind::kNonZeroExit ||
                        cause.incident().kind == logs::IncidentKind::kSignalDeath;
    if (report && cause.role == features::Cause::Role::kWrapper &&
        !(f.exit_known && f.exit_code == 0))
      return false;
  }
  return f.exit_known ? f.exit_code == 0 : true;
}

bool Learned(const JobFeatures& f) {
  const LossFeatures& loss = f.loss;
  if (loss.points < kShapePoints || loss.trailing_nonfinite > 0) return false;
  const double noise = std::max(loss.noise, 0.002 * std::abs(loss.start));
  return loss.end < loss.start - noise && loss.slope_per_point < 0 && loss.trend_z < -kTrendZ;
}

// It learns, and takes half as long again for a step as it did at first.
bool BecameSlow(const JobFeatures& f) {
  constexpr double kSlowdown = 1.5;
  return std::isfinite(f.early_step_seconds) && f.step_seconds >= kSlowdown * f.early_step_seconds;
}

}  // namespace

Finding EvaluateE1(const JobFeatures& f) {
  // A failed run is judged by what failed it; NaN text ("stopping training") is such an event and
  // belongs here.
  const features::Cause* primary = f.Primary();
  const bool nan_text =
      primary != nullptr && primary->incident().kind == logs::IncidentKind::kNonFiniteLoss;
  if (primary != nullptr && !nan_text) return {};
  std::string_view sub = Divergence(f);
  bool weak = false;
  if (nan_text && sub.empty()) sub = "nonfinite";
  if (sub.empty()) {
    sub = NotLearning(f);
    weak = sub == "flat";
  }
  if (sub.empty()) return {};
  Finding finding;
  finding.matched = true;
  finding.sub = sub;
  finding.domain = proto::DOMAIN_WORKLOAD;
  finding.component = "training";
  finding.symptom = "wrong_result";
  finding.tier = weak ? proto::TIER_W : proto::TIER_S;
  if (nan_text) {
    finding.shows.push_back(primary->evidence);
    finding.root.push_back(primary->evidence);
    finding.onset = primary->incident().t;
    if (f.loss.nonfinite_evidence != kNoEvidence) finding.tier = proto::TIER_C;
  }
  const features::EvidenceRef root = sub == "nonfinite"    ? f.loss.nonfinite_evidence
                                     : sub == "silent_nan" ? f.loss.silent_nan_evidence
                                     : sub == "plateau"    ? f.loss.lowest_evidence
                                                           : f.loss.end_evidence;
  if (root != kNoEvidence) {
    finding.shows.push_back(root);
    finding.root.push_back(root);
    if (finding.onset.ns == 0) finding.onset = f.evidence[static_cast<size_t>(root)].begin;
  }
  ShowCurve(f, finding);
  if (sub == "lr_zero" && f.loss.learning_rate_evidence != kNoEvidence)
    finding.shows.push_back(f.loss.learning_rate_evidence);
  if (f.loss.grad_norm_evidence != kNoEvidence) finding.shows.push_back(f.loss.grad_norm_evidence);
  if (f.exit_known) finding.shows.push_back(f.exit_evidence);
  finding.values = {{"start", Number(f.loss.start)},
                    {"end", Number(f.loss.end)},
                    {"lowest", Number(f.loss.lowest)}};
  finding.open.push_back(Question::kDivergenceCause);
  return finding;
}

RuledOut RuleOutE1(const JobFeatures& f) {
  if (f.loss.points == 0 && f.progress == 0 && f.Primary() != nullptr) {
    return Excluded("the run was ended before it trained", {f.Primary()->evidence});
  }
  if (f.loss.points == 0) return NotDecidable(proto::STORE_LOG, "no loss is readable");
  if (!LossMustFall(f))
    return NotDecidable(proto::STORE_LOG, "this objective's loss need not fall");
  if (f.loss.points < kShapePoints) {
    return NotDecidable(proto::STORE_LOG, "only " + std::to_string(f.loss.points) + " loss values");
  }
  if (Learned(f)) {
    return Excluded("the loss fell from " + Number(f.loss.start) + " to " + Number(f.loss.end),
                    {f.loss.start_evidence, f.loss.end_evidence});
  }
  if (Divergence(f).empty()) {
    return Excluded("the loss stays finite and does not rise: " + Number(f.loss.start) + " to " +
                        Number(f.loss.end),
                    {f.loss.start_evidence, f.loss.end_evidence});
  }
  return NotDecidable(proto::STORE_LOG, "the curve looks wrong, but another event ended the run");
}

Finding EvaluateE3(const JobFeatures& f) {
  if (f.running || !EndedWell(f) || !(f.train_end || (f.exit_known && f.exit_code == 0))) return {};
  if (!f.recognised && !f.train_end) return {};
  const double steps = f.steps;
  if (!f.steps_known || steps < 1 || steps > kUndertrainedSteps + 0.5) return {};
  // A finished run that is resumed makes few steps rightly: its counter stands far above what it
  // logged.
  if (f.progress > 0 && std::isfinite(f.total_steps) && f.total_steps > kUndertrainedSteps &&
      f.steps < f.total_steps)
    return {};
  Finding finding;
  finding.matched = true;
  finding.sub = "step_budget";
  finding.domain = proto::DOMAIN_WORKLOAD;
  finding.component = "configuration";
  finding.symptom = "wrong_result";
  finding.tier = f.train_end && f.exit_known ? proto::TIER_C : proto::TIER_S;
  finding.shows = finding.root = {f.steps_evidence};
  if (f.train_end_evidence != kNoEvidence) finding.shows.push_back(f.train_end_evidence);
  if (f.exit_known) finding.shows.push_back(f.exit_evidence);
  finding.values = {{"steps", Number(steps)}};
  finding.open.push_back(Question::kCorrectness);
  return finding;
}

RuledOut RuleOutE3(const JobFeatures& f) {
  if (!f.recognised && !f.steps_known)
    return NotDecidable(proto::STORE_LOG, "no step count is readable");
  if (f.steps > kUndertrainedSteps) {
    return Excluded(Number(f.steps) + (f.steps_known ? " steps" : " training records") +
                        ", more than " + Number(kUndertrainedSteps),
                    {f.steps_evidence});
  }
  if (f.running) return Excluded("the run is going on", {f.steps_evidence});
  if (!EndedWell(f)) return Excluded("the run did not complete", {f.steps_evidence});
  return NotDecidable(proto::STORE_LOG, "few records, and no step count among them");
}

Finding EvaluateG1(const JobFeatures& f) {
  if (!EndedWell(f)) return {};
  if (f.running && f.lines == 0) return {};
  Finding finding;
  finding.matched = true;
  finding.symptom = "healthy";
  finding.component = "none";
  finding.domain = proto::DOMAIN_WORKLOAD;
  const bool completed = f.exit_known && f.exit_code == 0;
  if (f.recognised && Learned(f)) {
    finding.sub = BecameSlow(f) ? "slow" : "healthy";
    if (BecameSlow(f)) finding.shows.push_back(f.step_time_evidence);
    finding.tier = completed ? proto::TIER_C : proto::TIER_S;
    // Nobody says that it came to its end.
    if (!f.running && !completed && !f.train_end) finding.cap = 0.55;
    if (f.steps_known && f.steps < kHealthySteps) finding.cap = std::min(finding.cap, 0.65);
    ShowCurve(f, finding);
    finding.shows.push_back(f.steps_evidence);
  } else {
    if (f.running) return {};  // too early to say anything; U0 says so
    if (!completed && !f.train_end && f.lines == 0) return {};
    finding.sub = "unverifiable";
    finding.tier = completed || f.train_end ? proto::TIER_S : proto::TIER_W;
    if (f.lines_evidence != kNoEvidence) finding.shows.push_back(f.lines_evidence);
    if (f.steps_evidence != kNoEvidence) finding.shows.push_back(f.steps_evidence);
    finding.open.push_back(Question::kCorrectness);
  }
  if (f.generic) finding.cap = std::min(finding.cap, 0.55);
  if (f.train_end_evidence != kNoEvidence) finding.shows.push_back(f.train_end_evidence);
  if (f.exit_known) {
    finding.shows.push_back(f.exit_evidence);
  } else if (!f.running) {
    finding.open.push_back(Question::kExitStatusUnknown);
  }
  finding.root = finding.shows;
  return finding;
}

RuledOut RuleOutG1(const JobFeatures& f) {
  if (const features::Cause* primary = f.Primary())
    return Excluded("the run did not end by itself", {primary->evidence});
  if (f.exit_known && f.exit_code != 0)
    return Excluded("the command exited with " + std::to_string(f.exit_code), {f.exit_evidence});
  if (const std::string_view sub = Divergence(f); !sub.empty())
    return Excluded("the loss curve is wrong", {f.loss.end_evidence});
  if (f.running) return NotDecidable(proto::STORE_LOG, "not enough training has been seen");
  return NotDecidable(proto::STORE_LOG, "no positive evidence of learning");
}

Finding EvaluateU0(const JobFeatures& f) {
  Finding finding;
  finding.matched = true;
  finding.tier = proto::TIER_W;
  finding.component = "unknown";
  if (f.running) {
    finding.sub = "too_early";
    finding.open.push_back(Question::kTooEarly);
    if (f.lines_evidence != kNoEvidence) finding.shows.push_back(f.lines_evidence);
    if (f.steps_evidence != kNoEvidence) finding.shows.push_back(f.steps_evidence);
    return finding;
  }
  if (f.Primary() != nullptr) {
    const Finding end = FromPrimary(f);
    finding.shows = end.shows;
    finding.root = end.root;
    finding.ranks = end.ranks;
    finding.onset = end.onset;
  }
  // Whoever exited first is all that is known of the beginning.
  const features::Cause* first = nullptr;
  for (const features::Cause& cause : f.causes) {
    if (f.Primary() != nullptr || cause.incident().kind != logs::IncidentKind::kNonZeroExit)
      continue;
    if (first == nullptr || cause.candidate->order < first->candidate->order) first = &cause;
  }
  if (first != nullptr) {
    finding.shows.push_back(first->evidence);
    finding.root.push_back(first->evidence);
    finding.ranks = first->candidate->ranks;
    finding.onset = first->incident().t;
  }
  finding.sub = f.wrapper_lost ? "wrapper_lost" : f.exit_known ? "abnormal_exit" : "no_evidence";
  if (f.exit_known && f.exit_code == 0 && f.Primary() == nullptr) finding.sub = "no_evidence";
  if (f.exit_evidence != kNoEvidence && std::find(finding.shows.begin(), finding.shows.end(),
                                                  f.exit_evidence) == finding.shows.end()) {
    finding.shows.push_back(f.exit_evidence);
  }
  if (f.lines_evidence != kNoEvidence) finding.shows.push_back(f.lines_evidence);
  if (f.last_progress_evidence != kNoEvidence) finding.shows.push_back(f.last_progress_evidence);
  for (const features::Evidence& evidence : f.evidence) {
    if (evidence.kind == features::EvidenceKind::kWrapperLost) {
      finding.shows.push_back(static_cast<features::EvidenceRef>(&evidence - f.evidence.data()));
    }
  }
  finding.open.push_back(f.exit_known ? Question::kWhyExit : Question::kExitStatusUnknown);
  return finding;
}

RuledOut RuleOutU0(const JobFeatures&) {
  return Excluded("another family explains the run");
}

}  // namespace rankscope::families
