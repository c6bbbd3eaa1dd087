// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What the exporter shows of a job, from the engine's view of it. Pure.
#pragma once

#include "detectors/engine/job_view.h"
#include "detectors/status/job_status.h"

namespace rankscope::status {

// `before`: what was shown of the same job last, for what its processes do not say any more once
// they are gone; null = nothing. Of a job whose state is packed there is only the verdict.
JobStatus DescribeJob(const engine::JobView& view, const JobStatus* before = nullptr);

}  // namespace rankscope::status
