// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Reinforcement learning without a signal: all answers of a group get the same reward, or the
// policy leaves its reference.

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "tests/generator/faults.h"
#include "tests/generator/text.h"

namespace rankscope::generator {

void ApplyX26(World& world, Random& random) {
  Plan& plan = world.plan;
  plan.work = Work::kReinforcement;
  plan.dialect = "trl";
  plan.log_every = 1;
  plan.all_ranks_print = false;
  plan.step_seconds = std::max(plan.step_seconds, 1.0);
  const double onset = world.Onset(0.15, 0.4);
  world.Reserve(onset, std::max(240.0, 110 * plan.step_seconds));
  world.Blame({}, onset);
  world.truth.dialect = "trl";
  const bool spread = random.Chance(0.6);
  world.truth.sub = spread ? "no_spread" : "kl_blowup";
  const double factor = random.In({20, 300});
  const auto begun = std::make_shared<int>(-1);
  world.on_numbers.push_back([=](Numbers& numbers) {
    if (numbers.t < onset) return;
    if (*begun < 0) *begun = numbers.step;
    if (spread) {
      numbers.reward_std = 0;
      numbers.reward = 0;
      numbers.loss = 0;
    } else {
      numbers.kl *= 1 + (factor - 1) * std::min(1.0, (numbers.step - *begun) / 20.0);
      numbers.reward *= 0.3;
    }
  });
  EndSomehow(world, random, onset);
  world.decided_by = {{Witness::kRecords}};
}

}  // namespace rankscope::generator
