// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// A step budget of a handful of steps: the job ends well and has learned nothing.

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/generator/faults.h"
#include "tests/generator/text.h"

namespace rankscope::generator {

void ApplyE3(World& world, Random& random) {
  world.plan.max_steps = random.Int(1, 8);
  world.plan.log_every = 1;
  world.plan.save_every = world.plan.eval_every = 0;
  world.plan.warmup_steps = 1;
  world.plan.dialect = random.Chance(0.5) ? "plain" : "hf";
  world.plan.resumes = false;
  world.Blame({}, world.TrainBegin());
  world.extra_arguments.push_back(Text("--max_steps=%d", world.plan.max_steps));
  world.truth.sub = "step_budget";
  world.decided_by = {{Witness::kText}};
}

}  // namespace rankscope::generator
