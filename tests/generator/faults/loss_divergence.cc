// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The model stops learning or diverges, and the program goes on.

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "tests/generator/faults.h"
#include "tests/generator/text.h"

namespace rankscope::generator {

void ApplyE1(World& world, Random& random) {
  const int variant = random.Weighted({3, 2, 1.5, 1});
  constexpr const char* kSubs[] = {"nan", "rose", "plateau", "frozen"};
  const double onset = variant == 3 ? world.TrainBegin() : world.Onset(0.15, 0.5);
  world.Reserve(onset, std::max(240.0, 120.0 * world.plan.log_every * world.plan.step_seconds));
  world.Blame({}, onset);
  world.truth.sub = kSubs[variant];
  world.truth.accepted_subs = {"exploded", "rose", "plateau", "frozen", "not_finite", "silent_nan"};
  const double first = world.plan.loss_first, height = random.In({1.3, 6});
  const double lead = random.In({4, 30}), noise = world.plan.loss_noise;
  const auto begun = std::make_shared<int>(-1);
  const auto mixed = std::make_shared<Random>(random.Fork(9));
  world.on_numbers.push_back([=](Numbers& numbers) {
    if (numbers.t < onset) return;
    if (*begun < 0) *begun = numbers.step;
    const double since = numbers.step - *begun;
    const double jitter = 1 + noise * mixed->Normal();
    switch (variant) {
      case 0:
        numbers.grad_norm *= std::exp(std::min(since, 12.0));
        if (since < lead) break;
        numbers.loss = std::numeric_limits<double>::quiet_NaN();
        numbers.grad_norm = std::numeric_limits<double>::quiet_NaN();
        break;
      case 1:
        numbers.loss += (first * height - numbers.loss) * (1 - std::exp(-since / (4 * lead)));
        numbers.loss *= jitter;
        numbers.grad_norm *= 8;
        break;
      case 2:
        numbers.loss = first * 0.9 * jitter;
        break;
      default:
        numbers.loss = first * (1 + 0.2 * (jitter - 1));
        numbers.grad_norm = 1e-6 * jitter;
        break;
    }
  });
  EndSomehow(world, random, onset);
  world.decided_by = {{Witness::kRecords}};
}

}  // namespace rankscope::generator
