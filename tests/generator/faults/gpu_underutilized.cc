// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The GPU waits for its input: too few loaders, slow storage, or a host that is too busy.

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/generator/faults.h"
#include "tests/generator/text.h"

namespace rankscope::generator {

void ApplyD1(World& world, Random& random) {
  // Starvation from the beginning is the common form; a server that becomes slow is the other.
  const bool later = random.Chance(0.3);
  const double onset = later ? world.Onset(0.1, 0.4) : world.TrainBegin();
  world.Reserve(onset, 420);
  world.Blame({}, onset);
  world.truth.sub = "starved";
  const double factor = random.In({3, 15});  // waits this many times as long as it computes
  const bool storage = random.Chance(0.4);
  const double base = world.plan.step_seconds;
  world.on_step.push_back([=](RankStep& step) {
    if (step.t < onset) return;
    // Alike on all ranks: it is the same storage and the same code.
    const double jitter = 1 + 0.25 * std::sin(step.step * 1.7);
    step.data += base * factor * jitter;
  });
  if (storage) {
    world.on_host.push_back([=](HostSecond& host) {
      if (host.t > onset) host.io_waiting = 0.6;
    });
  }
  EndSomehow(world, random, onset);
  world.decided_by = {{Witness::kGpu, Witness::kCalls},
                      {Witness::kGpu, Witness::kRecords},
                      {Witness::kCalls, Witness::kWaits}};
}

}  // namespace rankscope::generator
