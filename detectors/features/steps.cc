// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/features/steps.h"

#include <algorithm>
#include <charconv>
#include <csignal>
#include <iterator>
#include <utility>

namespace rankscope::features {
namespace {

using windows::StepSeen;
using windows::StepTable;

Evidence OfStep(const StepSeen& step, const StepTable& steps) {
  Evidence evidence;
  evidence.kind = EvidenceKind::kStepEnd;
  evidence.begin = evidence.end = step.ended_at();
  int64_t number = -1;
  const char* const last = step.id.data() + step.id.size();
  const auto [end, error] = std::from_chars(step.id.data(), last, number);
  if (error == std::errc() && end == last) evidence.values.Set(FieldId::kStep, number);
  evidence.values.Set(FieldId::kName, step.name.empty() ? step.program : step.name)
      .Set(FieldId::kExitCode, int64_t{step.exit_code()});
  if (step.told() && !step.is_batch()) {
    evidence.store = proto::STORE_SCHEDULER;
    evidence.values.Set(FieldId::kField, "step " + step.id + " state")
        .Set(FieldId::kValue, step.state)
        .Set(FieldId::kOrigin, step.origin);
  } else {
    evidence.store = proto::STORE_PROCESS;
    evidence.observed = step.exit_code();
    evidence.process = steps.LastRankOf(step.id);
  }
  return evidence;
}

// Its exit status, where that is one of a failure: who is asked to stop may do so in order.
int32_t FailureOf(const StepSeen& step) {
  constexpr int32_t kDeaths[] = {SIGILL, SIGABRT, SIGBUS, SIGFPE, SIGKILL, SIGSEGV};
  if (step.state == "OUT_OF_MEMORY") return 128 + SIGKILL;
  const int32_t code = step.exit_code();
  const bool death =
      std::find(std::begin(kDeaths), std::end(kDeaths), code - 128) != std::end(kDeaths);
  return code < 128 || death ? code : 0;
}

}  // namespace

void DescribeSteps(const windows::JobWindow& job, Citer& citer, JobFeatures& f) {
  const StepTable& steps = job.steps();
  const bool completed = f.exit_known && f.exit_code == 0;
  if (const StepSeen* done = steps.FinishedTraining(); done != nullptr && !completed) {
    f.training_over = done->ended_at();
    const EvidenceRef end = citer.Add(OfStep(*done, steps));
    if (!f.train_end) f.train_end_evidence = end;
    f.train_end = true;
    if (f.running) return;
    f.exit_known = true;
    f.exit_code = f.exit_signal = 0;
    f.exit_evidence = end;
    f.end_unseen = false;
    if (const StepSeen* failed = steps.FailedAfter(*done)) {
      Evidence later = OfStep(*failed, steps);
      later.values.Set(FieldId::kAnother, "yes");
      f.later_step_evidence = citer.Add(std::move(later));
      f.later_step_end = failed->ended_at();
    }
    return;
  }
  const StepSeen* const failed = steps.FailedTraining();
  if (failed == nullptr || !completed || f.running || f.train_end) return;
  const int32_t code = FailureOf(*failed);
  if (code == 0) return;
  f.exit_code = code;
  f.exit_signal = code > 128 ? code - 128 : 0;
  f.exit_evidence = citer.Add(OfStep(*failed, steps));
}

bool IsAfterTraining(const windows::Candidate& candidate, const JobFeatures& f) {
  const logs::Incident& incident = candidate.incident;
  if (f.training_over.ns == 0 || incident.t <= f.training_over) return false;
  if (incident.kind != logs::IncidentKind::kSchedulerEnd) return true;
  return std::any_of(incident.fields.begin(), incident.fields.end(),
                     [](const KeyValue& field) { return field.key == "step"; });
}

}  // namespace rankscope::features
