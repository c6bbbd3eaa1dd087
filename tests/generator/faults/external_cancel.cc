// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Somebody ends a healthy job from outside: its user, an operator, a script.

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "tests/generator/faults.h"
#include "tests/generator/text.h"

namespace rankscope::generator {

void ApplyX20(World& world, Random& random) {
  const double onset = world.Onset(0.2, 0.9);
  world.Blame({}, onset);
  world.plan.max_steps = 1 << 24;
  world.stop_at = onset;
  world.stop_how = random.Chance(0.75) ? Ending::kCancelled : Ending::kStranger;
  const bool stranger = world.stop_how == Ending::kStranger;
  world.truth.sub = world.plan.slurm && !stranger ? "cancelled" : "sigterm";
  world.truth.accepted_subs = {"cancelled", "sigterm", "interrupted"};
  if (stranger) world.truth.accepted = {"A2"};
  world.decided_by = {{Witness::kEnd}};
}

}  // namespace rankscope::generator
