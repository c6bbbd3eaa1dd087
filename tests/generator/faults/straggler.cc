// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// One rank is slower than its peers in every step, and all wait for it: its GPU, its host, or its
// own data.

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/generator/faults.h"
#include "tests/generator/text.h"

namespace rankscope::generator {

void ApplyD3(World& world, Random& random) {
  const double onset = random.Chance(0.4) ? world.TrainBegin() : world.Onset(0.1, 0.4);
  const int rank = world.PickRank();
  world.Blame({rank}, onset);
  world.Reserve(onset, std::max(300.0, 60 * world.plan.step_seconds));
  // From the 5.6 % that a slow GPU cost BLOOM to the 2.4 times of published traces: README.md.
  const double slower = random.In({0.056, 1.4});
  const int variant = random.Weighted({2, 1.5, 1});
  constexpr const char* kSubs[] = {"card", "host_gaps", "starved"};
  world.truth.sub = kSubs[variant];
  world.truth.accepted_subs = {"card", "host", "host_gaps", "starved", "slow_storage"};
  world.on_step.push_back([=](RankStep& step) {
    if (step.rank != rank || step.t < onset) return;
    if (variant == 0)
      step.compute *= 1 + slower;
    else if (variant == 1)
      step.host += step.compute * slower;
    else
      step.data += step.compute * slower;
  });
  if (variant == 1) {
    world.on_process.push_back([=](ProcessSecond& process) {
      if (process.rank == rank && process.t > onset) process.runnable = 0.5 * std::min(slower, 1.0);
    });
  }
  EndSomehow(world, random, onset);
  // So little of a step, which is not computation alone, is a warning at most: decisions of what
  // counts as caught are the scoreboard's.
  const double share = 1 - world.plan.comm_share - world.plan.data_share;
  if (slower * share < 0.1) world.truth.accepted = {"G1"};
  world.decided_by = {{Witness::kCulprit, Witness::kUnits}, {Witness::kCulprit, Witness::kCalls}};
}

}  // namespace rankscope::generator
