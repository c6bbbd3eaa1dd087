// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// How busy the GPUs of a rank were in the last minute. Sources poll GPUs, not ranks: what a GPU
// did reaches the ranks that hold it here. Pure; any thread.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "detectors/model/time.h"
#include "detectors/windows/gpu_claims.h"

namespace rankscope::windows {

// Medians of the last minute; of several GPUs, their mean. NaN: no GPU of the rank reports it.
struct RankActivity {
  double engine = std::numeric_limits<double>::quiet_NaN();
  double sm = std::numeric_limits<double>::quiet_NaN();
};

// `rank` -1: of the GPUs that belong to the job and to no rank of it.
RankActivity ActivityOf(const std::vector<ClaimedGpu>& claimed, int32_t rank, Timestamp now);

}  // namespace rankscope::windows
