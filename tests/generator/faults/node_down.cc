// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Another node of the job goes away; its ranks answer no more, and Slurm says so a while later.

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "tests/generator/faults.h"
#include "tests/generator/text.h"

namespace rankscope::generator {

void ApplyF1(World& world, Random& random) {
  const double onset = world.Onset(0.15, 0.7);
  const int dead =
      (world.plan.observed_node + random.Int(1, world.plan.nodes - 1)) % world.plan.nodes;
  world.Blame({}, onset);
  world.truth.node = world.plan.NodeName(dead);
  world.truth.culprit_seen = false;
  world.truth.sub = "node_failure";
  world.truth.accepted_subs = {"rebooted"};
  // slurm.conf, SlurmdTimeout: 300 s without an answer, unless somebody sets it down before.
  const double noticed = onset + random.In({30, 320});
  world.Reserve(noticed, 60);
  world.plan.controller_events = world.plan.controller_events || random.Chance(0.7);
  Interruption hang;
  hang.at = onset;
  hang.ranks = {dead * world.plan.per_node};
  hang.doing = Doing::kPaused;
  const std::string node = world.plan.NodeName(dead);
  hang.speak = [=](World& of, double, int) {
    for (int i = 0; i < of.plan.locals(); ++i) {
      const int rank = of.plan.first_local() + i;
      if (random.Fork(static_cast<uint64_t>(i)).Unit() < 0.5) continue;
      of.Say(rank, noticed - 5 + i * 0.1,
             Text("[rank%d]: torch.distributed.DistBackendError: NCCL error in: "
                  "ProcessGroupNCCL.cpp:2251, remote process exited or there was a network error, "
                  "NCCL version 2.27.5",
                  rank),
             true);
    }
    of.Fact(noticed, "node_reason", "Not responding", node);
    of.Fact(noticed, "node_state", "DOWN", node);
  };
  world.interruptions.push_back(hang);
  world.ending_fixed = true;
  world.hang_end = Ending::kRunsOn;
  world.stop_at = noticed;
  world.stop_how = Ending::kNodeFailed;
  world.decided_by = {{Witness::kEnd}};
}

}  // namespace rankscope::generator
