// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The clocks of the wrapper, which has no event loop: the one file of this room that reads them.
// Any thread.
#pragma once

#include <cstdint>
#include <string>

#include "detectors/model/observation.h"
#include "detectors/model/time.h"

namespace rankscope::run {

Timestamp MonotonicNow();
int64_t WallNowNs();

// Wall against monotonic time, read between two readings of the monotonic clock, whose distance is
// the uncertainty.
Epoch ReadEpoch();

// 2026-11-20T16:00:50.496Z
std::string WallText(int64_t wall_ns);

}  // namespace rankscope::run
