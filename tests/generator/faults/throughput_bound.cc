// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Slow without an error: a save every few steps, a fabric that is too slow for all, or launches
// that block.

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/generator/faults.h"
#include "tests/generator/text.h"

namespace rankscope::generator {

namespace {

void SaveStorm(World& world, Random& random) {
  Plan& plan = world.plan;
  world.truth.sub = "save_storm";
  plan.save_every = random.InInt(2, 6);
  plan.save_seconds = plan.save_every * plan.step_seconds * random.In({0.6, 3});
  plan.checkpoint_bytes = plan.save_seconds * 6e8;
  plan.quiet_save = random.Chance(0.3);
  plan.log_every = std::min(plan.log_every, plan.save_every);
  world.decided_by = {{Witness::kSaves}};
}

void Interconnect(World& world, Random& random) {
  world.truth.sub = "interconnect";
  const double factor = random.In({1.5, 8});
  const double base = world.plan.step_seconds;
  world.on_comm.push_back([=](int, double, double& seconds) { seconds += base * factor; });
  if (random.Chance(0.5)) {
    // Within a node nothing goes over InfiniBand.
    world.extra_environment.push_back(world.plan.nodes > 1 ? "NCCL_IB_DISABLE=1"
                                                           : "NCCL_P2P_DISABLE=1");
  } else if (world.plan.nodes > 1) {
    world.on_load.push_back([](World& of, double t) {
      of.Say(of.plan.first_local(), t,
             Text("%s:%d:%d [0] NCCL INFO NET/IB : No device found.",
                  of.plan.NodeName(of.plan.observed_node).c_str(),
                  of.KeyOf(of.plan.first_local()).pid, of.KeyOf(of.plan.first_local()).pid + 40));
      of.Say(of.plan.first_local(), t,
             Text("%s:%d:%d [0] NCCL INFO Using network Socket",
                  of.plan.NodeName(of.plan.observed_node).c_str(),
                  of.KeyOf(of.plan.first_local()).pid, of.KeyOf(of.plan.first_local()).pid + 40));
    });
  }
  world.decided_by = {{Witness::kUnits},
                      {Witness::kGpu, Witness::kCollectives},
                      {Witness::kCalls, Witness::kCollectives}};
}

}  // namespace

void ApplyD2(World& world, Random& random) {
  const double onset = world.TrainBegin();
  world.Reserve(onset, 480);
  world.Blame({}, onset);
  const int variant = random.Weighted({1, world.plan.ranks > 1 ? 1.0 : 0.0, 1});
  if (variant == 0) {
    SaveStorm(world, random);
  } else if (variant == 1) {
    Interconnect(world, random);
  } else {
    world.truth.sub = "launch_blocking";
    world.extra_environment.push_back("CUDA_LAUNCH_BLOCKING=1");
    const double factor = random.In({1.2, 2});
    if (world.plan.graphs) world.plan.launches_per_step = random.In({400, 8000});
    world.plan.graphs = false;
    world.seconds_per_launch =
        0.8 * world.plan.step_seconds * factor / std::max(1.0, world.plan.launches_per_step);
    world.on_step.push_back([=](RankStep& step) { step.compute *= factor; });
    world.decided_by = {{Witness::kCalls}};
  }
  EndSomehow(world, random, onset);
}

}  // namespace rankscope::generator
