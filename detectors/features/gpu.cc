// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "detectors/features/gpu_settings.h"
#include "detectors/features/gpu_signature.h"
#include "detectors/features/landmarks.h"
#include "detectors/model/gpu_reading.h"
#include "detectors/model/xids.h"

namespace rankscope::features {
namespace {

using windows::GpuCount;
using windows::GpuSecond;
using windows::GpuWindow;

constexpr double kMinuteSeconds = 60;
constexpr float kBusy = 0.5F;
double MedianOf(std::vector<double>& values) {
  if (values.empty()) return RunGpu::kNone;
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Looks between `from` and `to` seconds ago.
template <class Each>
void ForLooks(const GpuWindow& gpu, Timestamp now, double from, double to, Each each) {
  for (size_t i = 0; i < gpu.count(); ++i) {
    const double age = (now - gpu.newest(i).t).seconds();
    if (age >= to) return;
    if (age >= from) each(gpu.newest(i));
  }
}

double MedianOfMinute(const GpuWindow& gpu, Timestamp now, float GpuSecond::*field,
                      bool busy_only) {
  std::vector<double> values;
  ForLooks(gpu, now, 0, kMinuteSeconds, [&](const GpuSecond& look) {
    if (busy_only && !(look.engine >= kBusy)) return;
    if (std::isfinite(look.*field)) values.push_back(look.*field);
  });
  return MedianOf(values);
}

GpuMinute MinuteOf(const GpuWindow& gpu, Timestamp now, double from) {
  constexpr uint32_t kSetClock = 0x2, kPowerCap = 0x4;
  GpuMinute minute;
  int32_t severe = 0, capped = 0, locked = 0;
  ForLooks(gpu, now, from, from + kMinuteSeconds, [&](const GpuSecond& look) {
    ++minute.looks;
    if (std::isfinite(look.throttle)) ++minute.told;
    if (!(look.engine >= kBusy)) return;
    ++minute.busy;
    const uint32_t bits = look.throttle > 0 ? static_cast<uint32_t>(look.throttle) : 0;
    const uint32_t worst = bits & static_cast<uint32_t>(kSevereThrottleBits);
    if (worst != 0) ++severe;
    if ((bits & kPowerCap) != 0) ++capped;
    if ((bits & kSetClock) != 0) ++locked;
    minute.severe_bits |= worst;
  });
  if (minute.busy == 0) return minute;
  minute.severe_duty = static_cast<double>(severe) / minute.busy;
  minute.capped_duty = static_cast<double>(capped) / minute.busy;
  minute.locked_duty = static_cast<double>(locked) / minute.busy;
  return minute;
}

Evidence OfGpu(EvidenceKind kind, const RunGpu& gpu, const JobFeatures& f) {
  Evidence evidence;
  evidence.kind = kind;
  evidence.store = proto::STORE_GPU;
  evidence.ranks = gpu.ranks;
  evidence.begin = f.now - Seconds(kMinuteSeconds);
  evidence.end = f.now;
  evidence.values = {{FieldId::kGpu, gpu.index}, {FieldId::kGpuUuid, gpu.uuid}};
  return evidence;
}

EvidenceRef AddOfGpu(Evidence evidence, const RunGpu& gpu, Citer& citer, const JobFeatures& f) {
  evidence.values.Set(FieldId::kQuery, GpuQuery(evidence, {gpu.uuid}, f));
  return citer.Add(std::move(evidence));
}

void CiteActivity(const GpuWindow& window, Citer& citer, JobFeatures& f, RunGpu& gpu) {
  if (std::isnan(gpu.engine)) return;
  Evidence evidence = OfGpu(EvidenceKind::kGpuActivity, gpu, f);
  evidence.observed = gpu.engine;
  evidence.unit = "ratio";
  evidence.values.Set(FieldId::kIdle, gpu.idle_seconds)
      .Set(FieldId::kUsed, window.newest(0).memory_used)
      // Its minutes are those of the clock; the last one is any 60 s.
      .Set(FieldId::kBusiest, std::fmax(gpu.busiest_minute, gpu.engine));
  gpu.activity_evidence = AddOfGpu(std::move(evidence), gpu, citer, f);
}

void CiteThrottle(Citer& citer, JobFeatures& f, RunGpu& gpu) {
  constexpr double kShown = 0.005;  // less is 0 % in the sentence
  if (std::min(gpu.now.severe_duty, gpu.before.severe_duty) < kShown) return;
  Evidence evidence = OfGpu(EvidenceKind::kGpuThrottle, gpu, f);
  evidence.begin = f.now - Seconds(2 * kMinuteSeconds);
  evidence.observed = std::min(gpu.now.severe_duty, gpu.before.severe_duty);
  evidence.unit = "ratio";
  evidence.values.Set(FieldId::kBits, int64_t{gpu.now.severe_bits | gpu.before.severe_bits});
  // Clock and temperature are those of now: of a GPU that has recovered, they show nothing.
  constexpr double kLower = 0.98;
  const double best =
      std::max(gpu.best_clock, std::isfinite(gpu.peers_clock) ? gpu.peers_clock : 0.0);
  if (best <= 0 || gpu.clock <= kLower * best) {
    evidence.values.Set(FieldId::kClock, gpu.clock)
        .Set(FieldId::kBest, best)
        .Set(FieldId::kTemperature, gpu.temperature);
  }
  gpu.throttle_evidence = AddOfGpu(std::move(evidence), gpu, citer, f);
}

void CiteErrors(const GpuWindow& window, Citer& citer, JobFeatures& f, RunGpu& gpu) {
  const windows::GpuRise& ecc = window.of(GpuCount::kEccUncorrected);
  const windows::GpuRise& failed = window.of(GpuCount::kRemapFailed);
  const windows::GpuRise& remapped = window.of(GpuCount::kRemapped);
  const windows::GpuRise& remaps = failed.rose > 0 ? failed : remapped;
  gpu.errors = ecc.rose > 0 ? ecc.rose : remaps.rose;
  gpu.errors_counted = std::isfinite(ecc.first);
  gpu.errors_risen = std::max({ecc.risen, failed.risen, remapped.risen});
  if (gpu.errors <= 0) return;
  Evidence evidence = OfGpu(EvidenceKind::kGpuErrors, gpu, f);
  evidence.observed = gpu.errors;
  evidence.begin = f.begin;
  evidence.end = gpu.errors_risen;
  evidence.values.Set(FieldId::kWhat, ecc.rose > 0      ? "ecc"
                                      : failed.rose > 0 ? "remap_failed"
                                                        : "remapped");
  evidence.values.Set(FieldId::kBefore, ecc.rose > 0 ? ecc.first : remaps.first);
  gpu.errors_evidence = AddOfGpu(std::move(evidence), gpu, citer, f);
}

// What the card has carried since before the run: no cause of anything yet, and worth a look.
void CiteLatent(const GpuWindow& window, Citer& citer, JobFeatures& f, RunGpu& gpu) {
  if (window.xid > 0 && window.xid_since < f.begin) {
    Evidence evidence = OfGpu(EvidenceKind::kGpuLatent, gpu, f);
    evidence.observed = 1;
    evidence.begin = window.xid_since;
    const Xid xid = FindXid(window.xid);
    evidence.values.Set(FieldId::kWhat, "xid")
        .Set(FieldId::kCode, int64_t{window.xid})
        .Set(FieldId::kMeaning, xid.meaning)
        .Set(FieldId::kDo, XidActionPhrase(xid.action));
    gpu.latent_evidence = AddOfGpu(std::move(evidence), gpu, citer, f);
    return;
  }
  struct Row {
    GpuCount count;
    std::string_view what;
  };
  constexpr Row kRows[] = {{GpuCount::kRemapFailed, "remap_failed"},
                           {GpuCount::kRemapPending, "remap_pending"},
                           {GpuCount::kRemapped, "remapped"},
                           {GpuCount::kEccUncorrected, "ecc"}};
  for (const Row& row : kRows) {
    const windows::GpuRise& seen = window.of(row.count);
    // Rows that wait do so until a reset, whenever they began to.
    const bool waits = row.count == GpuCount::kRemapPending && seen.last > 0;
    if (!waits && (!(seen.first > 0) || !(seen.last > 0) || seen.rose > 0)) continue;
    Evidence evidence = OfGpu(EvidenceKind::kGpuLatent, gpu, f);
    evidence.observed = seen.last;
    evidence.begin = f.begin;
    evidence.values.Set(FieldId::kWhat, row.what);
    if (seen.rose > 0) evidence.values.Set(FieldId::kHow, "during");
    gpu.latent_evidence = AddOfGpu(std::move(evidence), gpu, citer, f);
    return;
  }
}

void CiteForeign(const GpuWindow& window, Citer& citer, JobFeatures& f, RunGpu& gpu) {
  double most = 0;
  for (const auto& [process, holder] : window.holders) {
    (holder.own ? gpu.own_bytes : gpu.foreign_bytes) += holder.bytes;
    if (holder.own || holder.bytes <= most) continue;
    most = holder.bytes;
    gpu.foreign_name = holder.name;
    gpu.foreign_pid = process.pid;
  }
  if (most <= 0) return;
  Evidence evidence = OfGpu(EvidenceKind::kGpuForeign, gpu, f);
  evidence.observed = gpu.foreign_bytes;
  evidence.unit = "By";
  evidence.values.Set(FieldId::kName, gpu.foreign_name)
      .Set(FieldId::kPid, int64_t{gpu.foreign_pid});
  gpu.foreign_evidence = AddOfGpu(std::move(evidence), gpu, citer, f);
}

void CiteLoss(Citer& citer, JobFeatures& f, RunGpu& gpu) {
  if (!gpu.lost) return;
  Evidence evidence = OfGpu(EvidenceKind::kGpuLost, gpu, f);
  evidence.observed = static_cast<double>(std::llround((f.now - gpu.lost_since).seconds()));
  evidence.unit = "s";
  evidence.begin = gpu.lost_since;
  gpu.lost_evidence = AddOfGpu(std::move(evidence), gpu, citer, f);
}

RunGpu Measure(const windows::JobWindow& job, const GpuWindow& window, Timestamp now) {
  RunGpu gpu;
  gpu.index = window.index;
  gpu.uuid = window.uuid;
  gpu.model = window.model;
  gpu.bus_id = window.bus_id;
  gpu.lost = window.state == "lost";
  gpu.lost_since = window.state_since;
  gpu.ranks = window.ranks;
  gpu.worked = window.worked;
  gpu.ran = window.active.ns != 0;
  if (window.written > 0) gpu.looked = window.newest(0).t;
  if (window.written > 0)
    gpu.idle_seconds = job.RunningSeconds(gpu.ran ? window.active : window.first, now);
  gpu.engine = MedianOfMinute(window, now, &GpuSecond::engine, false);
  gpu.clock = MedianOfMinute(window, now, &GpuSecond::sm_clock, true);
  gpu.temperature = MedianOfMinute(window, now, &GpuSecond::temperature, false);
  constexpr size_t kMinutes = 5;
  gpu.busiest_minute = window.engine_minutes.Highest(kMinutes);
  gpu.best_clock = window.best_clock;
  gpu.now = MinuteOf(window, now, 0);
  gpu.before = MinuteOf(window, now, kMinuteSeconds);
  return gpu;
}

}  // namespace

void DescribeGpus(const windows::JobWindow& job, const windows::AttemptWindow& window, Citer& citer,
                  JobFeatures& f) {
  std::vector<const GpuWindow*> held;
  for (const auto& [uuid, gpu] : window.kernel.gpus.gpus()) {
    if (gpu.held) held.push_back(&gpu);
  }
  std::stable_sort(held.begin(), held.end(),
                   [](const GpuWindow* a, const GpuWindow* b) { return a->index < b->index; });
  for (const GpuWindow* gpu : held) f.gpu.gpus.push_back(Measure(job, *gpu, f.now));
  for (size_t i = 0; i < held.size(); ++i) {
    RunGpu& gpu = f.gpu.gpus[i];
    std::vector<double> clocks;
    for (const RunGpu& other : f.gpu.gpus) {
      if (&other != &gpu && other.model == gpu.model && std::isfinite(other.clock))
        clocks.push_back(other.clock);
    }
    gpu.peers_clock = MedianOf(clocks);
    CiteActivity(*held[i], citer, f, gpu);
    CiteThrottle(citer, f, gpu);
    CiteErrors(*held[i], citer, f, gpu);
    CiteLatent(*held[i], citer, f, gpu);
    CiteForeign(*held[i], citer, f, gpu);
    CiteLoss(citer, f, gpu);
  }
  DescribeGpuSettings(held, citer, f);
  DescribeGpuSignature(job, held, citer, f);
}

}  // namespace rankscope::features
