// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// A look at a GPU as samples for the detectors. What has counted since the
// driver's load (bytes, joules, seconds) is counted from the first look on; errors and remaps are
// few and keep their value, for whether they were there before a run is evidence. One for each GPU;
// loop thread.
#pragma once

#include <array>

#include "detectors/model/gpu_reading.h"
#include "detectors/model/observation.h"

namespace rankscope::collectors::nvml {

class Samples {
 public:
  // Only what the GPU tells.
  SampleBatch Of(const GpuStatus& gpu);

 private:
  // A counter that begins anew when the driver does, as one that rises.
  struct Rising {
    GpuValue last;
    double total = 0;
    double Add(double value);
  };
  static constexpr size_t kRising = 6;

  std::array<Rising, kRising> rising_;
};

}  // namespace rankscope::collectors::nvml
