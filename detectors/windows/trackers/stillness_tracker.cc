// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/windows/trackers/stillness_tracker.h"

#include <algorithm>
#include <cmath>

#include "detectors/model/event_types.h"
#include "detectors/windows/series/sample_find.h"
#include "detectors/windows/trackers/event_fields.h"

namespace rankscope::windows {
namespace {

constexpr Duration kLong = Seconds(10);
constexpr Duration kTogether = Seconds(3);  // the first samples after a gap, of all ranks
constexpr int32_t kSamplesBefore = 10;
constexpr double kNewShare = 0.1;  // of the newest sample in what is usual
// A rank that hardly uses a CPU tells nothing by using none.
constexpr double kUsesCores = 0.2;
// Before and after the standstill the process runs, up to the next sample.
constexpr double kEdgeSeconds = 2.5;

}  // namespace

void StillnessTracker::OnSamples(const SampleBatch& batch, const Speaker& speaker, Timestamp t) {
  if (speaker.rank < 0 || speaker.process.pid == 0) return;
  const auto cpu = FindSample(batch, SignalId::kCpuSeconds);
  if (!cpu || !std::isfinite(*cpu)) return;
  if (ranks_.size() >= kMaxRanks && !ranks_.contains(speaker.rank)) return;
  Rank& rank = ranks_[speaker.rank];
  if (rank.process != speaker.process || *cpu < rank.cpu) {
    rank = {};
    rank.process = speaker.process;
  }
  if (rank.last.ns != 0 && t > rank.last) {
    const double span = (t - rank.last).seconds();
    const double grown = *cpu - rank.cpu;
    if (span < kLong.seconds()) {
      const double share = rank.samples == 0 ? 1 : std::max(kNewShare, 1.0 / (rank.samples + 1));
      rank.usual += share * (grown / span - rank.usual);
      rank.samples = std::min(rank.samples + 1, 1000);
    } else {
      if (t - newest_.end > kTogether) newest_ = {};
      newest_.begin = newest_.present() ? std::max(newest_.begin, rank.last) : rank.last;
      newest_.end = t;
      if (rank.samples >= kSamplesBefore && rank.usual >= kUsesCores) {
        ++newest_.ranks;
        newest_.usual += rank.usual;
        newest_.cpu_seconds += grown;
        if (grown <= kEdgeSeconds * rank.usual) ++newest_.still;
      }
    }
  }
  rank.cpu = *cpu;
  rank.last = t;
}

void StillnessTracker::OnEvent(const Event& event, Timestamp t) {
  if (event.type != WireType(EventType::kNodeGap)) return;
  const auto seconds = [&event](std::string_view key) { return NumberOrNan(event, key) * 1e-3; };
  node_ = {};
  node_.end = t;
  node_.begin = t - rankscope::Seconds(std::max(0.0, seconds("elapsed_ms")));
  node_.slept = std::max(0.0, seconds("slept_ms"));
  node_.switches = NumberOrNan(event, "switches");
  node_.usual = NumberOrNan(event, "usual_switches");
  node_.waited = seconds("waited_ms");
}

// What the job wrote meanwhile may come at once, or be lost: a step that is told soon after it says
// how far it was by then.
void StillnessTracker::OnStep(double step, const StepClock& clock, Duration stopped, Timestamp t) {
  if (clock.records() == 0) return;
  if (stopped >= kLong) {
    steps_ = {clock.last_progress(), t, clock.last_step(), 0};
  } else if (!steps_.present() || t - steps_.end > kTogether) {
    return;
  }
  steps_.seconds = std::max(0.0, step - steps_.before) * clock.MedianStepSeconds();
}

}  // namespace rankscope::windows
