// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Whether the learning rate follows the schedule that the run's own command asks for: warm-up,
// decay, length. Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "detectors/windows/job_window.h"

namespace rankscope::engine {

struct OffSchedule {
  double expected = 0;     // the rate that the command gives for the newest step
  int64_t warm_up = 0;     // steps; 0 = none
  std::string_view style;  // linear | cosine | constant; empty = not told
  int64_t decay = 0;       // steps from the first to the end of the decay; 0 = none
};

// `total_steps`: as the run prints it, NaN where it does not; the command's own number goes before.
// Nothing where the command does not say enough, where steps may be counted in another unit than
// the command's (accumulated gradients), or where the rate is within half and twice what it should
// be.
std::optional<OffSchedule> LeavesItsSchedule(std::span<const std::string> argv, double total_steps,
                                             const windows::LearningRateTracker& rate);

}  // namespace rankscope::engine
