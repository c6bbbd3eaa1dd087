// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Ranks disagree about the collective that comes next: one calls another operation, or fewer of
// them.

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "tests/generator/faults.h"
#include "tests/generator/text.h"

namespace rankscope::generator {

void ApplyX10(World& world, Random& random) {
  const double onset = world.Onset(0.1, 0.5);
  const int rank = world.PickRank();
  world.Blame({rank}, onset);
  if (world.plan.ranks == 2) {  // of two neither is the odd one
    world.truth.ranks.clear();
    world.truth.gpus.clear();
  }
  world.plan.watchdog = true;
  world.plan.nccl_timeout = random.Pick(std::vector<double>{120, 300, 600});
  world.Reserve(onset, world.plan.nccl_timeout + 60);
  const bool fingerprints = random.Chance(0.4);
  const double timeout = world.plan.nccl_timeout;
  world.truth.sub = random.Chance(0.5) ? "op" : "size";
  world.truth.accepted_subs = {"op", "size"};
  world.truth.accepted = {"C2"};
  Interruption hang;
  hang.at = onset;
  hang.ranks = {rank};
  hang.doing = Doing::kSpin;  // it waits in a collective as well, of its own
  const bool op = world.truth.sub == "op";
  hang.speak = [=](World& of, double t, int who) {
    const double at = fingerprints ? t + 2 : t + timeout + 0.4;
    if (at > of.horizon()) return;
    const auto milliseconds = static_cast<int>(timeout * 1000);
    if (fingerprints) {
      // Each rank compares its own with all others, and tells of the first that differs.
      const auto tell = [&](int own, int other, bool own_differs) {
        const char* const odd = op ? "BROADCAST" : "ALLREDUCE";
        const int odd_size = op ? 1024 : 2048;
        of.Say(own, at,
               Text("[rank%d]: RuntimeError: Detected mismatch between collectives on ranks. Rank "
                    "%d is running collective: CollectiveFingerPrint(SequenceNumber=%d, OpType=%s, "
                    "TensorShape=[%d], TensorDtypes=Float, TensorDeviceTypes=TensorOptions(dtype="
                    "float (default), device=cuda)), but Rank %d is running collective: "
                    "CollectiveFingerPrint(SequenceNumber=%d, OpType=%s, TensorShape=[%d]).",
                    own, own, of.last_step() * 7, own_differs ? odd : "ALLREDUCE",
                    own_differs ? odd_size : 1024, other, of.last_step() * 7,
                    own_differs ? "ALLREDUCE" : odd, own_differs ? 1024 : odd_size),
               true);
      };
      tell(who, who == 0 ? 1 : 0, true);
      for (int peer = 0; peer < std::min(4, of.plan.ranks); ++peer) {
        if (peer != who) tell(peer, who, false);
      }
    } else {
      of.Say(
          who, at,
          Text("[rank%d]:[E%s ProcessGroupNCCL.cpp:632] [Rank %d] Watchdog caught collective "
               "operation timeout: WorkNCCL(SeqNum=%lld, OpType=%s, NumelIn=%d, NumelOut=%d, "
               "Timeout(ms)=%d) ran for %d milliseconds before timing out.",
               who, Calendar(of.Wall(at), "%m%d %H:%M:%S.%f000").c_str(), who,
               static_cast<long long>(of.collectives() + 1), op ? "BROADCAST" : "ALLREDUCE",
               op ? 25165824 : 7340032, op ? 25165824 : 7340032, milliseconds, milliseconds + 40),
          true);
      of.SayGroup(who, at + 0.01);
    }
  };
  world.interruptions.push_back(hang);
  world.ending_fixed = true;
  world.hang_end = Ending::kWatchdog;
  world.decided_by = {{Witness::kFault}};
}

}  // namespace rankscope::generator
