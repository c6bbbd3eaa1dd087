// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Host memory that runs short: the kernel writes a rank's memory to swap, and the rank needs it
// again. Page faults alone are those of a start or of a file that is mapped; swap that grows alone
// holds what nobody needs; what lies in swap and stays there is an old story. Private to features;
// pure.
#pragma once

#include "detectors/features/cite.h"
#include "detectors/features/job_features.h"
#include "detectors/windows/job_window.h"

namespace rankscope::features {

void DescribeMemoryPressure(const windows::JobWindow& job, Citer& citer, JobFeatures& f);

}  // namespace rankscope::features
