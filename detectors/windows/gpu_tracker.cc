// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/windows/gpu_tracker.h"

#include <algorithm>
#include <cmath>

#include "detectors/model/event_types.h"
#include "detectors/windows/event_fields.h"

namespace rankscope::windows {
namespace {

constexpr float kBusy = 0.5F;
// A clock that is held down for a reason says nothing of what the card can do.
constexpr float kNoReason = 0x1;  // idle
constexpr int32_t kClockLooks = 10;

struct CountRow {
  SignalId signal;
  GpuCount count;
};
constexpr std::array kCountRows = {
    CountRow{SignalId::kEccUncorrected, GpuCount::kEccUncorrected},
    CountRow{SignalId::kEccCorrected, GpuCount::kEccCorrected},
    CountRow{SignalId::kRowRemapsPending, GpuCount::kRemapPending},
    CountRow{SignalId::kRowRemapsFailed, GpuCount::kRemapFailed},
    CountRow{SignalId::kRowRemapsUncorrectable, GpuCount::kRemapped},
    CountRow{SignalId::kNvlinkErrors, GpuCount::kNvlinkErrors},
    CountRow{SignalId::kPcieReplays, GpuCount::kPcieReplays},
};

struct LookRow {
  SignalId signal;
  float GpuSecond::*field;
};
constexpr std::array kLookRows = {
    LookRow{SignalId::kEngineActivity, &GpuSecond::engine},
    LookRow{SignalId::kSmActivity, &GpuSecond::sm},
    LookRow{SignalId::kSmClockHertz, &GpuSecond::sm_clock},
    LookRow{SignalId::kGpuPowerWatts, &GpuSecond::power},
    LookRow{SignalId::kGpuTemperatureCelsius, &GpuSecond::temperature},
    LookRow{SignalId::kFramebufferUsedBytes, &GpuSecond::memory_used},
    LookRow{SignalId::kThrottleReasons, &GpuSecond::throttle},
};

// Anything less is what a look at it costs the card.
constexpr float kActive = 0.02F;

void NoteEngine(GpuWindow& gpu, const GpuSecond& look) {
  if (!std::isfinite(look.engine)) return;
  if (look.engine >= kActive) gpu.active = look.t;
  const int64_t minute = look.t.ns / Seconds(60).ns;
  if (minute != gpu.minute) {
    constexpr int32_t kEnough = 20;  // looks may come every two seconds
    if (gpu.minute_count >= kEnough) {
      gpu.minutes[gpu.minutes_written++ % GpuWindow::kMinutes] =
          static_cast<float>(gpu.minute_sum / gpu.minute_count);
    }
    gpu.minute = minute;
    gpu.minute_sum = 0;
    gpu.minute_count = 0;
  }
  gpu.minute_sum += look.engine;
  ++gpu.minute_count;
}

void NoteClock(GpuWindow& gpu, const GpuSecond& look) {
  if (!(look.engine >= kBusy) || !std::isfinite(look.sm_clock)) return;
  if (std::isfinite(look.throttle) && look.throttle > kNoReason) return;
  gpu.clock_sum += look.sm_clock;
  if (++gpu.clock_count < kClockLooks) return;
  gpu.best_clock = std::max(gpu.best_clock, gpu.clock_sum / gpu.clock_count);
  gpu.clock_sum = 0;
  gpu.clock_count = 0;
}

}  // namespace

void GpuRise::Add(double value, Timestamp t) {
  if (!std::isfinite(value) || value < 0) return;
  if (std::isnan(first)) {
    first = last = value;
    return;
  }
  const double more = value >= last ? value - last : value;
  last = value;
  if (more <= 0) return;
  rose += more;
  risen = t;
}

double GpuWindow::BusiestMinute(size_t n) const {
  if (n == 0 || n > std::min<size_t>(minutes_written, kMinutes)) return GpuSecond::kNone;
  float most = 0;
  for (size_t i = 0; i < n; ++i)
    most = std::max(most, minutes[(minutes_written - 1 - i) % kMinutes]);
  return most;
}

double GpuWindow::ForeignBytes() const {
  double bytes = 0;
  for (const auto& [process, holder] : holders) bytes += holder.own ? 0 : holder.bytes;
  return bytes;
}

GpuWindow* GpuTracker::FindOrAdd(std::string_view uuid) {
  if (uuid.empty() || uuid.size() > kNameCap) return nullptr;
  const auto found = gpus_.find(std::string(uuid));
  if (found != gpus_.end()) return &found->second;
  if (gpus_.size() >= kMaxGpus) return nullptr;
  GpuWindow& gpu = gpus_[std::string(uuid)];
  gpu.uuid = uuid;
  return &gpu;
}

void GpuTracker::OnEvent(const Event& event, const Speaker& speaker, Timestamp t) {
  const bool identity = event.type == WireType(EventType::kGpuIdentity);
  if (!identity && event.type != WireType(EventType::kGpuProcess)) return;
  GpuWindow* const gpu = FindOrAdd(TextOf(event, "gpu_uuid"));
  if (gpu == nullptr) return;
  OnIdentity(event, *gpu, t);
  if (!identity) OnHolder(event, speaker, *gpu);
}

void GpuTracker::OnIdentity(const Event& event, GpuWindow& gpu, Timestamp t) {
  if (TextOf(event, "bus_id").empty()) return;
  gpu.bus_id = TextOf(event, "bus_id").substr(0, kNameCap);
  gpu.model = TextOf(event, "model").substr(0, kNameCap);
  gpu.index = static_cast<int32_t>(NumberOf(event, "index"));
  const std::string_view state = TextOf(event, "state").substr(0, kNameCap);
  if (state == gpu.state) return;
  gpu.state = state;
  gpu.state_since = t;
}

void GpuTracker::OnHolder(const Event& event, const Speaker& speaker, GpuWindow& gpu) {
  if (NumberOf(event, "gone") != 0) {
    gpu.holders.erase(event.process);
    return;
  }
  if (gpu.holders.size() >= kMaxHolders && !gpu.holders.contains(event.process)) return;
  GpuHolder& holder = gpu.holders[event.process];
  holder.rank = speaker.rank >= 0 ? speaker.rank : speaker.worker_of;
  holder.own = !speaker.foreign;
  holder.bytes = std::max<double>(0, static_cast<double>(NumberOf(event, "bytes")));
  holder.name = TextOf(event, "name").substr(0, kNameCap);
  if (!holder.own) return;
  gpu.held = true;
  if (holder.rank < 0) return;
  const auto at = std::lower_bound(gpu.ranks.begin(), gpu.ranks.end(), holder.rank);
  if ((at == gpu.ranks.end() || *at != holder.rank) && gpu.ranks.size() < kMaxRanks)
    gpu.ranks.insert(at, holder.rank);
}

void GpuTracker::OnSamples(const SampleBatch& batch, Timestamp t) {
  if (batch.subject.kind != Subject::Kind::kGpu) return;
  GpuWindow* const gpu = FindOrAdd(batch.subject.name);
  if (gpu == nullptr) return;
  GpuSecond look;
  look.t = t;
  for (const Sample& sample : batch.samples) {
    for (const LookRow& row : kLookRows) {
      if (row.signal == sample.signal) look.*row.field = sample.value;
    }
    for (const CountRow& row : kCountRows) {
      if (row.signal == sample.signal)
        gpu->counts[static_cast<size_t>(row.count)].Add(sample.value, t);
    }
    if (sample.signal == SignalId::kFramebufferTotalBytes) gpu->memory_total = sample.value;
    if (sample.signal == SignalId::kGpuPowerLimitWatts) gpu->power_limit = sample.value;
  }
  if (gpu->written == 0) gpu->first = t;
  gpu->worked = gpu->worked || (gpu->held && look.engine >= kBusy);
  NoteEngine(*gpu, look);
  NoteClock(*gpu, look);
  gpu->seconds[gpu->written++ % GpuWindow::kSeconds] = look;
}

void GpuTracker::OnProcessExit(const ProcessKey& process) {
  for (auto& [uuid, gpu] : gpus_) gpu.holders.erase(process);
}

const GpuWindow* GpuTracker::HeldAt(std::string_view bus_id) const {
  if (bus_id.empty()) return nullptr;
  for (const auto& [uuid, gpu] : gpus_) {
    if (gpu.held && gpu.bus_id == bus_id) return &gpu;
  }
  return nullptr;
}

}  // namespace rankscope::windows
