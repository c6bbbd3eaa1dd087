// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// With half precision the gradients overflow again and again, until the loss scale is at its
// minimum.

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "tests/generator/faults.h"
#include "tests/generator/text.h"

namespace rankscope::generator {

void ApplyX24(World& world, Random& random) {
  Plan& plan = world.plan;
  plan.fp16 = true;
  plan.dialect = random.Chance(0.6) ? "deepspeed" : "megatron";
  plan.log_every = 1;
  plan.all_ranks_print = false;
  const double onset = world.Onset(0.15, 0.5);
  world.Reserve(onset, std::max(120.0, 40 * plan.step_seconds));
  world.Blame({}, onset);
  world.truth.dialect = plan.dialect;
  world.truth.sub = "falling";
  world.truth.accepted_subs = {"at_minimum"};
  world.truth.accepted = {"E1"};
  const auto begun = std::make_shared<int>(-1);
  world.on_numbers.push_back([=](Numbers& numbers) {
    if (numbers.t < onset) return;
    if (*begun < 0) *begun = numbers.step;
    numbers.overflow = true;
    numbers.loss_scale = std::max(1.0, 65536 / std::pow(2, numbers.step - *begun));
    numbers.grad_norm = std::numeric_limits<double>::infinity();
  });
  // Megatron-LM goes on at its minimum; DeepSpeed gives up.
  if (plan.dialect == "deepspeed" && random.Chance(0.8)) {
    Interruption crash;
    crash.at = onset + 20 * plan.step_seconds;
    crash.crash = true;
    for (int i = 0; i < plan.locals(); ++i) crash.ranks.push_back(plan.first_local() + i);
    crash.speak = [](World& of, double t, int who) {
      of.Traceback(
          who, t,
          {Text("\"/opt/train/%s\", line 61, in train|engine.step()", of.plan.script.c_str())},
          "Exception: Current loss scale already at minimum - cannot decrease scale anymore. "
          "Exiting run.");
    };
    world.interruptions.push_back(crash);
  } else {
    EndSomehow(world, random, onset);
  }
  world.decided_by = {{Witness::kRecords}};
}

}  // namespace rankscope::generator
