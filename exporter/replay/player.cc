// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/replay/player.h"

#include <algorithm>
#include <limits>
#include <variant>

namespace rankscope::replay {

namespace {

constexpr Duration kGrid = Seconds(1);
// Silence is judged second by second for this long; what lies beyond is passed over, so that a
// damaged or hostile time cannot keep the player busy for ever. No family waits longer than hours.
constexpr int64_t kMostTicksOfSilence = 24 * 3600;

}  // namespace

void Player::Observe(const Observation& observation) {
  const Timestamp t = observation.t;
  if (!begun_) {
    begun_ = true;
    start_ = last_tick_ = latest_ = t;
  }
  if (std::holds_alternative<rankscope::Tick>(observation.kind)) {
    Tick(t);
    return;
  }
  if (!ticks_recorded_ && t > last_tick_) {
    // Unsigned: the distance between any two times fits.
    const uint64_t behind =
        (static_cast<uint64_t>(t.ns) - static_cast<uint64_t>(last_tick_.ns)) / kGrid.ns;
    const int64_t ticks = static_cast<int64_t>(std::min<uint64_t>(behind, kMostTicksOfSilence));
    for (int64_t i = 0; i < ticks; ++i) TickOn();
    if (behind > static_cast<uint64_t>(ticks)) last_tick_ = t;
  }
  latest_ = std::max(latest_, t);
  dirty_ = true;
  target_.accept(observation);
}

void Player::CatchUp() {
  if (!begun_) return;
  for (int64_t i = 0; i < kMostTicksOfSilence && (dirty_ || last_tick_ < latest_); ++i) {
    if (last_tick_ < latest_ - kGrid) last_tick_ = latest_ - kGrid;
    TickOn();
  }
}

void Player::TickOn() {
  if (last_tick_.ns > std::numeric_limits<int64_t>::max() - kGrid.ns) {
    dirty_ = false;
    return;
  }
  Tick(last_tick_ + kGrid);
}

void Player::Tick(Timestamp now) {
  last_tick_ = now;
  dirty_ = false;
  target_.tick(now);
}

}  // namespace rankscope::replay
