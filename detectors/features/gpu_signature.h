// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What the run's cards show together: who waits inside a collective and who has nothing to do, the
// card that is unlike its peers, the memory curve, and that nothing was counted against any of
// them. Private to features; pure.
#pragma once

#include <string>
#include <vector>

#include "detectors/features/cite.h"
#include "detectors/features/job_features.h"
#include "detectors/windows/trackers/gpu_tracker.h"

namespace rankscope::features {

// The query that returns what such an evidence has observed on these cards, by its kind, what it is
// about and the time that it covers.
std::string GpuQuery(const Evidence& evidence, const std::vector<std::string>& uuids,
                     const JobFeatures& f);

// `windows` are those of f.gpu.gpus, in the same order.
void DescribeGpuSignature(const windows::JobWindow& job,
                          const std::vector<const windows::GpuWindow*>& windows, Citer& citer,
                          JobFeatures& f);

}  // namespace rankscope::features
