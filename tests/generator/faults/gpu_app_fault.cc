// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// A kernel of the program touches memory that is not its own: CUDA reports it, and mostly the
// driver as well.

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "tests/generator/faults.h"
#include "tests/generator/text.h"

namespace rankscope::generator {

void ApplyX3(World& world, Random& random) {
  const double onset = world.Onset(0.1, 0.85);
  const int rank = world.PickRank();
  world.Blame({rank}, onset);
  const bool asserted = random.Chance(0.3);
  const int code = random.Chance(0.5) ? 31 : 13;
  world.truth.sub = "cuda_error";
  world.truth.accepted_subs = {"xid", "assertion"};
  Interruption crash = CrashOf(onset, {rank});
  crash.wait_status = random.Chance(0.5) ? 256 : 6;
  crash.speak = [=](World& of, double t, int who) {
    const int pid = of.KeyOf(who).pid;
    const std::string where = "NVRM: Xid (PCI:" + of.BusId(who) + "): ";
    if (!asserted && code == 31)
      of.Kernel(t - 0.04, "xid",
                where + Text("31, pid=%d, name=python3, Ch 00000008, intr 00000000. MMU Fault: "
                             "ENGINE GRAPHICS GPCCLIENT_T1_0 faulted @ 0x7f3a_c4000000. Fault is "
                             "of type FAULT_PDE ACCESS_TYPE_VIRT_READ",
                             pid),
                who, 31);
    if (!asserted && code == 13)
      of.Kernel(t - 0.04, "xid",
                where + Text("13, pid=%d, name=python3, Graphics SM Warp Exception on (GPC 9, TPC "
                             "1, SM 1): Out Of Range Address",
                             pid),
                who, 13);
    if (asserted)
      of.Say(who, t,
             "/opt/pytorch/aten/src/ATen/native/cuda/Indexing.cu:1236: indexSelectSmallIndex: "
             "block: [0,0,0], thread: [32,0,0] Assertion `srcIndex < srcSelectDimSize` failed.",
             true);
    of.Happen(t, Source::kCuda, EventType::kCudaCallFailed, who,
              {{"call", "cudaStreamSynchronize"}}, {{"result", asserted ? 710 : 700}});
    of.Traceback(
        who, t,
        {Text("\"/opt/train/%s\", line 61, in train|loss.backward()", of.plan.script.c_str())},
        asserted ? "RuntimeError: CUDA error: device-side assert triggered"
                 : "RuntimeError: CUDA error: an illegal memory access was encountered");
    of.Say(who, t,
           "CUDA kernel errors might be asynchronously reported at some other API call, so the "
           "stacktrace below might be incorrect.",
           true);
    of.Say(who, t, "For debugging consider passing CUDA_LAUNCH_BLOCKING=1", true);
  };
  world.interruptions.push_back(crash);
  world.decided_by = {{Witness::kFault}};
}

}  // namespace rankscope::generator
