// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/gpu/nvml_gpm.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace rankscope::collectors::nvml {
namespace {

// The hardware's counters are read out ten times a second; two samples of one read-out have no time
// between them.
constexpr Duration kLeastApart = Milliseconds(100);
constexpr double kMiB = 1024.0 * 1024.0;

// In the order in which they are asked.
constexpr std::array kMetrics = {kGpmGraphics, kGpmSm, kGpmSmOccupancy, kGpmDram,
                                 // In the order of kGpuPipes.
                                 kGpmTensor, kGpmHmma, kGpmImma, kGpmDfma, kGpmFp64, kGpmFp32,
                                 kGpmFp16, kGpmInteger,
                                 //
                                 kGpmPcieReceivedMibPerSecond, kGpmPcieSentMibPerSecond,
                                 kGpmNvlinkReceivedMibPerSecond, kGpmNvlinkSentMibPerSecond};
constexpr size_t kFirstPipe = 4;
constexpr size_t kFirstRate = kFirstPipe + kGpuPipes.size();

void AddRate(GpuValue mib_per_second, double seconds, double& sum, GpuValue& total,
             GpuValue& rate) {
  if (!mib_per_second) return;
  rate = *mib_per_second * kMiB;
  sum += *rate * seconds;
  total = sum;
}

}  // namespace

GpmReader::~GpmReader() {
  for (const GpmSample sample : samples_) {
    if (sample != nullptr) library_->Call(&Functions::gpm_free, sample);
  }
}

bool GpmReader::Begin(Session& session) {
  GpmSupport support{kGpmSupportVersion, 0};
  if (!session.Ask(&Functions::gpm_support, &support) || support.supported == 0) return false;
  for (GpmSample& sample : samples_) {
    if (sample == nullptr && library_->Call(&Functions::gpm_alloc, &sample) != kSuccess)
      return false;
  }
  return true;
}

bool GpmReader::Sample(Session& session, GpmSample sample) const {
  return gpu_instance_ < 0 ? session.Ask(&Functions::gpm_sample, sample)
                           : session.Ask(&Functions::gpm_mig_sample,
                                         static_cast<uint32_t>(gpu_instance_), sample);
}

void GpmReader::Read(Session& session, Timestamp now, GpuReading& reading) {
  if (state_ == State::kUnknown) state_ = Begin(session) ? State::kFirst : State::kNone;
  if (state_ == State::kNone) return;
  if (state_ == State::kRunning && now.ns - last_.ns < kLeastApart.ns) return;
  std::swap(samples_[0], samples_[1]);
  const double seconds = static_cast<double>(now.ns - last_.ns) * 1e-9;
  last_ = now;
  if (!Sample(session, samples_[1])) {
    state_ = State::kFirst;  // as in MIG mode, which may end
    return;
  }
  if (std::exchange(state_, State::kRunning) == State::kFirst) return;
  GpmMetricsGet metrics{};
  metrics.version = kGpmMetricsVersion;
  metrics.count = kMetrics.size();
  metrics.first = samples_[0];
  metrics.second = samples_[1];
  for (size_t i = 0; i < kMetrics.size(); ++i) metrics.metrics[i].id = kMetrics[i];
  if (!session.Note(library_->Call(&Functions::gpm_metrics, &metrics))) return;
  Fill(metrics, seconds, reading);
}

void GpmReader::Fill(const GpmMetricsGet& metrics, double seconds, GpuReading& reading) {
  const auto number = [&metrics](size_t i) {
    const GpmMetric& metric = metrics.metrics[i];
    return metric.status == kSuccess ? Known(metric.value) : std::nullopt;
  };
  if (const GpuValue engine = Ratio(number(0))) reading.engine_active = engine;
  reading.sm_active = Ratio(number(1));
  reading.sm_occupancy = Ratio(number(2));
  reading.dram_active = Ratio(number(3));
  for (size_t i = 0; i < kGpuPipes.size(); ++i) {
    reading.pipe_active[i] = Ratio(number(kFirstPipe + i));
  }
  reading.gpm = reading.sm_active.has_value();
  AddRate(number(kFirstRate), seconds, pcie_received_bytes_, reading.pcie_received_bytes,
          reading.pcie_received_rate);
  AddRate(number(kFirstRate + 1), seconds, pcie_sent_bytes_, reading.pcie_sent_bytes,
          reading.pcie_sent_rate);
  AddRate(number(kFirstRate + 2), seconds, nvlink_received_bytes_, reading.nvlink_received_bytes,
          reading.nvlink_received_rate);
  AddRate(number(kFirstRate + 3), seconds, nvlink_sent_bytes_, reading.nvlink_sent_bytes,
          reading.nvlink_sent_rate);
}

}  // namespace rankscope::collectors::nvml
