// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Whether the node stood still while the daemon did. The daemon's own silence is no witness: it may
// have been stopped alone. The kernel counts what the job's processes do meanwhile.
#include <algorithm>

#include "detectors/features/landmarks.h"

namespace rankscope::features {

void DescribeStillness(const windows::JobWindow& job, const windows::AttemptWindow& window,
                       Citer& citer, JobFeatures& f) {
  const windows::StillSpan& span = window.kernel.stillness.newest();
  if (!span.present() || span.ranks == 0 || span.still < span.ranks) return;
  // A daemon that was not running, or a source that was late, says nothing of the node.
  constexpr double kMostOfIt = 0.8;
  const double stopped = job.hearing().StoppedWithin(span.begin, span.end).seconds();
  if (stopped < kMostOfIt * span.seconds()) return;
  if (job.suspension().Within(span.begin, span.end).ns > 0) return;
  f.waits.gap_seconds = stopped;
  f.waits.gap_age_seconds = (f.now - span.end).seconds();
  // The step that it came into took that much longer, where the job prints the times of its steps.
  const windows::Sighting& slow = window.training.slow_steps();
  f.waits.gap_printed =
      slow.seen() && slow.point.t >= span.begin && slow.point.value >= stopped / 2;
  Evidence evidence;
  evidence.kind = EvidenceKind::kThreads;
  evidence.store = proto::STORE_PROCESS;
  evidence.observed = stopped;
  evidence.unit = "s";
  evidence.begin = span.begin;
  evidence.end = span.end;
  evidence.values = {{FieldId::kGap, "yes"},
                     {FieldId::kCpu, span.cpu_seconds},
                     {FieldId::kRankCount, static_cast<int64_t>(span.ranks)}};
  f.waits.gap_evidence = citer.Add(std::move(evidence));
  if (!f.waits.gap_printed) return;
  Evidence step = citer.Quote(EvidenceKind::kStepTime, slow.point);
  step.observed = slow.point.value;
  step.expected = slow.usual;
  step.unit = "s";
  f.waits.gap_step_evidence = citer.Add(std::move(step));
}

}  // namespace rankscope::features
