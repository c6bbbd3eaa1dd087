// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The job waits for a compiler, or for the lock of its cache that somebody else holds, and does not
// begin.

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "tests/generator/faults.h"
#include "tests/generator/text.h"

namespace rankscope::generator {

void ApplyX12(World& world, Random& random) {
  const bool lock = random.Chance(0.5);
  world.plan.compile_seconds = 10;
  const double onset = world.TrainBegin() - 10;
  world.Blame({}, onset);
  world.truth.sub = lock ? "lock" : "compile";
  world.Reserve(onset, random.In({1900, 3000}));
  Interruption hang;
  hang.phase = Phase::kCompile;
  hang.at = 0.1;
  hang.all_wait = true;
  hang.doing = lock ? Doing::kLock : Doing::kCompile;
  for (int i = 0; i < world.plan.locals(); ++i) hang.ranks.push_back(world.plan.first_local() + i);
  hang.python_frame = lock ? "wait (file_baton.py:42);_jit_compile (cpp_extension.py:1896)"
                           : "_run_ninja_build (cpp_extension.py:2100)";
  hang.speak = [lock](World& of, double t, int) {
    if (lock) return;
    for (int i = 0; i < of.plan.locals(); ++i) {
      for (const char* const name : {"ninja", "nvcc", "cicc", "ptxas"}) {
        ProcessStart child;
        child.key = {
            of.KeyOf(of.plan.first_local() + i).pid + 1000 + (name[0] == 'n' ? name[1] : name[0]),
            static_cast<int64_t>(t * 100) + 7};
        child.parent = of.KeyOf(of.plan.first_local() + i);
        child.uid = static_cast<uint32_t>(of.plan.uid);
        child.comm = name;
        child.argv = {name};
        child.complete = true;
        if (of.plan.slurm) {
          child.cgroup =
              "/system.slice/slurmstepd.scope/job_" + of.plan.job_id + "/step_0/user/task_0";
          child.env = {{"SLURM_JOB_ID", of.plan.job_id}};
        } else {
          child.job_id = of.plan.job_id;
        }
        of.Tell(t + 0.5, Source::kProcess, child);
      }
    }
  };
  world.interruptions.push_back(hang);
  world.decided_by = {{Witness::kWaits}};
}

}  // namespace rankscope::generator
