// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// E3: a step budget of a handful of steps.
#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>

#include "detectors/families/curve.h"
#include "detectors/families/rows.h"
#include "detectors/families/training_end.h"

namespace rankscope::families::undertrained {

using features::JobFeatures;

namespace {

constexpr double kUndertrainedSteps = 10;

// A finished run that is resumed makes few steps rightly: its counter stands far above what it
// logged, or it says that it goes on.
bool GoesOnFromElsewhere(const JobFeatures& f) {
  return f.resume.load_seen || f.resume.first_step > kUndertrainedSteps ||
         f.storage.checkpoint_bytes_read > 0;
}

// It ran on for longer than the steps that were seen can have taken: who prints only the first of
// them has made more.
bool RanOnUnseen(const JobFeatures& f) {
  constexpr double kSteps = 20, kFinish = 120;  // a last save, an evaluation, an upload
  const double step = std::isfinite(f.step_seconds) ? f.step_seconds : 0;
  return f.timed && f.silence_seconds > std::max(kFinish, kSteps * step);
}

}  // namespace

Finding Evaluate(const JobFeatures& f) {
  if (f.running || !EndedWell(f) || !(f.train_end || (f.exit_known && f.exit_code == 0))) return {};
  if (!f.recognised && !f.train_end) return {};
  const double steps = f.steps;
  if (!f.steps_known || steps < 1 || steps > kUndertrainedSteps + 0.5) return {};
  const bool of_a_large_plan = f.progress > 0 && std::isfinite(f.total_steps) &&
                               f.total_steps > kUndertrainedSteps && f.steps < f.total_steps;
  if (of_a_large_plan && (GoesOnFromElsewhere(f) || RanOnUnseen(f))) return {};
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
  Show(f.later_step_evidence, finding);
  ShowLeave(f, finding);
  if (f.exit_known) Show(f.exit_evidence, finding);
  finding.values = {{FieldId::kSteps, steps}};
  finding.open.push_back(WhetherItLearned(f));
  return finding;
}

RuledOut RuleOut(const JobFeatures& f) {
  if (!f.recognised && !f.steps_known) return NotDecidable(proto::STORE_LOG, Reason::kNoStepCount);
  if (f.steps > kUndertrainedSteps) {
    return Excluded(Reason::kManySteps, {f.steps_evidence},
                    {{FieldId::kSteps, f.steps},
                     {FieldId::kWhat, f.steps_known ? "steps" : "records"},
                     {FieldId::kFewSteps, kUndertrainedSteps}});
  }
  if (f.running) return Excluded(Reason::kGoesOn, {f.steps_evidence});
  if (!EndedWell(f)) return Excluded(Reason::kIncomplete, {f.steps_evidence});
  const std::string_view why = !f.steps_known           ? ""
                               : GoesOnFromElsewhere(f) ? "resumed"
                               : RanOnUnseen(f)         ? "unseen"
                                                        : "open";
  return NotDecidable(proto::STORE_LOG, Reason::kFewRecords, {{FieldId::kWhat, std::string(why)}});
}

}  // namespace rankscope::families::undertrained
