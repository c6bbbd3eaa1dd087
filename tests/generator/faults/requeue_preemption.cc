// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The scheduler takes the nodes back from a healthy job; it may begin anew at once.

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "tests/generator/faults.h"
#include "tests/generator/text.h"

namespace rankscope::generator {

void ApplyF2(World& world, Random& random) {
  const double onset = world.Onset(0.3, 0.85);
  world.Blame({}, onset);
  const bool preempted = random.Chance(0.6);
  world.truth.sub = preempted ? "preemption" : "requeue";
  world.stop_at = onset;
  world.stop_how = preempted ? Ending::kPreempted : Ending::kRequeued;
  world.plan.max_steps = 1 << 24;
  world.decided_by = {{Witness::kEnd}};
  // Half of them are started again on the same nodes and go on.
  if (!random.Chance(0.5)) return;
  world.truth.accepted = {"G1"};  // in the end it trains
  world.attempts = 2;
  world.requeued = true;
  world.between_attempts = random.In({20, 120});  // slurm.conf: a requeued job waits for its nodes
  world.Reserve(onset, world.between_attempts + 30 + world.TrainBegin() + 120);
}

}  // namespace rankscope::generator
