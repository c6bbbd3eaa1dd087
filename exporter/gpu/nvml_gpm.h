// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What the counters of the hardware say of the time between two looks: NVML's GPM, on Hopper and
// later and not in MIG mode. Takes no lock that a profiler would miss, as older GPUs' counters do.
// The device's worker only.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <utility>

#include "detectors/model/gpu_reading.h"
#include "detectors/model/time.h"
#include "exporter/gpu/nvml_session.h"

namespace rankscope::collectors::nvml {

class GpmReader {
 public:
  // Of the whole GPU, or of one of its MIG instances.
  explicit GpmReader(std::shared_ptr<const Library> library, int64_t gpu_instance = -1)
      : library_(std::move(library)), gpu_instance_(gpu_instance) {}
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
  bool Sample(Session& session, GpmSample sample) const;
  void Fill(const GpmMetricsGet& metrics, double seconds, GpuReading& reading);

  std::shared_ptr<const Library> library_;
  int64_t gpu_instance_;  // -1: the whole
  State state_ = State::kUnknown;
  std::array<GpmSample, 2> samples_{};  // the older, the newer
  Timestamp last_;
  // Summed up, for GPUs that count no bytes of their own.
  double pcie_received_bytes_ = 0, pcie_sent_bytes_ = 0;
  double nvlink_received_bytes_ = 0, nvlink_sent_bytes_ = 0;
};

}  // namespace rankscope::collectors::nvml
