// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The host stands still: collections of garbage on one rank after the other, or the whole machine.

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "tests/generator/faults.h"
#include "tests/generator/text.h"

namespace rankscope::generator {

void ApplyX14(World& world, Random& random) {
  const double onset = world.Onset(0.15, 0.5);
  world.Reserve(onset, 240);
  world.Blame({}, onset);
  if (random.Chance(0.5)) {
    // A virtual machine that is suspended: nothing of it runs, its daemon included.
    world.truth.sub = "host";
    const double seconds = random.In({15, 120});
    const auto at_step = std::make_shared<int>(-1);
    const double base = world.plan.step_seconds;
    world.on_step.push_back([=](RankStep& step) {
      if (*at_step < 0 && step.t + base >= onset) *at_step = step.step;
      if (step.step == *at_step) step.host += seconds;
    });
    world.frozen.emplace_back(onset, onset + seconds);
    world.truth.accepted = {"G1"};  // it is over soon, and the job goes on
    world.decided_by = {{Witness::kText}};
    return;
  }
  world.truth.sub = "garbage_collection";
  world.truth.accepted_subs = {"gc"};
  const double seconds = random.In({0.6, 3});
  const int every = random.InInt(4, 25);
  const int ranks = world.plan.ranks, first = world.plan.first_local();
  for (int i = 0; i < world.plan.locals(); ++i) {
    const int rank = first + i;
    world.on_step.push_back([=](RankStep& step) {
      // Each in turn: identity rotates.
      if (step.rank == rank && step.t > onset && (step.step + 5 * (rank % ranks)) % every == 0)
        step.host += seconds;
    });
  }
  world.decided_by = {{Witness::kCalls, Witness::kWaits}};
  world.truth.accepted = {"G1"};
}

}  // namespace rankscope::generator
