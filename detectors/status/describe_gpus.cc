// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/status/describe_gpus.h"

#include <algorithm>

#include "detectors/model/pci_card.h"

namespace rankscope::status {
namespace {

using windows::GpuWindow;

double Wall(Timestamp t, int64_t wall_offset_ns) {
  return wall_offset_ns != 0 ? static_cast<double>(t.ns + wall_offset_ns) * 1e-9
                             : GpuHistory::kNone;
}

void DescribeMemory(const GpuWindow& window, int64_t wall_offset_ns, GpuHistory& gpu) {
  gpu.memory_total_bytes = window.memory_total;
  if (window.memory.empty()) return;
  const std::vector<double> peaks = window.memory.Peaks();
  gpu.memory_bytes.assign(peaks.begin(), peaks.end());
  gpu.memory_begin_wall_seconds = Wall(window.memory.begin(), wall_offset_ns);
  gpu.memory_part_seconds = window.memory.width().seconds();
}

void DescribeMinutes(const GpuWindow& window, int64_t wall_offset_ns, GpuHistory& gpu) {
  if (window.written == 0) return;
  const int64_t minute = windows::MinuteMeans::MinuteOf(window.newest(0).t);
  gpu.engine = window.engine_minutes.Until(minute, GpuHistory::kMinutes);
  gpu.sm = window.sm_minutes.Until(minute, GpuHistory::kMinutes);
  gpu.throttled = window.throttled_minutes.Until(minute, GpuHistory::kMinutes);
  gpu.minutes_end_wall_seconds =
      Wall(Timestamp{(minute + 1) * windows::MinuteMeans::kMinute.ns}, wall_offset_ns);
}

}  // namespace

std::vector<GpuHistory> DescribeGpus(const windows::GpuTracker& tracker, int64_t wall_offset_ns) {
  std::vector<const GpuWindow*> held;
  for (const auto& [uuid, window] : tracker.gpus()) {
    if (window.held) held.push_back(&window);
  }
  std::stable_sort(held.begin(), held.end(),
                   [](const GpuWindow* a, const GpuWindow* b) { return a->index < b->index; });
  held.resize(std::min(held.size(), kShownGpus));
  std::vector<GpuHistory> gpus;
  for (const GpuWindow* window : held) {
    GpuHistory& gpu = gpus.emplace_back();
    gpu.index = window->index;
    gpu.uuid = window->uuid;
    gpu.model = window->model;
    gpu.card = PciCard(window->bus_id);
    gpu.state = window->state;
    gpu.ranks = window->ranks;
    DescribeMemory(*window, wall_offset_ns, gpu);
    DescribeMinutes(*window, wall_offset_ns, gpu);
  }
  return gpus;
}

}  // namespace rankscope::status
