// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Reading a batch by name. Pure; any thread.
#pragma once

#include <cmath>
#include <optional>

#include "detectors/model/observation.h"

namespace rankscope::windows {

// A number that is one; none of these signals is ever below 0.
inline std::optional<double> FindSample(const SampleBatch& batch, SignalId signal) {
  for (const Sample& sample : batch.samples) {
    if (sample.signal == signal && std::isfinite(sample.value) && sample.value >= 0)
      return sample.value;
  }
  return std::nullopt;
}

}  // namespace rankscope::windows
