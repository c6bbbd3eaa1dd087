// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What the counters of the hardware say of the time between two looks: NVML's GPM, on Hopper and
// later and not in MIG mode. Takes no lock that a profiler would miss, as older GPUs' counters do.
// The device's worker only.
#pragma once

#include <array>

#include "detectors/model/gpu_reading.h"
#include "detectors/model/time.h"
#include "exporter/gpu/nvml_session.h"

namespace rankscope::collectors::nvml {

class GpmReader {
 public:
  explicit GpmReader(std::shared_ptr<const Library> library) : library_(std::move(library)) {}
  ~GpmReader();
  GpmReader(const GpmReader&) = delete;
  GpmReader& operator=(const GpmReader&) = delete;

  // Fills what is of the counters; leaves the rest absent at the first look, and where the GPU has
  // none.
  void Read(Session& session, Timestamp now, GpuReading& reading);

  // After a GPU has been away its samples are of no use.
  void Forget() { state_ = State::kUnknown; }

 private:
  enum class State : uint8_t { kUnknown, kNone, kFirst, kRunning };

  bool Begin(Session& session);
  void Fill(const GpmMetricsGet& metrics, double seconds, GpuReading& reading);

  std::shared_ptr<const Library> library_;
  State state_ = State::kUnknown;
  std::array<GpmSample, 2> samples_{};  // the older, the newer
  Timestamp last_;
  // Summed up, for GPUs that count no bytes of their own.
  double pcie_received_bytes_ = 0, pcie_sent_bytes_ = 0;
  double nvlink_received_bytes_ = 0, nvlink_sent_bytes_ = 0;
};

}  // namespace rankscope::collectors::nvml
