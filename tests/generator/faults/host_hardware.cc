// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The host's memory fails: the kernel poisons a page and ends the process that holds it.

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "tests/generator/faults.h"
#include "tests/generator/text.h"

namespace rankscope::generator {

void ApplyX15(World& world, Random& random) {
  const double onset = world.Onset(0.1, 0.85);
  const int rank = world.PickRank();
  world.Blame({rank}, onset);
  const bool kill = random.Chance(0.3);
  world.truth.sub = kill ? "sigkill" : "sigbus";
  world.truth.accepted_subs = {"memory", "sigbus", "sigkill"};
  Interruption crash = CrashOf(onset, {rank});
  crash.wait_status = kill ? 9 : 7;
  crash.speak = [kill](World& of, double t, int who) {
    if (!of.plan.IsLocal(who)) return;
    const int pid = of.KeyOf(who).pid;
    of.Kernel(t - 0.3, "machine_check", "mce: [Hardware Error]: Machine check events logged");
    of.Kernel(t - 0.25, "memory",
              Text("EDAC MC0: 1 UE memory read error on CPU_SrcID#0_MC#0_Chan#1_DIMM#0 (channel:1 "
                   "slot:0 page:0x3a1c2 offset:0x0 grain:32 syndrome:0x0)"));
    of.Kernel(t - 0.05, "machine_check",
              kill ? Text("Memory failure: 0x3a1c2: forcibly killing python3:%d because of failure "
                          "to unmap corrupted page",
                          pid)
                   : Text("Memory failure: 0x3a1c2: Sending SIGBUS to python3:%d due to hardware "
                          "memory corruption",
                          pid),
              who);
    of.Signal(t, who, kill ? 9 : 7, kill ? 0x80 : 4, of.KeyOf(who), "python3", of.plan.uid, "");
  };
  world.interruptions.push_back(crash);
  world.decided_by = {{Witness::kFault}};
}

}  // namespace rankscope::generator
