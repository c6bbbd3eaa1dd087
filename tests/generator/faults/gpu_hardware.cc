// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// A GPU has an error of its own: memory, NVLink or its firmware. The program ends by it, or stands
// in the driver.

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/generator/faults.h"
#include "tests/generator/text.h"

namespace rankscope::generator {

void ApplyB2(World& world, Random& random) {
  const double onset = world.Onset(0.1, 0.8);
  const int rank = world.PickRank();
  world.Blame({rank}, onset);
  const int variant = random.Weighted({3, 2, 2, 2});
  const int code = variant == 0 ? 94 : variant == 1 ? 48 : variant == 2 ? 74 : 119;
  world.truth.sub = variant <= 1 && random.Chance(0.3) ? "ecc" : "xid";
  world.truth.accepted_subs = {"xid", "ecc"};
  const bool memory = variant <= 1;
  world.on_gpu.push_back([=](GpuSecond& gpu) {
    if (gpu.rank != rank) return;
    gpu.ecc_corrected = memory ? std::floor(gpu.t / 40) : 0;
    if (gpu.t < onset) return;
    if (memory) gpu.ecc_uncorrected = 1;
    if (code == 48) gpu.remaps_pending = 1;
    if (code == 74) gpu.nvlink_errors = std::floor(40 + 3 * (gpu.t - onset));
  });
  Interruption end;
  end.at = onset + random.Between(0.2, 3);
  end.ranks = {rank};
  end.crash = variant != 3;
  end.doing = Doing::kStuckGpu;
  if (variant == 3) world.Reserve(onset, 200 + 15 * world.plan.step_seconds);
  const char* const words = memory ? "RuntimeError: CUDA error: uncorrectable ECC error encountered"
                                   : "RuntimeError: CUDA error: unspecified launch failure";
  world.on_launch.push_back([=](World& of, int attempt, double) {
    if (attempt != 0) return;
    const std::string where = "NVRM: Xid (PCI:" + of.BusId(rank) + "): ";
    const int pid = of.KeyOf(rank).pid;
    std::string text;
    if (code == 119)
      text = Text(
          "119, pid=%d, name=python3, Timeout after 6s of waiting for RPC response from GPU%d GSP! "
          "Expected "
          "function 76 (GSP_RM_CONTROL) (0x2080a0d7 0x5c).",
          pid, rank % of.plan.per_node);
    else if (code == 74)
      text = Text(
          "74, pid='<unknown>', name=<unknown>, NVLink: fatal error detected on link 3(0x10000, "
          "0x0, 0x0, 0x0, 0x0, 0x0, 0x0)");
    else if (code == 48)
      text = Text(
          "48, pid=%d, name=python3, An uncorrectable double bit error (DBE) has been detected on "
          "GPU in the framebuffer at partition 3, subpartition 1.",
          pid);
    else
      text = Text("94, pid=%d, name=python3, Contained: SM (0x1). RST: No, D-RST: No", pid);
    of.Kernel(onset, "xid", where + text, rank, code);
  });
  end.speak = [=](World& of, double t, int who) {
    if (code == 119) return;
    of.Traceback(
        who, t,
        {Text("\"/opt/train/%s\", line 61, in train|loss.backward()", of.plan.script.c_str())},
        words);
    of.Say(who, t,
           "CUDA kernel errors might be asynchronously reported at some other API call, so the "
           "stacktrace below might be incorrect.",
           true);
  };
  end.tells = memory;  // "unspecified launch failure" names no hardware
  world.interruptions.push_back(end);
  world.decided_by = {{Witness::kFault}};
  if (code != 119) world.decided_by.push_back({Witness::kGpu, Witness::kCulprit});
}

}  // namespace rankscope::generator
