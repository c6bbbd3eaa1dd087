// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What happens to the observer and not to the job: stores that are missing, a daemon that begins
// late or is restarted, lost bytes, late ticks. Single thread.
#pragma once

#include <vector>

#include "tests/generator/world.h"

namespace rankscope::generator {

// Sorts the items by time and changes them; `random` is not the world's.
void Disturb(const Options& options, const World& world, Random random, Truth& truth,
             std::vector<Item>& items);

// Whether what is left tells the fault from others, by the witnesses that its mechanism names.
bool IsDecidable(const std::vector<std::vector<Witness>>& decided_by, const Truth& truth,
                 const std::vector<Item>& items);

}  // namespace rankscope::generator
