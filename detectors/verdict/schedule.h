// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Whether the learning rate follows the schedule that the run's own command asks for: warm-up,
// decay, length. Pure; any thread.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "detectors/windows/job_window.h"

namespace rankscope::engine {

struct OffSchedule {
  double expected = 0;   // the rate that the command gives for the newest step
  std::string schedule;  // "a warm-up of 2000 steps and a cosine decay over 10000"
};

// `total_steps`: as the run prints it, NaN where it does not; the command's own number goes before.
// Nothing where the command does not say enough, where steps may be counted in another unit than
// the command's (accumulated gradients), or where the rate is within half and twice what it should
// be.
std::optional<OffSchedule> LeavesItsSchedule(std::span<const std::string> argv, double total_steps,
                                             const windows::LearningRateTracker& rate);

}  // namespace rankscope::engine
