// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Starts the sources, tries again with back-off what cannot start, and tells each change of state
// once: to the log, as an observation, and in the published state. A source that fails never ends
// the program. Loop thread only.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "detectors/model/observation.h"
#include "exporter/daemon/door.h"
#include "exporter/loop/event_loop.h"
#include "exporter/loop/logger.h"
#include "exporter/metrics/published.h"
#include "exporter/source.h"

namespace rankscope::exporter {

class SourceKeeper {
 public:
  static constexpr Duration kFirstRetry = Seconds(1);
  static constexpr Duration kLongestRetry = Seconds(60);
  // A source that loses all the time says so that often.
  static constexpr Duration kLossInterval = Seconds(10);

  // `next` takes what comes through the doors, and the SourceState observations.
  SourceKeeper(EventLoop& loop, Logger& log, std::string node,
               std::function<void(const Observation&)> next);
  ~SourceKeeper();

  // A null source is one that is switched off: NOT_APPLICABLE with this reason. While the source
  // named `superseded_by` is up this one rests, so that nothing is told twice.
  void Add(uint32_t number, std::string name, Duration interval, std::unique_ptr<Source> source,
           std::string reason_off, std::string superseded_by = {});
  void Start();
  void Stop();
  // Tells the states of sources that have lost more since they last said so. To be called before
  // jobs are judged.
  void TellLosses();

  // `wall_offset_ns`: wall time minus loop time.
  std::vector<metrics::SourceStatus> Status(int64_t wall_offset_ns) const;
  // The current states as observations, for the head of a recording.
  std::vector<Observation> States() const;

 private:
  struct Kept;

  void TryStart(Kept& kept);
  void Halt(Kept& kept);
  bool IsSuperseded(const Kept& kept) const;
  void SettleSuperseded(const Kept& by);
  void OnState(Kept& kept, const SourceState& state);
  void Tell(Kept& kept);
  Observation StateOf(const Kept& kept) const;

  EventLoop& loop_;
  Logger& log_;
  std::string node_;
  std::function<void(const Observation&)> next_;
  std::vector<std::unique_ptr<Kept>> kept_;
};

}  // namespace rankscope::exporter
