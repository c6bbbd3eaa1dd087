// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// A rank ends with a code of its own and says nothing: what was observed decides nothing.

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "tests/generator/faults.h"
#include "tests/generator/text.h"

namespace rankscope::generator {

void ApplyU0(World& world, Random& random) {
  const double onset = world.Onset(0.1, 0.8);
  const int rank = world.PickRank();
  world.Blame({rank}, onset);
  Interruption crash = CrashOf(onset, {rank});
  crash.wait_status = random.Int(2, 60) << 8;
  world.interruptions.push_back(crash);
}

}  // namespace rankscope::generator
