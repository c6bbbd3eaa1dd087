// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Reads one GPU. What changes with the load is asked at each look, what changes with the hardware's
// state at every tenth. A call may never return: each device has a worker's thread of its own, and
// all of this is for that thread.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <string>

#include "detectors/model/gpu_reading.h"
#include "detectors/model/time.h"
#include "exporter/gpu/nvml_gpm.h"
#include "exporter/gpu/nvml_hardware.h"
#include "exporter/gpu/nvml_library.h"
#include "exporter/gpu/nvml_session.h"

namespace rankscope::collectors::nvml {

// What a counter of bytes has gained in each second since the look before.
class ByteRate {
 public:
  // Absent at the first, and when the counter has begun anew.
  GpuValue Of(GpuValue total, Timestamp now);

 private:
  GpuValue total_;
  Timestamp at_;
};

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
  void ReadParts(Session& session, Timestamp now);
  void ReadFields(Session& session, Timestamp now);
  void TakeBytes(const FieldReader& fields, Timestamp now);
  void ReadThrottling(Session& session, Timestamp now);
  void ReadErrors(Session& session);

  std::shared_ptr<const Library> library_;
  Device device_ = nullptr;  // null: to be found, again
  GpuIdentity identity_;
  GpmReader gpm_;
  std::map<int64_t, std::unique_ptr<GpmReader>> gpm_of_parts_;  // by GPU instance
  GpuReading reading_;
  int64_t looks_ = 0;
  Timestamp last_look_;
  std::array<double, kGpuThrottleReasons.size()> seen_throttled_{};
  // Once the GPU has counted a reason, what was seen never takes its place: a counter does not
  // fall.
  std::array<bool, kGpuThrottleReasons.size()> card_counts_{};
  std::array<ByteRate, 4> rates_{};  // PCIe, NVLink: received, sent
  bool bytes_by_link_ = false;       // this GPU counts NVLink's bytes for each link only
};

}  // namespace rankscope::collectors::nvml
