// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Work is shared out unevenly: a pipeline stage has more, inputs differ in length, or some experts
// are wanted more.

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "tests/generator/faults.h"
#include "tests/generator/text.h"

namespace rankscope::generator {

void ApplyX17(World& world, Random& random) {
  Plan& plan = world.plan;
  const int variant = plan.locals() >= 4 ? random.Weighted({2, 1.5, 1}) : 1;
  const double onset = world.TrainBegin();
  world.Reserve(onset, std::max(300.0, 80 * plan.step_seconds));
  world.Blame({}, onset);
  constexpr const char* kSubs[] = {"stage", "sequence", "expert"};
  world.truth.sub = kSubs[variant];
  // Published traces: 1.5 to 1.64 times between stages, 1.39 times a step by length (README.md).
  const double factor = variant == 1 ? random.In({1.2, 1.6}) : random.In({1.2, 1.9});
  const int locals = plan.locals(), first = plan.first_local();
  const uint64_t seed = random.Next();
  world.on_step.push_back([=](RankStep& step) {
    const int local = step.rank - first;
    if (local < 0 || local >= locals) return;
    if (variant == 0) {
      // Half of the node is the heavy stage.
      if (local >= locals / 2) step.compute *= factor;
    } else if (variant == 1) {
      Random of(seed ^ (static_cast<uint64_t>(step.step) * 131 + static_cast<uint64_t>(step.rank)));
      step.compute *= 1 + (factor - 1) * of.Unit() * of.Unit() * 2;
    } else if (local % 4 == static_cast<int>(seed % 4)) {
      step.compute *= factor;
    }
  });
  EndSomehow(world, random, onset);
  if (variant != 0) world.truth.accepted = {"G1"};
  if (variant == 2) world.truth.accepted = {"D3", "G1"};
  // Of lengths and experts only a stack that names them tells more than noise.
  if (variant == 0) world.decided_by = {{Witness::kUnits}, {Witness::kCalls, Witness::kWaits}};
}

}  // namespace rankscope::generator
