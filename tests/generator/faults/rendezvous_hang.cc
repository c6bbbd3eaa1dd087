// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The process group never forms: the coordinator is not there, cannot be reached, or some ranks
// never come.

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/generator/faults.h"
#include "tests/generator/text.h"

namespace rankscope::generator {

void ApplyC1(World& world, Random& random) {
  const int variant = random.Weighted({2, 1.5, 1.5, 2, 1});
  constexpr const char* kSubs[] = {"refused", "syn_timeout", "dns", "waiting", "unreachable"};
  const double onset = 2 + world.plan.import_seconds;
  world.Blame({}, onset);
  world.truth.sub = kSubs[variant];
  const bool remote = world.plan.nodes > 1;
  if (remote && world.plan.observed_node == 0 && variant != 3) {
    world.truth.sub = "waiting";  // the coordinator itself only waits
  }
  const bool waits = world.truth.sub == "waiting";
  const std::string master = remote ? world.plan.NodeName(0) : "127.0.0.1";
  const double timeout = random.Pick(std::vector<double>{60, 300, 600, 900});
  const bool gives_up = onset + timeout < world.horizon() - 30;
  world.Reserve(onset, 330);
  Interruption stand;
  stand.phase = Phase::kRendezvous;
  stand.at = gives_up ? 0.98 : 0.02;
  stand.all_wait = true;
  stand.doing = Doing::kSocket;
  stand.crash = gives_up;
  for (int i = 0; i < world.plan.locals(); ++i) stand.ranks.push_back(world.plan.first_local() + i);
  if (gives_up) world.plan.rendezvous_seconds = timeout;
  // c10d's socket.cpp tries again, of a name as of a connection, until its timeout.
  const double until = gives_up ? onset + timeout : world.horizon();
  const std::string address = remote ? "10.1.0.1" : "127.0.0.1";
  world.on_launch.push_back([=](World& of, int, double) {
    for (int i = 0; i < of.plan.locals(); ++i) {
      const int rank = of.plan.first_local() + i;
      const std::vector<KeyValue> peer = {{"peer", address + ":29500"}, {"host", address}};
      const auto tell = [&](double t, const char* outcome, int error, int attempts, double ms) {
        std::vector<KeyValue> facts = peer;
        facts.push_back({"outcome", outcome});
        of.Happen(t, Source::kNetwork, EventType::kConnect, rank, facts,
                  {{"port", 29500},
                   {"errno", error},
                   {"attempts", attempts},
                   {"milliseconds", static_cast<int64_t>(ms)}});
      };
      if (waits) {
        tell(onset + 1, "connected", 0, 1, 1);
      } else if (variant == 0) {
        for (double t = onset + 1; t < until; t += 5) tell(t, "refused", 111, 5, 1);
      } else if (variant == 1) {
        for (double t = onset + 31; t < until; t += 31) tell(t, "no_answer", 110, 5, 31000);
      } else if (variant == 4) {
        for (double t = onset + 2; t < until; t += 6) tell(t, "unreachable", 113, 2, 3000);
      } else {
        for (double t = onset + 1; t < until; t += 5)
          of.Happen(t, Source::kNetwork, EventType::kResolve, rank,
                    {{"name", master}, {"outcome", "no_such_name"}},
                    {{"code", -2}, {"attempts", 1}, {"milliseconds", 12}});
      }
      if (variant == 2 && !waits && i == 0)
        of.Say(rank, onset + 1.2,
               "[W socket.cpp:697] [c10d] The IPv6 network addresses of (" + master +
                   ", 29500) cannot be retrieved (gai error: -2 - Name or service not known).",
               true);
    }
  });
  const auto seconds = static_cast<int>(timeout);
  stand.speak = [=](World& of, double t, int rank) {
    if (!gives_up) return;
    const std::string what =
        waits ? "torch.distributed.DistStoreError: Timed out after " + std::to_string(seconds + 1) +
                    " seconds waiting for clients. " +
                    Text("%d/%d clients joined.", of.plan.ranks - 1, of.plan.ranks)
              : Text(
                    "torch.distributed.DistNetworkError: The client socket has timed out after "
                    "%d000ms while trying to connect to (%s, 29500).",
                    seconds, master.c_str());
    of.Traceback(rank, t,
                 {Text("\"/opt/train/%s\", line 40, in main|dist.init_process_group(\"nccl\")",
                       of.plan.script.c_str()),
                  "\"/usr/lib/python3/dist-packages/torch/distributed/rendezvous.py\", line 278, "
                  "in _env_rendezvous_handler|store = _create_c10d_store("},
                 what);
  };
  world.interruptions.push_back(stand);
  world.decided_by = {{Witness::kFault}};
}

}  // namespace rankscope::generator
