// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The job's life as marks and stretches of time: attempts, suspensions, and what the scheduler has
// told of it. Private to the room; pure.
#pragma once

#include <cstdint>

#include "detectors/status/job_status.h"
#include "detectors/windows/job_window.h"

namespace rankscope::status {

// Nothing where wall time is not known.
JobTimeline DescribeTimeline(const windows::JobWindow& job, const proto::Verdict& verdict,
                             int64_t wall_offset_ns, Timestamp now);

}  // namespace rankscope::status
