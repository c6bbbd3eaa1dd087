// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The program is begun anew again and again and fails each time at about the same place.

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "tests/generator/faults.h"
#include "tests/generator/text.h"

namespace rankscope::generator {

void ApplyX19(World& world, Random& random) {
  Plan& plan = world.plan;
  const int attempts = random.Int(5, 9);
  world.attempts = attempts;
  // By the launcher (torchrun --max-restarts) or by the scheduler.
  world.between_attempts = 0;
  plan.import_seconds = std::min(plan.import_seconds, 10.0);
  plan.load_seconds = std::min(plan.load_seconds, 15.0);
  plan.compile_seconds = std::min(plan.compile_seconds, 5.0);
  plan.warmup_factor = 1.2;
  plan.save_every = 0;
  const double train = random.In({20, 60}) + 6 * plan.step_seconds;
  const double each = 4 + plan.import_seconds + plan.rendezvous_seconds + plan.load_seconds +
                      plan.compile_seconds + train;
  world.Reserve(each, each * attempts + 60);
  const int rank = world.plan.first_local() + random.Int(0, plan.locals() - 1);
  world.Blame({rank}, each);
  world.truth.onset = each;
  world.truth.sub = "no_advance";
  world.truth.accepted_subs = {"storm"};
  world.truth.accepted = {"X1"};
  for (int i = 0; i < attempts; ++i) {
    Interruption crash;
    crash.attempt = i;
    crash.of_attempt = true;
    crash.at = train * random.Between(0.99, 1.01);  // the same input
    crash.ranks = {rank};
    crash.crash = true;
    crash.speak = [i, attempts](World& of, double t, int who) {
      of.Traceback(who, t,
                   {"\"/opt/train/data.py\", line 31, in __getitem__|return self.rows[index]"},
                   "IndexError: list index out of range");
      if (i + 1 < attempts)
        of.Say(-1, t + 2,
               Text("I%s %d torch/distributed/elastic/agent/server/api.py:879] [default] Worker "
                    "group FAILED. %d/%d attempts left; will restart worker group",
                    Calendar(of.Wall(t), "%m%d %H:%M:%S.%f").c_str(), of.launcher().pid,
                    attempts - 1 - i, attempts - 1),
               true);
    };
    world.interruptions.push_back(crash);
  }
  world.decided_by = {{Witness::kFault}};
}

}  // namespace rankscope::generator
