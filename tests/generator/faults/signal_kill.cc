// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// A process is killed by a signal and says nothing: by the kernel's out-of-memory killer, by its
// own fault, or by somebody else.

#include <algorithm>

#include "tests/generator/faults.h"
#include "tests/generator/text.h"

namespace rankscope::generator {

namespace {

constexpr double kGibibyte = 1073741824.0;
constexpr int kKernel = 0x80;  // si_code SI_KERNEL

void OutOfMemory(World& world, Random& random, Interruption& crash, double onset, bool host) {
  const double begins = onset - random.In({20, 240});
  const double limit = host ? 1000 * kGibibyte : world.plan.locals() * 120 * kGibibyte;
  const int rank = crash.ranks.front();
  world.on_host.push_back([=](HostSecond& second) {
    const double share = std::clamp((second.t - begins) / (onset - begins), 0.0, 1.0);
    if (second.t > onset + 1) return;
    if (host) second.available *= 1 - 0.998 * share;
    second.job_memory += (limit - second.job_memory) * share * (host ? 0.7 : 1);
    if (share > 0.9) second.memory_waiting = 0.3 * share;
    if (second.t > onset && second.t <= onset + 1) {
      second.oom_kills = 1;
      if (!host) second.job_oom_kills = 1;
    }
  });
  world.on_process.push_back([=](ProcessSecond& second) {
    if (second.rank != rank || second.t > onset + 1) return;
    second.resident += limit * 0.8 * std::clamp((second.t - begins) / (onset - begins), 0.0, 1.0);
  });
  crash.wait_status = 9;
  crash.speak = [=](World& of, double t, int victim) {
    of.Signal(t, victim, 9, kKernel, of.KeyOf(victim), "python3", of.plan.uid, "");
    if (!of.plan.IsLocal(victim)) return;
    KernelEvent killed;
    killed.type = KernelEventType::kOomKill;
    killed.victim = of.KeyOf(victim);
    killed.scope = host ? "host" : "cgroup";
    if (!host) {
      killed.cgroup = "/system.slice/slurmstepd.scope/job_" + of.plan.job_id;
      killed.limit_bytes = static_cast<int64_t>(limit);
      killed.used_bytes = static_cast<int64_t>(limit);
    }
    killed.text = Text(
        "oom-kill:constraint=%s,nodemask=(null),cpuset=step_0,mems_allowed=0-1,%stask=python3,pid=%"
        "d,uid=%d",
        host ? "CONSTRAINT_NONE" : "CONSTRAINT_MEMCG", host ? "global_oom," : "", killed.victim.pid,
        of.plan.uid);
    of.Tell(t + 0.02, Source::kProcess, killed);
    if (of.plan.slurm && !host)
      of.SayScheduler(t + 5, Text("slurmstepd: error: Detected 1 oom_kill event in StepId=%s.0. "
                                  "Some of the step tasks have been OOM Killed.",
                                  of.plan.job_id.c_str()));
  };
}

}  // namespace

void ApplyA2(World& world, Random& random) {
  const double onset = world.Onset(0.1, 0.8);
  const int rank = world.PickRank();
  world.Blame({rank}, onset);
  Interruption crash = CrashOf(onset, {rank});
  crash.exit_tells = true;
  const int variant = random.Weighted({3, 2, 2, 1.5, 1});
  world.decided_by = {{Witness::kFault}};
  if (variant == 0 && world.plan.slurm) {
    OutOfMemory(world, random, crash, onset, false);
    world.truth.sub = "host_oom";  // of the cgroup
  } else if (variant <= 1) {
    OutOfMemory(world, random, crash, onset, true);
    world.truth.sub = "host_oom";
  } else if (variant == 2) {
    world.truth.sub = "sigsegv";
    crash.wait_status = 11;
    crash.speak = [](World& of, double t, int victim) {
      of.Signal(t, victim, 11, 1, of.KeyOf(victim), "python3", of.plan.uid, "");
    };
  } else if (variant == 3) {
    world.truth.sub = "sigkill";
    crash.wait_status = 9;
    const char* const killer = random.Pick({"earlyoom", "systemd-oomd", "kill", "watch-gpu.sh"});
    crash.speak = [killer](World& of, double t, int victim) {
      of.Signal(t, victim, 9, 0, {911, 40}, killer, 0, "/system.slice/" + std::string(killer));
    };
  } else {
    world.truth.sub = "shm";
    world.truth.accepted_subs = {"sigbus"};
    crash.wait_status = 7;
    world.on_process.push_back([rank, onset](ProcessSecond& second) {
      if (second.rank == rank)
        second.shared_memory_free = 64e9 * std::max(0.0, 1 - second.t / onset);
    });
    crash.speak = [](World& of, double t, int victim) {
      of.Signal(t, victim, 7, 2, of.KeyOf(victim), "python3", of.plan.uid, "");
      of.Happen(t, Source::kIo, EventType::kFileSpace, victim, {{"filesystem", "shared_memory"}},
                {{"free_bytes", 0}, {"total_bytes", 64000000000}, {"bus_error", 1}});
    };
  }
  world.interruptions.push_back(crash);
}

}  // namespace rankscope::generator
