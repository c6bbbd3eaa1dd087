// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The GPUs of a job as pictures: memory over the run, engine against SMs over the last hour, and
// below them when heat or power supply limited the GPU's clocks and when the driver reported an
// error; behind them when the job was suspended. SVG inside the page, without scripts, attributes
// of style or references. About 4 kB per GPU. Pure.
#pragma once

#include <string>
#include <vector>

#include "detectors/status/gpu_history.h"
#include "exporter/metrics/published.h"

namespace rankscope::web {

// Nothing at all if the job has no GPU.
void AppendGpuCharts(const JobStatus& job, const std::vector<metrics::SourceStatus>& sources,
                     std::string& out);

}  // namespace rankscope::web
