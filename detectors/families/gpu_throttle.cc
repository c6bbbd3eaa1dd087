// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// B3: clocks held down by heat or power.
#include <algorithm>
#include <cmath>

#include "detectors/families/curve.h"
#include "detectors/families/gpu.h"
#include "detectors/families/rows.h"

namespace rankscope::families::gpu_throttle {

using features::GpuMinute;
using features::JobFeatures;
using features::RunGpu;

namespace {

// Heat or power supply held it down for a good part of the time in which it had work.
bool IsHeldDown(const GpuMinute& minute) {
  constexpr int32_t kLooks = 20;
  constexpr double kDuty = 0.2;
  return minute.looks >= kLooks && 2 * minute.busy >= minute.looks && minute.severe_duty >= kDuty;
}

double ReferenceClock(const RunGpu& gpu) {
  return std::max(gpu.best_clock, std::isfinite(gpu.peers_clock) ? gpu.peers_clock : 0);
}

// The bits alone are a card at its limit, as many run all day: its clock must have fallen too.
bool IsThrottled(const RunGpu& gpu) {
  constexpr double kFallen = 0.85;
  const double reference = ReferenceClock(gpu);
  return IsHeldDown(gpu.now) && IsHeldDown(gpu.before) && std::isfinite(gpu.clock) &&
         reference > 0 && gpu.clock <= kFallen * reference;
}

// Somebody lowered its power limit under the run, and since then its clock is lower. A limit that
// was low before is how the node is run; and a GPU at its usual limit is at full work.
bool IsLimited(const RunGpu& gpu, Timestamp now) {
  constexpr double kFallen = 0.85, kLowered = 0.95, kDuty = 0.2;
  constexpr int32_t kLooks = 20;
  constexpr Duration kMinute = Seconds(60);
  const auto held = [](const GpuMinute& minute) {
    return minute.looks >= kLooks && 2 * minute.busy >= minute.looks && minute.capped_duty >= kDuty;
  };
  const double reference = ReferenceClock(gpu);
  return gpu.power_limit <= kLowered * gpu.power_before && now - gpu.power_since >= kMinute &&
         held(gpu.now) && held(gpu.before) && std::isfinite(gpu.clock) && reference > 0 &&
         gpu.clock <= kFallen * reference;
}

std::string_view ThrottleSub(uint32_t bits) {
  constexpr uint32_t kBrake = 0x80, kHeat = 0x20 | 0x40;
  if (bits == 0) return "power_limit";
  if (bits & kBrake) return "power_brake";
  return bits & kHeat ? "thermal" : "slowdown";
}

// How steps, or what else the text times, go against the first ones; 0: nobody tells.
double StepRatio(const JobFeatures& f, double seconds) {
  const bool known =
      std::isfinite(seconds) && std::isfinite(f.early_pace_seconds) && f.early_pace_seconds > 0;
  return known ? seconds / f.early_pace_seconds : 0;
}

bool AreNoSlower(double ratio) {
  constexpr double kSlower = 1.10;
  return ratio > 0 && ratio < kSlower;
}

// The step time that is shown is of so many steps that half of them take minutes where a step takes
// seconds.
bool ShownStepsAreNoSlower(const JobFeatures& f) {
  return AreNoSlower(StepRatio(f, f.pace_seconds));
}

// It costs the run nothing.
bool StepsAreNoSlower(const JobFeatures& f) {
  return AreNoSlower(StepRatio(f, std::fmax(f.pace_seconds, f.newest_pace_seconds)));
}

}  // namespace

Finding Evaluate(const JobFeatures& f) {
  if (!Runs(f)) return {};
  if (StepsAreNoSlower(f)) return {};
  Finding finding;
  uint32_t bits = 0;
  const RunGpu* worst = nullptr;
  int64_t throttled = 0;
  for (const RunGpu& gpu : f.gpu.gpus) {
    const bool hot = IsThrottled(gpu);
    if (!hot && !IsLimited(gpu, f.now)) continue;
    if (hot) bits |= gpu.now.severe_bits;
    ++throttled;
    if (worst == nullptr ||
        gpu.clock / ReferenceClock(gpu) < worst->clock / ReferenceClock(*worst)) {
      worst = &gpu;
    }
    finding.ranks.insert(finding.ranks.end(), gpu.ranks.begin(), gpu.ranks.end());
    Show(hot ? gpu.throttle_evidence : gpu.power_limit_evidence, finding);
  }
  if (worst == nullptr) return {};
  finding.matched = true;
  finding.sub = ThrottleSub(bits);
  const bool shown = !ShownStepsAreNoSlower(f);
  finding.tier = shown && StepRatio(f, f.pace_seconds) > 0 ? proto::TIER_C : proto::TIER_S;
  finding.domain = proto::DOMAIN_INFRASTRUCTURE;
  finding.component = "gpu";
  finding.symptom = "slow";
  finding.root = finding.shows;
  if (shown) Show(f.step_time_evidence, finding);
  if (Learned(f)) ShowCurve(f, finding);
  std::sort(finding.ranks.begin(), finding.ranks.end());
  finding.ranks.erase(std::unique(finding.ranks.begin(), finding.ranks.end()), finding.ranks.end());
  finding.values = {{FieldId::kGpu, worst->index},
                    {FieldId::kGpus, throttled},
                    {FieldId::kClock, worst->clock},
                    {FieldId::kBest, ReferenceClock(*worst)},
                    {FieldId::kDuty, std::min(worst->now.severe_duty, worst->before.severe_duty)}};
  finding.onset = f.now - Seconds(120);
  if (bits != 0) return finding;
  finding.onset = worst->power_since;
  finding.values.Set(FieldId::kPowerLimit, std::round(worst->power_limit))
      .Set(FieldId::kPowerBefore, std::round(worst->power_before));
  return finding;
}

RuledOut RuleOut(const JobFeatures& f) {
  if (!f.gpu.known()) return NotDecidable(proto::STORE_GPU);
  double most = 0;
  bool worked = false;
  const RunGpu* at = &f.gpu.gpus.front();
  for (const RunGpu& gpu : f.gpu.gpus) {
    worked = worked || (gpu.now.busy > 0 && gpu.now.told > 0);
    if (gpu.now.severe_duty <= most) continue;
    most = gpu.now.severe_duty;
    at = &gpu;
  }
  if (!worked) return NotDecidable(proto::STORE_GPU);
  const features::EvidenceRef cited = at->throttle_evidence != features::kNoEvidence
                                          ? at->throttle_evidence
                                          : at->activity_evidence;
  // What held a clock down and cost time is not said to be absent, whatever else is named.
  if (IsThrottled(*at) && !StepsAreNoSlower(f)) return NotDecidable(proto::STORE_GPU);
  RuledOut out = Excluded(Reason::kNotThrottled);
  if (most > 0) out.values.Set(FieldId::kShare, most);
  if (IsThrottled(*at)) {
    out.values.Set(FieldId::kClock, at->clock);
    out.values.Set(FieldId::kBest, ReferenceClock(*at));
  }
  if (cited != features::kNoEvidence) out.evidence = {cited};
  return out;
}

}  // namespace rankscope::families::gpu_throttle

namespace rankscope::families {

const features::RunGpu* ThrottledGpuOf(const features::JobFeatures& f, int32_t rank) {
  if (!f.gpu.known() || gpu_throttle::StepsAreNoSlower(f)) return nullptr;
  const auto found = std::find_if(f.gpu.gpus.begin(), f.gpu.gpus.end(), [&](const auto& gpu) {
    return std::find(gpu.ranks.begin(), gpu.ranks.end(), rank) != gpu.ranks.end() &&
           (gpu_throttle::IsThrottled(gpu) || gpu_throttle::IsLimited(gpu, f.now));
  });
  return found == f.gpu.gpus.end() ? nullptr : &*found;
}

}  // namespace rankscope::families
