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

// What shows the same on /metrics: a selector of the family that this kind of evidence reads.
std::string GpuQuery(EvidenceKind kind, const std::vector<std::string>& uuids);

// `windows` are those of f.gpu.gpus, in the same order.
void DescribeGpuSignature(const std::vector<const windows::GpuWindow*>& windows, Citer& citer,
                          JobFeatures& f);

}  // namespace rankscope::features
