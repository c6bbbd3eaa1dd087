// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/windows/trackers/gpu_tracker.h"

#include <algorithm>
#include <cmath>

#include "detectors/model/event_types.h"
#include "detectors/model/gpu_reading.h"
#include "detectors/windows/trackers/event_fields.h"

namespace rankscope::windows {
namespace {

constexpr float kBusy = 0.5F;
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
    LookRow{SignalId::kTensorActivity, &GpuSecond::tensor},
    LookRow{SignalId::kDramActivity, &GpuSecond::dram},
    LookRow{SignalId::kSmClockHertz, &GpuSecond::sm_clock},
    LookRow{SignalId::kGpuPowerWatts, &GpuSecond::power},
    LookRow{SignalId::kGpuTemperatureCelsius, &GpuSecond::temperature},
    LookRow{SignalId::kFramebufferUsedBytes, &GpuSecond::memory_used},
    LookRow{SignalId::kThrottleReasons, &GpuSecond::throttle},
};

// Anything less is what a look at it costs the card.
constexpr float kActive = 0.02F;

// Waiting inside a collective keeps the engine on all the time and a fixed few SMs with it, one for
// each of the communicator's channels: 16 of 132, 24 of 108, 32 of 132. Nothing is multiplied, next
// to nothing read. A card that does not tell of its SMs cannot be told from a busy one.
bool IsBusyWait(const GpuSecond& look) {
  constexpr float kEngine = 0.9F, kChannels = 0.27F, kTensor = 0.02F, kDram = 0.05F;
  return look.engine >= kEngine && look.sm <= kChannels && !(look.tensor >= kTensor) &&
         !(look.dram >= kDram);
}

// Whether the driver says what holds it down, if anything.
bool TellsReasons(const GpuSecond& look) {
  constexpr float kAllBits = 4294967040.0F;  // the largest float below 2^32
  return look.throttle >= 0 && look.throttle <= kAllBits;
}

// By heat or its power supply.
bool IsHeldDown(const GpuSecond& look) {
  return TellsReasons(look) && (static_cast<uint32_t>(look.throttle) & kSevereThrottleBits) != 0;
}

void NoteActivity(GpuWindow& gpu, const GpuSecond& look) {
  gpu.memory.Add(look.memory_used, look.t);
  if (TellsReasons(look)) gpu.throttled_minutes.Add(IsHeldDown(look) ? 1.0F : 0.0F, look.t);
  if (!std::isfinite(look.engine)) return;
  if (look.engine >= kActive) gpu.active = look.t;
  gpu.engine_minutes.Add(look.engine, look.t);
  gpu.sm_minutes.Add(look.sm, look.t);
  if (!IsBusyWait(look)) {
    gpu.spins_since = {};
  } else if (gpu.spins_since.ns == 0) {
    gpu.spins_since = look.t;
  }
}

void NoteClock(GpuWindow& gpu, const GpuSecond& look) {
  if (!(look.engine >= kBusy) || !std::isfinite(look.sm_clock)) return;
  // A clock that heat or the supply holds down says nothing of what the GPU can do. Its power limit
  // holds down each GPU that is at full work: that is its own clock, and no harm.
  if (IsHeldDown(look)) return;
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

void GpuPowerLimit::Set(double watts, Timestamp t) {
  if (!std::isfinite(watts) || watts <= 0) return;
  if (watts != now) since = t;
  now = watts;
  highest = std::fmax(highest, watts);
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
  if (!identity) OnHolder(event, speaker, *gpu, t);
}

void GpuTracker::OnIdentity(const Event& event, GpuWindow& gpu, Timestamp t) {
  if (TextOf(event, "bus_id").empty()) return;
  gpu.bus_id = TextOf(event, "bus_id").substr(0, kNameCap);
  gpu.model = TextOf(event, "model").substr(0, kNameCap);
  gpu.index = static_cast<int32_t>(NumberOf(event, "index"));
  for (const IntKeyValue& pair : event.num) {
    if (pair.key == "minor") gpu.minor = static_cast<int32_t>(pair.value);
  }
  gpu.xid = static_cast<int32_t>(NumberOf(event, "xid"));
  gpu.xid_since = {NumberOf(event, "xid_ns")};
  gpu.lanes = static_cast<int32_t>(NumberOf(event, "pcie_width"));
  gpu.lanes_max = static_cast<int32_t>(NumberOf(event, "pcie_width_max"));
  gpu.processes_told = NumberOf(event, "processes_told") != 0;
  gpu.mig = NumberOf(event, "mig") != 0;
  const std::string_view state = TextOf(event, "state").substr(0, kNameCap);
  if (state == gpu.state) return;
  gpu.state = state;
  gpu.state_since = t;
}

void GpuTracker::OnHolder(const Event& event, const Speaker& speaker, GpuWindow& gpu, Timestamp t) {
  if (NumberOf(event, "gone") != 0) {
    gpu.holders.erase(event.process);
    return;
  }
  if (speaker.foreign) gpu.foreign_until = t;
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
      if (row.signal == sample.signal) look.*row.field = static_cast<float>(sample.value);
    }
    for (const CountRow& row : kCountRows) {
      if (row.signal == sample.signal)
        gpu->counts[static_cast<size_t>(row.count)].Add(sample.value, t);
    }
    if (sample.signal == SignalId::kFramebufferTotalBytes) gpu->memory_total = sample.value;
    if (sample.signal == SignalId::kGpuPowerLimitWatts) gpu->power_limit.Set(sample.value, t);
  }
  if (std::any_of(gpu->holders.begin(), gpu->holders.end(),
                  [](const auto& holder) { return !holder.second.own; }))
    gpu->foreign_until = t;
  if (gpu->written == 0) gpu->first = t;
  gpu->worked = gpu->worked || (gpu->held && look.engine >= kBusy);
  NoteActivity(*gpu, look);
  NoteClock(*gpu, look);
  gpu->seconds[gpu->written++ % GpuWindow::kSeconds] = look;
}

void GpuTracker::OnProcessExit(const ProcessKey& process) {
  for (auto& [uuid, gpu] : gpus_) gpu.holders.erase(process);
}

void GpuTracker::KeepCards(const GpuTracker& before) {
  for (const auto& [uuid, known] : before.gpus_) {
    GpuWindow* const gpu = FindOrAdd(uuid);
    if (gpu == nullptr || !gpu->bus_id.empty()) continue;
    gpu->bus_id = known.bus_id;
    gpu->model = known.model;
    gpu->state = known.state;
    gpu->state_since = known.state_since;
    gpu->index = known.index;
    gpu->processes_told = known.processes_told;
    gpu->mig = known.mig;
  }
}

const GpuWindow* GpuTracker::HeldAt(std::string_view bus_id) const {
  if (bus_id.empty()) return nullptr;
  for (const auto& [uuid, gpu] : gpus_) {
    if (gpu.held && gpu.bus_id == bus_id) return &gpu;
  }
  return nullptr;
}

}  // namespace rankscope::windows
