// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/families/family_names.h"

#include <array>

namespace rankscope::families {
namespace {

constexpr std::array kNames = {
    FamilyName{"A1", "startup_crash", "dies before the first training step by its own error"},
    FamilyName{"A2", "signal_kill", "a process killed by a fatal signal, no traceback"},
    FamilyName{"B1", "cuda_oom", "a GPU allocation that does not fit"},
    FamilyName{"B2", "gpu_hardware", "Xid, ECC, row remap, link: the GPU itself"},
    FamilyName{"B3", "gpu_throttle", "clocks held down by heat or power"},
    FamilyName{"C1", "rendezvous_hang", "the process group never forms"},
    FamilyName{"C2", "collective_hang", "training freezes inside a collective"},
    FamilyName{"C3", "idle_gpu_hang", "the GPU is held and nothing runs on it"},
    FamilyName{"D1", "gpu_underutilized", "the GPU waits for its input"},
    FamilyName{"D2", "throughput_bound", "slow by storage, fabric or blocking launches"},
    FamilyName{"D3", "straggler", "one rank drags all others"},
    FamilyName{"E1", "loss_divergence", "the loss diverges or nothing is learned"},
    FamilyName{"E2", "silent_resume", "a resume that did not resume"},
    FamilyName{"E3", "undertrained", "a step budget of a handful of steps"},
    FamilyName{"F1", "node_down", "the node went away under the run"},
    FamilyName{"F2", "requeue_preemption", "the scheduler took the nodes back"},
    FamilyName{"F3", "timeout", "ended at its time limit"},
    FamilyName{"G1", "healthy", "did real work and learned, on positive evidence"},
    FamilyName{"X1", "runtime_exception", "an exception in the middle of training"},
    FamilyName{"X2", "gpu_cotenant", "somebody else's memory on the GPU"},
    FamilyName{"X3", "gpu_app_fault", "a fault that the program's own kernel caused"},
    FamilyName{"X5", "network_fault", "a transport error between nodes"},
    FamilyName{"X10", "collective_desync", "ranks disagree about the collective"},
    FamilyName{"X12", "compile_stall", "waiting for a compiler or its lock"},
    FamilyName{"X14", "host_pause", "garbage collection and other pauses of the host process"},
    FamilyName{"X15", "host_hardware", "memory or CPU faults of the host"},
    FamilyName{"X16", "gpu_lost", "the GPU fell off the bus"},
    FamilyName{"X17", "load_imbalance", "uneven stages, sequences or experts"},
    FamilyName{"X19", "restart_storm", "restarts without progress"},
    FamilyName{"X20", "external_cancel", "ended from outside: a user, a script, an operator"},
    FamilyName{"X21", "storage_fault", "storage full, hanging or failing"},
    FamilyName{"X24", "precision_collapse", "the loss scale collapses"},
    FamilyName{"X26", "reward_collapse", "reinforcement learning without a signal"},
    FamilyName{"U0", "undetermined", "abnormal, and no evidence that decides"},
};

}  // namespace

std::span<const FamilyName> FamilyNames() {
  return kNames;
}

FamilyName FindFamily(std::string_view code) {
  for (const FamilyName& name : kNames) {
    if (name.code == code) return name;
  }
  return {};
}

}  // namespace rankscope::families
