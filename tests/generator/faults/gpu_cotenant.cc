// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Somebody else's process holds memory of a GPU, and the job's own allocation no longer fits.

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "tests/generator/faults.h"
#include "tests/generator/text.h"

namespace rankscope::generator {

void ApplyX2(World& world, Random& random) {
  constexpr double kGiB = 1073741824.0;
  const int rank = world.plan.first_local() + random.Int(0, world.plan.locals() - 1);
  const double total = world.plan.gpu.memory_bytes;
  const double foreign = total * random.Share(0.15, 0.7);
  const double onset = world.TrainBegin() * 0.97;
  world.Blame({rank}, onset);
  world.plan.memory_share = std::max(world.plan.memory_share, 0.5);
  world.on_gpu.push_back([=](GpuSecond& gpu) {
    if (gpu.rank == rank) gpu.memory_used = std::min(total * 0.99, gpu.memory_used + foreign);
  });
  const int other = random.Int(100000, 900000);
  const auto tell = [=](World& of, double t) {
    Event held;
    held.type = WireType(EventType::kGpuProcess);
    held.process = {other, 5000};
    held.str = {{"gpu_uuid", of.GpuUuid(rank)},
                {"bus_id", of.BusId(rank)},
                {"model", of.plan.gpu.name},
                {"state", "up"},
                {"name", "ollama"}};
    held.num = {{"index", rank % of.plan.per_node},
                {"processes_told", 1},
                {"mig", 0},
                {"bytes", static_cast<int64_t>(foreign)}};
    of.Tell(t, Source::kNvml, held);
  };
  world.on_launch.push_back([=](World& of, int, double) {
    for (double t = 1.5; t < of.horizon(); t += 30) tell(of, t);
  });
  Interruption crash;
  crash.phase = Phase::kCompile;
  crash.at = 0.9;
  crash.ranks = {rank};
  crash.crash = true;
  const double own = std::max(0.05 * total, total - foreign - 2 * kGiB);
  crash.speak = [=](World& of, double t, int who) {
    of.Happen(t, Source::kCuda, EventType::kAllocationFailed, who, {{"call", "cudaMalloc"}},
              {{"bytes", 4294967296}, {"result", 2}});
    of.Traceback(
        who, t,
        {Text("\"/opt/train/%s\", line 61, in train|loss.backward()", of.plan.script.c_str())},
        Text("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.00 GiB. GPU "
             "%d has a total capacity of %.2f GiB of which 1.10 GiB is free. "
             "Process %d has %.2f GiB memory in use. Including non-PyTorch memory, this "
             "process has %.2f GiB memory in use. "
             "Of the allocated memory %.2f GiB is allocated by PyTorch, and 210.00 MiB is "
             "reserved by PyTorch but unallocated.",
             who % of.plan.per_node, total / kGiB, other, foreign / kGiB, own / kGiB,
             own / kGiB - 0.7));
  };
  world.interruptions.push_back(crash);
  world.decided_by = {{Witness::kFault}};
}

}  // namespace rankscope::generator
