// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Whether the node stood still while the daemon did. The daemon's own silence is no witness: it may
// have been stopped alone, or have had no CPU. The kernel counts what the node and the job's
// processes do meanwhile, and the job counts its steps.
#include <algorithm>

#include "detectors/features/landmarks.h"

namespace rankscope::features {
namespace {

using windows::NodeGap;
using windows::StepsOver;
using windows::StillSpan;

// A daemon that was not running, or a source that was late, says nothing of the node.
constexpr double kMostOfIt = 0.8;

enum class NodeRan : uint8_t { kUnknown, kYes, kNo };

// Before and after it the node runs, up to the next look. One that is hardly used switches between
// tasks some hundred times a second.
NodeRan RanMeanwhile(const NodeGap& gap) {
  constexpr double kEdgeSeconds = 2.5, kFewest = 50, kShare = 0.3;
  if (gap.waited > gap.seconds() / 2) return NodeRan::kYes;  // others had the CPUs
  if (!(gap.usual >= kFewest * gap.seconds())) return NodeRan::kUnknown;
  if (gap.switches >= kShare * gap.usual) return NodeRan::kYes;
  return gap.switches <= kEdgeSeconds * gap.usual / gap.seconds() ? NodeRan::kNo
                                                                  : NodeRan::kUnknown;
}

// The job trained on: its steps went as far as they usually do in such a time.
bool SteppedOn(const StepsOver& steps, Timestamp begin, Timestamp end, double seconds) {
  return steps.present() && steps.begin <= end && steps.end >= begin &&
         steps.seconds >= seconds / 2;
}

Evidence OfSpan(Timestamp begin, Timestamp end, double seconds) {
  Evidence evidence;
  evidence.kind = EvidenceKind::kThreads;
  evidence.store = proto::STORE_PROCESS;
  evidence.observed = seconds;
  evidence.unit = "s";
  evidence.begin = begin;
  evidence.end = end;
  return evidence;
}

// The step that it came into took that much longer, where the job prints the times of its steps.
void CitePrinted(const windows::AttemptWindow& window, Timestamp begin, Citer& citer,
                 JobFeatures& f) {
  const windows::Sighting& slow = window.training.slow_steps();
  f.waits.gap_printed =
      slow.seen() && slow.point.t >= begin && slow.point.value >= f.waits.gap_seconds / 2;
  if (!f.waits.gap_printed) return;
  Evidence step = citer.Quote(EvidenceKind::kStepTime, slow.point);
  step.observed = slow.point.value;
  step.expected = slow.usual;
  step.unit = "s";
  f.waits.gap_step_evidence = citer.Add(std::move(step));
}

// The kernel's clocks say that the node slept: no process ran, and no other word is needed.
bool DescribeSleep(const NodeGap& gap, Citer& citer, JobFeatures& f) {
  constexpr double kLeast = 10;
  if (!gap.present() || gap.slept < kLeast) return false;
  f.waits.gap_seconds = gap.slept;
  f.waits.gap_age_seconds = (f.now - gap.end).seconds();
  Evidence evidence = OfSpan(gap.begin, gap.end, gap.slept);
  evidence.values = {{FieldId::kGap, "slept"}};
  f.waits.gap_evidence = citer.Add(std::move(evidence));
  return true;
}

}  // namespace

void DescribeStillness(const windows::JobWindow& job, const windows::AttemptWindow& window,
                       Citer& citer, JobFeatures& f) {
  const windows::StillnessTracker& tracker = window.kernel.stillness;
  const NodeGap& gap = tracker.node();
  if (DescribeSleep(gap, citer, f)) return CitePrinted(window, gap.begin, citer, f);
  const StillSpan& span = tracker.newest();
  const bool ranks_still = span.present() && span.ranks > 0 && span.still >= span.ranks;
  if (!ranks_still) return;
  const double stopped = job.hearing().StoppedWithin(span.begin, span.end).seconds();
  if (stopped < kMostOfIt * span.seconds()) return;
  if (job.suspension().Within(span.begin, span.end).ns > 0) return;
  // Where the node ran, the job alone was stopped, or somebody else had all CPUs.
  const bool told = gap.present() && gap.end >= span.begin && gap.begin <= span.end;
  if (told && RanMeanwhile(gap) == NodeRan::kYes) return;
  if (SteppedOn(tracker.steps(), span.begin, span.end, stopped)) return;
  f.waits.gap_seconds = stopped;
  f.waits.gap_age_seconds = (f.now - span.end).seconds();
  Evidence evidence = OfSpan(span.begin, span.end, stopped);
  evidence.values = {{FieldId::kGap, "yes"},
                     {FieldId::kCpu, span.cpu_seconds},
                     {FieldId::kRankCount, static_cast<int64_t>(span.ranks)}};
  if (told && RanMeanwhile(gap) == NodeRan::kNo) {
    evidence.values.Set(FieldId::kRepeats, static_cast<int64_t>(gap.switches));
    evidence.values.Set(FieldId::kBefore, static_cast<int64_t>(gap.usual));
  }
  f.waits.gap_evidence = citer.Add(std::move(evidence));
  CitePrinted(window, span.begin, citer, f);
}

}  // namespace rankscope::features
