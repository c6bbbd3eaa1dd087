// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// A healthy job is ended at its time limit: SIGTERM to all, SIGKILL after KillWait.

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "tests/generator/faults.h"
#include "tests/generator/text.h"

namespace rankscope::generator {

void ApplyF3(World& world, Random& random) {
  world.plan.time_limit =
      std::max(180.0, std::floor(world.horizon() * random.Between(0.6, 0.9) / 60) * 60);
  const double onset = world.plan.time_limit + random.Between(1, 25);
  world.Reserve(onset, 40);
  world.plan.time_limit = std::max(180.0, std::floor(onset / 60) * 60);
  world.Blame({}, onset);
  world.truth.sub = "slow";
  world.truth.accepted_subs = {"in_save", "unknown"};
  world.stop_at = onset;
  world.stop_how = Ending::kTimeLimit;
  world.plan.max_steps = 1 << 24;
  world.decided_by = {{Witness::kEnd}};
}

}  // namespace rankscope::generator
