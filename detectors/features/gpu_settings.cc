// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/features/gpu_settings.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>
#include <utility>

#include "detectors/features/gpu_signature.h"
#include "detectors/windows/series/statistics.h"

namespace rankscope::features {
namespace {

using windows::GpuCount;
using windows::GpuWindow;

constexpr double kMinuteSeconds = 60;

class Describer {
 public:
  Describer(const std::vector<const GpuWindow*>& windows, Citer& citer, JobFeatures& f)
      : windows_(windows), citer_(citer), f_(f) {}

  void Run() {
    for (size_t i = 0; i < windows_.size(); ++i) {
      const GpuWindow& window = *windows_[i];
      RunGpu& gpu = f_.gpu.gpus[i];
      gpu.power_limit = window.power_limit.now;
      gpu.power_before = window.power_limit.highest;
      gpu.power_since = window.power_limit.since;
      gpu.peers_power = PeersMedian(i, [](const GpuWindow& of) { return of.power_limit.now; });
      DescribePowerLimit(gpu);
      DescribeClockLock(gpu);
      DescribeLink(i, gpu);
      DescribeLinkErrors(window, gpu);
    }
  }

 private:
  // Of the run's other GPUs of the same model; NaN: there are none, or they do not tell.
  template <class Value>
  double PeersMedian(size_t own, Value value) const {
    std::vector<double> values;
    for (size_t i = 0; i < windows_.size(); ++i) {
      if (i == own || windows_[i]->model != windows_[own]->model) continue;
      if (const double of = value(*windows_[i]); std::isfinite(of)) values.push_back(of);
    }
    return values.empty() ? RunGpu::kNone : windows::Median(values);
  }

  Evidence Of(EvidenceKind kind, std::string_view what, const RunGpu& gpu, double observed) const {
    Evidence evidence;
    evidence.kind = kind;
    evidence.store = proto::STORE_GPU;
    evidence.ranks = gpu.ranks;
    evidence.begin = f_.now - Seconds(kMinuteSeconds);
    evidence.end = f_.now;
    evidence.observed = observed;
    evidence.values = {{FieldId::kGpu, gpu.index},
                       {FieldId::kGpuUuid, gpu.uuid},
                       {FieldId::kWhat, std::string(what)}};
    return evidence;
  }

  EvidenceRef Add(Evidence evidence, const RunGpu& gpu) {
    evidence.values.Set(FieldId::kQuery, GpuQuery(evidence, {gpu.uuid}, f_));
    return citer_.Add(std::move(evidence));
  }

  // A limit is worth a word where it holds the clock down: a low one that nothing reaches costs
  // nothing.
  void DescribePowerLimit(RunGpu& gpu) {
    constexpr double kCapped = 0.2, kLower = 0.95;
    if (std::min(gpu.now.capped_duty, gpu.before.capped_duty) < kCapped) return;
    const bool lowered = gpu.power_limit <= kLower * gpu.power_before;
    if (!lowered && !(gpu.power_limit <= kLower * gpu.peers_power)) return;
    Evidence evidence = Of(EvidenceKind::kGpuPowerLimit, lowered ? "lowered" : "peers", gpu,
                           std::round(gpu.power_limit));
    if (lowered) evidence.begin = gpu.power_since;
    evidence.expected = std::round(lowered ? gpu.power_before : gpu.peers_power);
    evidence.unit = "W";
    gpu.power_limit_evidence = Add(std::move(evidence), gpu);
  }

  // The driver says that a setting limits the clock, and that of the peers is higher. At its power
  // limit or too hot, a GPU is slower than its setting asks for.
  void DescribeClockLock(RunGpu& gpu) {
    constexpr double kLocked = 0.5, kOther = 0.2, kLower = 0.9;
    const double other = std::max(
        {gpu.now.capped_duty, gpu.before.capped_duty, gpu.now.severe_duty, gpu.before.severe_duty});
    if (std::min(gpu.now.locked_duty, gpu.before.locked_duty) < kLocked || other >= kOther) return;
    if (!(gpu.clock <= kLower * gpu.peers_clock)) return;
    Evidence evidence = Of(EvidenceKind::kGpuClockLock, "clock", gpu, gpu.clock);
    evidence.unit = "Hz";
    evidence.values.Set(FieldId::kClock, gpu.clock).Set(FieldId::kPeersClock, gpu.peers_clock);
    gpu.clock_lock_evidence = Add(std::move(evidence), gpu);
  }

  // All GPUs alike on narrow links are how the board was built.
  void DescribeLink(size_t at, RunGpu& gpu) {
    const GpuWindow& window = *windows_[at];
    const double peers = PeersMedian(at, [](const GpuWindow& of) {
      return of.lanes > 0 ? static_cast<double>(of.lanes) : RunGpu::kNone;
    });
    if (window.lanes <= 0 || window.lanes >= window.lanes_max || !(window.lanes < peers)) return;
    Evidence evidence = Of(EvidenceKind::kGpuLink, "width", gpu, window.lanes);
    evidence.expected = peers;
    evidence.values.Set(FieldId::kMaxLanes, static_cast<double>(window.lanes_max));
    gpu.link_evidence = Add(std::move(evidence), gpu);
  }

  // A link sends again now and then for as long as it lives; one that does so all the time fails.
  // NVIDIA's limit for PCIe is 8 a minute.
  void DescribeLinkErrors(const GpuWindow& window, RunGpu& gpu) {
    constexpr double kStillSeconds = 60;
    struct Row {
      GpuCount count;
      std::string_view what;
      double per_minute;
    };
    constexpr Row kRows[] = {{GpuCount::kNvlinkErrors, "nvlink", 60},
                             {GpuCount::kPcieReplays, "pcie", 8}};
    for (const Row& row : kRows) {
      const windows::GpuRise& count = window.of(row.count);
      const double minutes = std::max(1.0, (f_.now - f_.begin).seconds() / kMinuteSeconds);
      if (count.rose < row.per_minute * minutes) continue;
      if ((f_.now - count.risen).seconds() > kStillSeconds) continue;
      Evidence evidence = Of(EvidenceKind::kGpuLinkErrors, row.what, gpu, count.rose);
      evidence.begin = f_.begin;
      evidence.values.Set(FieldId::kRate, count.rose / minutes).Set(FieldId::kBefore, count.first);
      gpu.link_errors_evidence = Add(std::move(evidence), gpu);
      return;
    }
  }

  const std::vector<const GpuWindow*>& windows_;
  Citer& citer_;
  JobFeatures& f_;
};

}  // namespace

void DescribeGpuSettings(const std::vector<const GpuWindow*>& windows, Citer& citer,
                         JobFeatures& f) {
  Describer(windows, citer, f).Run();
}

}  // namespace rankscope::features
