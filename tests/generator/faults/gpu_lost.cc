// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// A GPU falls off the bus: it answers no more, and its rank stands in the driver or dies by an
// error.

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "tests/generator/faults.h"
#include "tests/generator/text.h"

namespace rankscope::generator {

void ApplyX16(World& world, Random& random) {
  const double onset = world.Onset(0.1, 0.8);
  const int rank = world.PickRank();
  world.Blame({rank}, onset);
  world.truth.sub = "lost";
  world.truth.accepted = {"B2"};
  world.on_gpu.push_back([=](GpuSecond& gpu) {
    if (gpu.rank == rank && gpu.t >= onset) gpu.answers = false;
  });
  const bool aer = random.Chance(0.4), silent = random.Chance(0.3);
  world.on_launch.push_back([=](World& of, int attempt, double) {
    if (attempt != 0) return;
    if (aer)
      of.Kernel(onset - 1, "pcie",
                "pcieport 0000:17:01.0: AER: Uncorrectable (Fatal) error message received from "
                "0000:18:00.0",
                rank, 0);
    if (!silent)
      of.Kernel(onset, "xid",
                "NVRM: Xid (PCI:" + of.BusId(rank) +
                    "): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
                rank, 79);
    if (!of.plan.IsLocal(rank)) return;
    KernelEvent lost;
    lost.kmsg_seq = 50000;
    lost.type = KernelEventType::kGpuLost;
    lost.text = "NVRM: GPU " + of.BusId(rank) + ".0: GPU has fallen off the bus.";
    lost.gpu_bus_id = of.BusId(rank);
    of.Tell(onset + 0.01, Source::kKmsg, lost);
  });
  Interruption end;
  end.at = onset + random.Between(0.2, 4);
  end.ranks = {rank};
  end.crash = random.Chance(0.6);
  end.doing = Doing::kStuckGpu;
  if (!end.crash) world.Reserve(onset, 200);
  const bool crash = end.crash;
  end.tells = false;
  end.speak = [crash](World& of, double t, int who) {
    if (crash)
      of.Traceback(
          who, t,
          {Text("\"/opt/train/%s\", line 61, in train|loss.backward()", of.plan.script.c_str())},
          "RuntimeError: CUDA error: unspecified launch failure");
  };
  world.interruptions.push_back(end);
  world.decided_by = {{Witness::kFault}};
}

}  // namespace rankscope::generator
