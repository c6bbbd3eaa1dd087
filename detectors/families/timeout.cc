// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// F3: ended at its time limit. A limit is a disposition, not a cause: it is the answer only when
// nothing failed and nobody gave up waiting, and then it says whether the run was slow or stood.
#include <algorithm>
#include <cmath>
#include <string>

#include "detectors/families/curve.h"
#include "detectors/families/gpu_peers.h"
#include "detectors/families/rows.h"
#include "detectors/families/scheduler.h"
#include "detectors/families/standstill.h"
#include "detectors/model/subs.h"

namespace rankscope::families::timeout {

using features::Cause;
using features::JobFeatures;

namespace {

// A run whose newest record is so young was moving: two records, or steps, of its own.
double MovingSeconds(const JobFeatures& f) {
  double seconds = 60;
  if (std::isfinite(f.usual_record_seconds))
    seconds = std::max(seconds, 2 * f.usual_record_seconds);
  if (std::isfinite(f.step_seconds)) seconds = std::max(seconds, 2 * f.step_seconds);
  return seconds;
}

// How much longer it would have taken.
void AddNeed(const JobFeatures& f, Finding& finding) {
  const features::SchedulerFeatures& s = f.scheduler;
  if (std::isfinite(s.limit_seconds)) {
    Show(s.limit_evidence, finding);
    finding.values.Set(FieldId::kLimit, s.limit_seconds);
  }
  const bool known = std::isfinite(f.total_steps) && std::isfinite(f.step_seconds) &&
                     f.steps_known && f.total_steps > f.steps && f.step_seconds > 0;
  if (!known) return;
  Show(f.steps_evidence, finding);
  Show(f.step_time_evidence, finding);
  const double left = f.total_steps - f.steps;
  const FieldId need = std::isfinite(s.limit_seconds) ? FieldId::kNeeded : FieldId::kMissing;
  finding.values.Set(need, left * f.step_seconds).Set(FieldId::kStepsLeft, left);
}

void JudgeByText(const JobFeatures& f, Finding& finding) {
  Show(f.silence_evidence, finding);
  const bool advances = Advances(f);
  if (f.silence_seconds >= HangTimeout(f) && !advances) {
    finding.sub = subs::kStalled;
  } else if (f.lost.in_save) {
    finding.sub = subs::kInSave;
    // Else the kernel has answered it.
    if (!f.lost.save_cut) finding.open.push_back(Question::kLastCheckpoint);
  } else if (f.silence_seconds <= MovingSeconds(f) || advances) {
    finding.sub = subs::kSlow;
  } else {
    finding.open.push_back(Question::kHungOrSlow);
    finding.values.Set(FieldId::kSilence, f.silence_seconds);
  }
}

}  // namespace

Finding Evaluate(const JobFeatures& f) {
  const Cause* notice = Notice(f, subs::kTimeLimit);
  if (notice == nullptr && PrimarySchedulerEnd(f, subs::kTimeLimit) == nullptr) return {};
  if (f.Primary() != nullptr && EndedWithoutALoss(f, *f.Primary())) return {};
  Finding finding = notice != nullptr ? NoticeFinding(f, subs::kUnknown, *notice)
                                      : SchedulerFinding(f, subs::kUnknown);
  if (f.train_end) {
    finding.sub = "trained";
    Show(f.train_end_evidence, finding);
  } else if (f.progress > 0 && (f.timed || f.silence_evidence != features::kNoEvidence)) {
    JudgeByText(f, finding);
  } else if (CallsCounted(f)) {
    // No word of it, but its calls say whether it still moved.
    finding.sub = Advances(f) ? subs::kSlow : subs::kStalled;
    Show(f.collectives.advance_evidence, finding);
    Show(f.launches.idle_evidence, finding);
  } else {
    finding.open.push_back(Question::kHungOrSlow);
    finding.values.Set(FieldId::kUntimed, "yes");
  }
  if (finding.sub == subs::kInSave || f.lost.save_cut) Show(f.lost.save_evidence, finding);
  const features::CollectiveFeatures& c = f.collectives;
  if (finding.sub == subs::kStalled && !c.absent.empty()) {
    // Who was not in the collective that the others stood in.
    Show(c.absent_evidence, finding);
    Show(c.waiting_evidence, finding);
    if (2 * c.absent.size() <= c.ranks.size()) finding.ranks = c.absent;
    finding.open.push_back(Question::kHangTrigger);
  }
  AddNeed(f, finding);
  AddLostWork(f, finding);
  CapByWhatWasSeen(f, finding);
  if (finding.sub == subs::kSlow) CapByUnmeasuredTransport(f, finding);
  return finding;
}

RuledOut RuleOut(const JobFeatures& f) {
  return NoSchedulerText(f, "time_limit");
}

}  // namespace rankscope::families::timeout
