// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// An allocation of GPU memory does not fit: at the beginning, late because of one long input, or
// after a leak.

#include <algorithm>

#include "tests/generator/faults.h"
#include "tests/generator/text.h"

namespace rankscope::generator {

void ApplyB1(World& world, Random& random) {
  constexpr double kGiB = 1073741824.0;
  const int variant = random.Weighted({2, 2, 1.5, 1});
  const bool early = variant == 0 || variant == 3;
  const double total = world.plan.gpu.memory_bytes;
  const double onset = early ? world.TrainBegin() * 0.97 : world.Onset(0.2, 0.8);
  const bool all = variant == 0 || variant == 3;
  std::vector<int> ranks;
  if (all)
    for (int i = 0; i < world.plan.locals(); ++i) ranks.push_back(world.plan.first_local() + i);
  else
    ranks.push_back(world.PickRank());
  world.Blame(ranks, onset);
  if (!early) world.Reserve(onset, 45);
  double asked = random.In({0.2, 6}) * kGiB, allocated = total * random.Between(0.9, 0.97);
  if (variant == 0) {
    world.truth.sub = "plan";
  } else if (variant == 1) {
    world.truth.sub = "late_spike";
    allocated = total * std::min(0.95, world.plan.memory_share + 0.2);
    asked = total - allocated + random.In({0.5, 8}) * kGiB;
  } else if (variant == 2) {
    world.truth.sub = "leak";
    const double begin = world.TrainBegin();
    world.plan.memory_share = std::min(world.plan.memory_share, 0.6);
    const double used = world.plan.memory_share * total;
    world.on_gpu.push_back([=](GpuSecond& gpu) {
      const bool ill = std::find(ranks.begin(), ranks.end(), gpu.rank) != ranks.end();
      if (ill && gpu.t > begin && gpu.t < onset)
        gpu.memory_used += (0.96 * total - used) * (gpu.t - begin) / (onset - begin);
    });
  } else {
    world.truth.sub = "oversize";
    allocated = total * 0.2;
    asked = total * random.Between(1.05, 4);
  }
  Interruption crash;
  crash.crash = true;
  crash.ranks = ranks;
  crash.at = early ? 0.9 : onset;
  crash.phase = early ? Phase::kCompile : Phase::kTrain;
  const double unused = random.In({0.05, 0.5}) * kGiB;
  crash.speak = [=](World& of, double t, int rank) {
    of.Happen(t, Source::kCuda, EventType::kAllocationFailed, rank, {{"call", "cudaMalloc"}},
              {{"bytes", static_cast<int64_t>(asked)}, {"result", 2}});
    const double free = std::max(0.01 * kGiB, total - allocated - unused - 0.5 * kGiB);
    of.Traceback(
        rank, t,
        {Text("\"/opt/train/%s\", line 88, in <module>|train()", of.plan.script.c_str()),
         Text("\"/opt/train/%s\", line 61, in train|loss.backward()", of.plan.script.c_str())},
        Text("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate %.2f GiB. GPU %d has a "
             "total "
             "capacity of %.2f GiB of which %.2f GiB is free. Including non-PyTorch memory, this "
             "process "
             "has %.2f GiB memory in use. Of the allocated memory %.2f GiB is allocated by "
             "PyTorch, and "
             "%.2f MiB is reserved by PyTorch but unallocated. If reserved but unallocated memory "
             "is large "
             "try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.",
             asked / kGiB, rank % of.plan.per_node, total / kGiB, free / kGiB,
             (allocated + unused) / kGiB + 0.5, allocated / kGiB, unused / 1048576));
  };
  world.interruptions.push_back(crash);
  world.decided_by = {{Witness::kFault}};
}

}  // namespace rankscope::generator
