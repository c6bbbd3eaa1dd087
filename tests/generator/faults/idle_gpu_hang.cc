// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// A job of one process holds its GPU and does nothing any more, or never begins to use it.

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/generator/faults.h"
#include "tests/generator/text.h"

namespace rankscope::generator {

void ApplyC3(World& world, Random& random) {
  const bool single = world.plan.ranks == 1 || random.Chance(0.8);
  if (single && world.plan.ranks > 1) {
    world.plan.ranks = world.plan.per_node = world.plan.nodes = 1;
    world.plan.observed_node = 0;
    world.plan.tensor = world.plan.pipeline = world.plan.expert = 1;
    world.plan.comm_share = 0;
    world.plan.collectives_per_step = 0;
    world.plan.all_ranks_print = false;
    world.truth.world = world.truth.nodes = 1;
    world.truth.observed_node = world.plan.NodeName(0);
  }
  const bool never = random.Chance(0.25);
  const double onset = never ? 3 : world.Onset(0.15, 0.5);
  std::vector<int> ranks;
  for (int i = 0; i < world.plan.locals(); ++i) ranks.push_back(world.plan.first_local() + i);
  world.Blame(ranks, onset);
  world.Reserve(onset, never ? 800 : random.In({400, 1200}));
  constexpr Doing kWays[] = {Doing::kFutex, Doing::kData, Doing::kSocket, Doing::kStopped,
                             Doing::kSleep};
  constexpr const char* kSubs[] = {"silent", "dataloader", "silent", "stopped", "silent"};
  const int which = random.Weighted({3, 2, 2, 1, 1});
  Interruption hang;
  hang.phase = never ? Phase::kImport : Phase::kTrain;
  hang.at = never ? 0.5 : onset;
  hang.ranks = ranks;
  hang.all_wait = true;
  hang.doing = kWays[which];
  world.truth.sub = never ? "never_attached" : kSubs[which];
  if (never) {
    world.truth.accepted_subs = {"silent", "stopped"};
    world.plan.import_seconds = std::max(world.plan.import_seconds, 10.0);
    // Its devices stay closed: it never gets that far.
    world.plan.import_seconds = 1e9;
    hang.at = 8e-9;
  }
  // Of several ranks that all stand still none has left the others behind.
  if (ranks.size() > 1) world.truth.accepted = {never ? "C1" : "C2"};
  world.interruptions.push_back(hang);
  world.decided_by = {{Witness::kGpu}, {Witness::kCalls}};
  if (never) world.decided_by = {{Witness::kGpu, Witness::kWaits}};
}

}  // namespace rankscope::generator
