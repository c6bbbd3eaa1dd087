// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The transport between nodes breaks: InfiniBand retries run out, a port goes down, libfabric
// reports an error.

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "tests/generator/faults.h"
#include "tests/generator/text.h"

namespace rankscope::generator {

void ApplyX5(World& world, Random& random) {
  const double onset = world.Onset(0.1, 0.85);
  const int rank = world.plan.first_local() + random.Int(0, world.plan.locals() - 1);
  const bool efa = random.Chance(0.25);
  const bool port = !efa && random.Chance(0.5);
  world.Blame({}, onset);
  world.truth.sub = efa ? "efa" : "ib";
  world.truth.accepted_subs = {"ib", "efa", "path"};
  world.truth.culprit_seen = true;
  world.on_host.push_back([=](HostSecond& host) {
    if (efa) return;
    if (port && host.t > onset) host.rdma_down = 1;
    // Local ACK timeouts until the retries run out, and then the requests end with an error.
    if (host.t > onset && host.t < onset + 25) host.port_timeouts = 4;
    if (host.t > onset + 4 && host.t < onset + 6) host.port_request_errors = 8;
  });
  Interruption crash = CrashOf(onset + (efa ? 0.5 : random.In({4, 25})), {rank});
  crash.wait_status = 6;
  crash.speak = [=](World& of, double t, int who) {
    const std::string head = Text("%s:%d:%d [%d] ", of.plan.NodeOf(who).c_str(), of.KeyOf(who).pid,
                                  of.KeyOf(who).pid + 190, who % of.plan.per_node);
    if (efa)
      of.Say(who, t,
             head +
                 "nccl_net_ofi_rdma.cpp:741 NCCL WARN NET/OFI Request completed with error. RC: "
                 "21. Error: unknown error",
             true);
    else
      of.Say(who, t,
             head +
                 "transport/net_ib.cc:1861 NCCL WARN NET/IB : Got completion from peer "
                 "10.4.0.7<44206> with status=12 opcode=0 len=0 vendor err 129 (Recv) localGid "
                 "fe80::1 remoteGids fe80::2 hca mlx5_2",
             true);
    of.Say(who, t + 0.1,
           Text("[rank%d]:[E%s ProcessGroupNCCL.cpp:1895] [PG ID 0 PG GUID 0(default_pg) Rank %d] "
                "Process group watchdog thread terminated with exception: NCCL error: remote "
                "process exited or there was a network error, NCCL version 2.27.5",
                who, Calendar(of.Wall(t), "%m%d %H:%M:%S.%f000").c_str(), who),
           true);
    of.Signal(t + 0.3, who, 6, -6, of.KeyOf(who), "python3", of.plan.uid, "");
  };
  world.interruptions.push_back(crash);
  world.decided_by = {{Witness::kFault}};
}

}  // namespace rankscope::generator
