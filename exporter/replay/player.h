// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Plays observations with the ticks they need: those that were recorded, or, where none were, ticks
// on a 1 s grid of the observations' own time. Knows no clock. One thread.
#pragma once

#include <functional>
#include <utility>

#include "detectors/model/observation.h"
#include "detectors/model/time.h"

namespace rankscope::replay {

class Player {
 public:
  struct Target {
    std::function<void(const Observation&)> accept;  // all but ticks
    std::function<void(Timestamp)> tick;
  };

  explicit Player(Target target) : target_(std::move(target)) {}

  void Begin(bool ticks_recorded) { ticks_recorded_ = ticks_recorded; }
  void Observe(const Observation& observation);

  // Ticks on until everything observed has been judged once.
  void CatchUp();
  // The next tick of the grid.
  void TickOn();

  // Of the first observation, and of the last tick or, before there is one, the same.
  Timestamp start() const { return start_; }
  Timestamp last_tick() const { return last_tick_; }

 private:
  void Tick(Timestamp now);

  Target target_;
  bool ticks_recorded_ = false;
  bool begun_ = false;
  bool dirty_ = false;  // observed since the last tick
  Timestamp start_;
  Timestamp last_tick_;
  Timestamp latest_;
};

}  // namespace rankscope::replay
