// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What slows a GPU of the run and is no fault of its chip: a power limit, a clock that somebody
// set, its link to the host, and links to other GPUs that have to send again. Private to features;
// pure.
#pragma once

#include <vector>

#include "detectors/features/cite.h"
#include "detectors/features/job_features.h"
#include "detectors/windows/trackers/gpu_tracker.h"

namespace rankscope::features {

// `windows` are those of f.gpu.gpus, in the same order, whose clocks and minutes are known.
void DescribeGpuSettings(const std::vector<const windows::GpuWindow*>& windows, Citer& citer,
                         JobFeatures& f);

}  // namespace rankscope::features
