// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// One rank no longer comes to the collectives, and all others wait in theirs.

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/generator/faults.h"
#include "tests/generator/text.h"

namespace rankscope::generator {

void ApplyC2(World& world, Random& random) {
  const double onset = world.Onset(0.15, 0.6);
  const int rank = world.PickRank();
  world.Blame({rank}, onset);
  world.Reserve(onset, random.In({200, 900}) + 15 * world.plan.step_seconds);
  struct Variant {
    const char* sub;
    Doing doing;
    const char* frame;
    double weight;
  };
  constexpr Variant kVariants[] = {
      {"silent", Doing::kFutex, "step (train.py:212);acquire (threading.py:327)", 3},
      {"busy", Doing::kHost, "collate (data.py:80);pad (data.py:44)", 2},
      {"stopped", Doing::kStopped, "", 1.5},
      {"file_lock", Doing::kLock, "load (cache.py:33);flock (fcntl)", 1},
      {"dataloader", Doing::kData, "_try_get_data (dataloader.py:1275);get (queues.py:113)", 2},
      {"storage", Doing::kStuckFile, "write (io.py:120)", 1.5}};
  const Variant variant = kVariants[random.Weighted({3, 2, 1.5, 1, 2, 1.5})];
  world.truth.sub = variant.sub;
  world.truth.accepted_subs = {"watchdog", "silent", "absent_rank"};
  if (variant.doing == Doing::kStuckFile) world.truth.accepted = {"X21"};
  Interruption hang;
  hang.at = onset;
  hang.ranks = {rank};
  hang.doing = variant.doing;
  hang.python_frame = variant.frame;
  if (variant.doing == Doing::kStopped) {
    hang.speak = [](World& of, double t, int who) {
      of.Signal(t, who, 19, 0, {4711, 9}, "bash", of.plan.uid,
                "/user.slice/user-1000.slice/session-2.scope");
      of.Happen(t + 5, Source::kWait, EventType::kThreadStopped, who, {{"what", "stopped"}}, {});
    };
  }
  world.interruptions.push_back(hang);
  world.decided_by = {{Witness::kCollectives}, {Witness::kGpu, Witness::kText}};
}

}  // namespace rankscope::generator
