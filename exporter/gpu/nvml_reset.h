// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Whether a GPU was brought back to order between two looks, by what only that does: its energy is
// counted from 0 again, which nobody can ask for; it was gone, and what it counts has begun anew;
// or the driver, which had asked for something, asks for nothing. Counters of memory errors and of
// links can be cleared by hand and say nothing by themselves. Loop thread only.
#pragma once

#include "detectors/model/gpu_reading.h"

namespace rankscope::collectors::nvml {

class ResetWatch {
 public:
  enum class Sign : uint8_t {
    kNone,
    kReset,
    kReturned,      // reset, and it had been gone
    kSettled,       // the driver asks for nothing, and had
    kNothingAsked,  // the driver tells that, and has not asked since this began
  };
  Sign Of(const GpuStatus& gpu);

 private:
  GpuReading last_;  // of the newest look that it was up at
  GpuValue asked_;   // the driver's recovery action, as last told
  bool lost_ = false;
};

}  // namespace rankscope::collectors::nvml
