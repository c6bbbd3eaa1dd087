// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// E3, G1 and U0: what is left when nothing ended the run by an event. Health needs positive
// evidence; a curve that cannot be read is unverifiable, never healthy.
#include <algorithm>
#include <cmath>

#include "detectors/families/curve.h"
#include "detectors/families/rows.h"
#include "detectors/families/standstill.h"

namespace rankscope::families {
namespace {

using features::JobFeatures;
using features::kNoEvidence;

constexpr double kUndertrainedSteps = 10;
constexpr double kHealthySteps = 50;

bool EndedWell(const JobFeatures& f) {
  if (f.Primary() != nullptr || f.wrapper_lost) return false;
  // What happened while nobody listened is not known to be good.
  if (f.end_unseen && !f.train_end) return false;
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

Question WhetherItLearned(const JobFeatures& f) {
  return f.loss.points > 0 && std::isfinite(f.loss.end) ? Question::kDidNotFall
                                                        : Question::kCorrectness;
}

// It learns, and takes half as long again for a step as it did at first.
bool BecameSlow(const JobFeatures& f) {
  constexpr double kSlowdown = 1.5;
  return std::isfinite(f.early_step_seconds) && f.step_seconds >= kSlowdown * f.early_step_seconds;
}

}  // namespace

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
  Show(f.train_begin_evidence, finding);
  ShowCurve(f, finding);
  Show(f.train_end_evidence, finding);
  ShowLeave(f, finding);
  if (f.exit_known) Show(f.exit_evidence, finding);
  finding.values = {{"steps", Counted(steps, "step")}};
  finding.open.push_back(WhetherItLearned(f));
  return finding;
}

RuledOut RuleOutE3(const JobFeatures& f) {
  if (!f.recognised && !f.steps_known)
    return NotDecidable(proto::STORE_LOG, "no step count is readable");
  if (f.steps > kUndertrainedSteps) {
    return Excluded(Counted(f.steps, f.steps_known ? "step" : "training record") + ", more than " +
                        Number(kUndertrainedSteps),
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
  // What came after the newest record may have been another curve.
  const bool seen_to_its_end = !f.text_unseen || f.train_end;
  if (f.recognised && Learned(f) && seen_to_its_end) {
    finding.sub = BecameSlow(f) ? "slow" : "healthy";
    if (BecameSlow(f)) finding.shows.push_back(f.step_time_evidence);
    finding.tier = completed ? proto::TIER_C : proto::TIER_S;
    // Nobody says that it came to its end.
    if (!f.running && !completed && !f.train_end) finding.cap = 0.55;
    if (f.steps_known && f.steps < kHealthySteps) finding.cap = std::min(finding.cap, 0.65);
    ShowCurve(f, finding);
    Show(f.loss.lowest_evidence, finding);
    Show(f.steps_evidence, finding);
  } else {
    if (f.text_unseen && !completed && !f.train_end) return {};
    if (f.running) return {};  // too early to say anything; U0 says so
    if (!completed && !f.train_end && f.lines == 0) return {};
    finding.sub = "unverifiable";
    finding.tier = completed || f.train_end ? proto::TIER_S : proto::TIER_W;
    Show(f.lines_evidence, finding);
    Show(f.steps_evidence, finding);
    ShowCurve(f, finding);
    Show(f.loss.highest_evidence, finding);
    finding.open.push_back(WhetherItLearned(f));
  }
  if (f.generic) finding.cap = std::min(finding.cap, 0.55);
  Show(f.train_end_evidence, finding);
  Show(f.gpu.work_evidence, finding);
  Show(f.gpu.clean_evidence, finding);
  ShowLeave(f, finding);
  if (f.exit_known) {
    Show(f.exit_evidence, finding);
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
    // A run that says nothing and advances is not too young to be judged but too quiet.
    constexpr double kLongEnough = 60;
    const bool quiet = f.progress == 0 && (f.now - f.begin).seconds() >= kLongEnough &&
                       Advances(f) && f.launches.launches > 0;
    finding.open.push_back(quiet ? Question::kCorrectness : Question::kTooEarly);
    Show(f.launches.idle_evidence, finding);
    Show(f.collectives.advance_evidence, finding);
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
    if (f.Primary()->denied) finding.open.push_back(Question::kHardwareOrSoftware);
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
  Show(f.last_progress_evidence, finding);
  ShowLeave(f, finding);
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
