// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Reads one GPU. What changes with the load is asked at each look, what changes with the hardware's
// state at every tenth. A call may never return: each device has a worker's thread of its own, and
// all of this is for that thread.
#pragma once

#include <memory>
#include <string>

#include "detectors/model/gpu_reading.h"
#include "detectors/model/time.h"
#include "exporter/gpu/nvml_gpm.h"
#include "exporter/gpu/nvml_library.h"
#include "exporter/gpu/nvml_session.h"

namespace rankscope::collectors::nvml {

class DeviceReader {
 public:
  DeviceReader(std::shared_ptr<const Library> library, int32_t index);

  // `now` may be any clock that rises.
  GpuStatus Look(Timestamp now);

 private:
  static constexpr int64_t kSlowLooks = 10;

  GpuStatus Attach();
  GpuStatus Failed(Return error);
  void ReadFast(Session& session, Timestamp now);
  void ReadSlow(Session& session);
  void ReadMemory(Session& session);
  void ReadActivity(Session& session, Timestamp now);
  void ReadFields(Session& session);
  void ReadThrottling(Session& session, Timestamp now);
  void ReadErrors(Session& session);

  std::shared_ptr<const Library> library_;
  Device device_ = nullptr;  // null: to be found, again
  GpuIdentity identity_;
  GpmReader gpm_;
  GpuReading reading_;
  int64_t looks_ = 0;
  Timestamp last_look_;
  std::array<double, kGpuThrottleReasons.size()> seen_throttled_{};
  // Once the GPU has counted a reason, what was seen never takes its place: a counter does not
  // fall.
  std::array<bool, kGpuThrottleReasons.size()> card_counts_{};
  bool bytes_by_link_ = false;  // this GPU counts NVLink's bytes for each link only
};

}  // namespace rankscope::collectors::nvml
