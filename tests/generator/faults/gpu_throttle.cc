// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// A GPU lowers its clocks by heat, or a node's GPUs by a lack of power; all steps become longer.

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/generator/faults.h"
#include "tests/generator/text.h"

namespace rankscope::generator {

void ApplyB3(World& world, Random& random) {
  const double onset = world.Onset(0.1, 0.4);
  world.Reserve(onset, 240 + 20 * world.plan.step_seconds);
  const bool heat = random.Chance(0.7);
  const bool node = !heat || random.Chance(0.25);
  std::vector<int> ranks;
  if (node)
    for (int i = 0; i < world.plan.locals(); ++i) ranks.push_back(world.plan.first_local() + i);
  else
    ranks.push_back(world.PickRank());
  world.Blame(ranks, onset);
  world.truth.sub = heat ? "thermal" : "power";
  // Clocks fall by 10 to 55 %: a thermal study of H100 (README.md).
  const double left = random.Share(0.45, 0.85);
  const unsigned bits = heat ? (random.Chance(0.6) ? 0x48u : 0x20u) : 0x88u;
  const double duty = random.Share(0.6, 1.0);
  const double hot = random.Between(86, 92);
  const auto ill = [ranks](int rank) {
    return std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
  };
  const auto share = [onset, duty](double t) {
    // It comes within a minute, and in waves where it is not all of the time.
    if (t < onset) return 0.0;
    return std::min(1.0, (t - onset) / 45) * (std::fmod(t, 40) < 40 * duty ? 1.0 : 0.2);
  };
  world.on_gpu.push_back([=](GpuSecond& gpu) {
    const double by = ill(gpu.rank) ? share(gpu.t) : 0;
    if (by <= 0) return;
    if (heat)
      gpu.temperature = std::max(gpu.temperature, gpu.temperature + (hot - gpu.temperature) * by);
    if (heat) gpu.memory_temperature = gpu.temperature + 8;
    if (by < 0.5 || gpu.clock < 4e8) return;
    gpu.clock *= 1 - (1 - left) * by;
    gpu.throttle |= bits;
    gpu.power *= 1 - 0.5 * (1 - left);
  });
  world.on_step.push_back([=](RankStep& step) {
    if (ill(step.rank)) step.compute /= 1 - (1 - left) * share(step.t) * 0.95;
  });
  EndSomehow(world, random, onset);
  world.truth.accepted = {"D3"};
  world.decided_by = {{Witness::kGpu, Witness::kCulprit}};
  // The remedy is that of heat, whoever is named slow.
  if (ranks.size() > 1 || world.plan.ranks == 1) world.truth.accepted.clear();
}

}  // namespace rankscope::generator
