// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The curves of a job's cards from their windows. Private to the room; pure.
#pragma once

#include <cstdint>
#include <vector>

#include "detectors/status/gpu_history.h"
#include "detectors/windows/trackers/gpu_tracker.h"

namespace rankscope::status {

// Of the cards that processes of the job have computed on, by index: the first kShownGpus of them.
// `wall_offset_ns` is from monotonic to wall time; 0 = not known.
inline constexpr size_t kShownGpus = 16;  // of one node
std::vector<GpuHistory> DescribeGpus(const windows::GpuTracker& tracker, int64_t wall_offset_ns);

}  // namespace rankscope::status
