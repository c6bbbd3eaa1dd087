// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The job waits for a compiler, or for the lock of its cache that somebody else holds, and does not
// begin.

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "detectors/model/wait_class.h"
#include "tests/generator/faults.h"
#include "tests/generator/text.h"

namespace rankscope::generator {
namespace {

constexpr const char* kCompilers[] = {"ninja", "nvcc", "cicc", "ptxas"};

ProcessKey CompilerOf(const ProcessKey& rank, const char* name, double t) {
  return {rank.pid + 1000 + (name[0] == 'n' ? name[1] : name[0]),
          static_cast<int64_t>(t * 100) + 7};
}

// What the wait source reports of each process below a rank, once a second.
SampleBatch Compiling(const ProcessKey& rank, const char* name, double begun, double t) {
  const bool computes = name[0] == 'c';
  const double seconds = t - begun;
  SampleBatch batch;
  batch.subject.kind = Subject::Kind::kProcess;
  batch.subject.process = CompilerOf(rank, name, begun);
  batch.samples = {{SignalId::kRunningSeconds, computes ? seconds : 0.02},
                   {SignalId::kMainRunningSeconds, computes ? seconds : 0.02},
                   {SignalId::kMainWaitSeconds, computes ? 0 : seconds},
                   {SignalId::kMainWaitClass,
                    static_cast<double>(computes ? WaitClass::kRunning : WaitClass::kChild)}};
  return batch;
}

}  // namespace

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
  // torch/utils/file_baton.py sleeps 0.1 s and looks whether the lock's file is still there.
  hang.doing = lock ? Doing::kSleep : Doing::kCompile;
  for (int i = 0; i < world.plan.locals(); ++i) hang.ranks.push_back(world.plan.first_local() + i);
  // As exporter/probes/wait/python_stack.cc writes py-spy's frames.
  hang.python_frame = lock ? "torch.utils.file_baton:wait;torch.utils.cpp_extension:_jit_compile;"
                             "torch.utils.cpp_extension:load"
                           : "subprocess:run;torch.utils.cpp_extension:_run_ninja_build;"
                             "torch.utils.cpp_extension:_jit_compile";
  const auto begun = std::make_shared<double>(kForever);
  hang.speak = [lock, begun](World& of, double t, int) {
    if (lock) return;
    *begun = t;
    for (int i = 0; i < of.plan.locals(); ++i) {
      for (const char* const name : kCompilers) {
        ProcessStart child;
        child.key = CompilerOf(of.KeyOf(of.plan.first_local() + i), name, t);
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
  // cicc computes, and whoever started it waits for it. They end with the rank that they are of.
  World* const of = &world;
  world.on_host.push_back([of, begun](HostSecond& host) {
    if (host.t < *begun + 1) return;
    for (const Life& life : of->lives()) {
      if (host.t < life.born || host.t > life.died) continue;
      for (const char* const name : kCompilers)
        of->Tell(host.t + 0.05, Source::kWait, Compiling(life.key, name, *begun, host.t));
    }
  });
  world.interruptions.push_back(hang);
  world.decided_by = {{Witness::kWaits}};
}

}  // namespace rankscope::generator
