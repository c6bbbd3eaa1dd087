// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// F2: the scheduler took the nodes back.
#include <string>

#include "detectors/families/curve.h"
#include "detectors/families/rows.h"
#include "detectors/families/scheduler.h"
#include "detectors/model/subs.h"

namespace rankscope::families::requeue_preemption {

using features::Cause;
using features::JobFeatures;

namespace {

Finding JudgeReturn(const JobFeatures& f, Finding finding) {
  const Cause* const primary = f.Primary();
  const bool recorded = primary->candidate->store == proto::STORE_SCHEDULER;
  // The record has a word of its own for preemption.
  if (finding.sub == subs::kRequeue && recorded) finding.open.push_back(Question::kWhoRequeued);
  AddHistory(f, finding);
  AddLostWork(f, finding);
  const std::string& rerun = f.scheduler.rerun;
  if (rerun == "completed") finding.advice = "recovered";
  if (rerun == "failed") finding.advice = "lost";
  if (rerun == "held") finding.advice = "held";
  if (rerun == "cancelled") finding.advice = "cancelled_in_queue";
  return finding;
}

}  // namespace

Finding Evaluate(const JobFeatures& f) {
  if (f.Primary() != nullptr && EndedWithoutALoss(f, *f.Primary())) return {};
  if (PrimarySchedulerEnd(f, subs::kPreemption) != nullptr)
    return JudgeReturn(f, SchedulerFinding(f, subs::kPreemption));
  if (PrimarySchedulerEnd(f, subs::kRequeue) != nullptr)
    return JudgeReturn(f, SchedulerFinding(f, subs::kRequeue));
  // A job that is requeued because its time is over ended by its time limit.
  if (Notice(f, subs::kTimeLimit) != nullptr) return {};
  for (const std::string_view sub : {subs::kPreemption, subs::kRequeue}) {
    if (const Cause* notice = Notice(f, sub)) return JudgeReturn(f, NoticeFinding(f, sub, *notice));
  }
  return {};
}

RuledOut RuleOut(const JobFeatures& f) {
  return NoSchedulerText(f, "preemption");
}

}  // namespace rankscope::families::requeue_preemption
