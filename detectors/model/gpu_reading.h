// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What one look at a GPU has found: plain numbers in base units, and absent whatever the card, its
// driver or its mode does not tell. Absent is never 0. Counters are as the card counts them: since
// its driver was loaded, or (aggregate, remaps) since it was made. Filled by the collectors of GPUs
// and shown by /metrics; any thread.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "detectors/model/time.h"

namespace rankscope {

using GpuValue = std::optional<double>;

// Label values, in the order of the arrays below.
inline constexpr std::array<std::string_view, 8> kGpuPipes = {"tensor", "hmma", "imma", "dfma",
                                                              "fp64",   "fp32", "fp16", "int"};
inline constexpr std::array<std::string_view, 2> kEccKinds = {"corrected", "uncorrected"};
inline constexpr std::array<std::string_view, 2> kEccScopes = {"volatile", "aggregate"};
inline constexpr std::array<std::string_view, 8> kEccLocations = {
    "l1_cache",       "l2_cache",    "dram", "register_file",
    "texture_memory", "texture_shm", "cbu",  "sram"};
inline constexpr std::array<std::string_view, 5> kRemapBanks = {"max", "high", "partial", "low",
                                                                "none"};
inline constexpr std::array<std::string_view, 5> kGpuNvlinkErrors = {"replay", "recovery",
                                                                     "crc_flit", "crc_data", "ecc"};
inline constexpr std::array<std::string_view, 6> kGpuViolations = {
    "power", "thermal", "sync_boost", "board_limit", "low_utilization", "reliability"};
inline constexpr std::array<std::string_view, 4> kClockDomains = {"graphics", "sm", "mem", "video"};
inline constexpr std::array<std::string_view, 3> kPowerLimits = {"enforced", "default", "max"};
inline constexpr std::array<std::string_view, 3> kTemperatureThresholds = {"shutdown", "slowdown",
                                                                           "mem_max"};
inline constexpr std::array<std::string_view, 4> kFabricStates = {"not_supported", "not_started",
                                                                  "in_progress", "completed"};

// Why clocks are lower than they could be; the bits are the driver's.
struct ThrottleReason {
  std::string_view name;
  uint64_t bit = 0;
};
inline constexpr std::array<ThrottleReason, 9> kGpuThrottleReasons = {{{"gpu_idle", 0x1},
                                                                       {"app_clocks", 0x2},
                                                                       {"sw_power_cap", 0x4},
                                                                       {"hw_slowdown", 0x8},
                                                                       {"sync_boost", 0x10},
                                                                       {"sw_thermal", 0x20},
                                                                       {"hw_thermal", 0x40},
                                                                       {"hw_power_brake", 0x80},
                                                                       {"display", 0x100}}};
// Those that tell of trouble: heat, power supply.
inline constexpr uint64_t kSevereThrottleBits = 0x8 | 0x20 | 0x40 | 0x80;

// A process that computes on the card. Never a label: attribution names its job and rank.
struct GpuProcess {
  int32_t pid = 0;  // as the driver's own pid namespace counts
  GpuValue memory_bytes;
  int64_t gpu_instance = -1;  // of MIG; -1 = none

  bool operator==(const GpuProcess&) const = default;
};

struct GpuLink {
  int32_t link = 0;
  bool up = false;
  std::array<GpuValue, kGpuNvlinkErrors.size()> errors{};
  GpuValue bytes_per_second;  // that it can do
};

struct GpuMigInstance {
  std::string uuid;
  GpuValue memory_used_bytes;
  GpuValue memory_total_bytes;
  GpuValue memory_free_bytes = {};
  int64_t gpu_instance = -1;  // by the driver's number; -1 = not told
  std::string profile = {};   // "1g.10gb"
  // As those of a whole GPU; from hardware counters or not at all.
  GpuValue engine_active = {}, sm_active = {}, sm_occupancy = {}, dram_active = {};
  std::array<GpuValue, kGpuPipes.size()> pipe_active{};
};

struct GpuReading {
  GpuValue memory_total_bytes, memory_used_bytes, memory_free_bytes, memory_reserved_bytes;
  GpuValue bar1_used_bytes;

  // Ratios, 1 = all of the time. From hardware counters (`gpm`) the engine's is an average over the
  // time since the look before; else over the driver's own sample of up to a second.
  bool gpm = false;
  bool dcgm = false;  // what the units do is DCGM's, see FillFrom
  GpuValue engine_active, memory_busy, encoder_active, decoder_active;
  GpuValue sm_active, sm_occupancy, dram_active;
  std::array<GpuValue, kGpuPipes.size()> pipe_active{};

  // [type][scope]: all locations, and each.
  std::array<std::array<GpuValue, 2>, 2> ecc_total{};
  std::array<std::array<std::array<GpuValue, kEccLocations.size()>, 2>, 2> ecc{};
  GpuValue remapped_correctable, remapped_uncorrectable, remap_pending, remap_failed;
  std::array<GpuValue, kRemapBanks.size()> remap_banks{};
  GpuValue retired_single_bit, retired_double_bit, retired_pending;

  std::vector<GpuLink> links;
  std::array<GpuValue, kGpuNvlinkErrors.size()> nvlink_errors{};  // all links
  GpuValue nvlink_received_bytes, nvlink_sent_bytes;
  GpuValue nvlink_received_rate, nvlink_sent_rate;  // bytes per second since the look before
  GpuValue fabric_state;                            // place in kFabricStates

  GpuValue pcie_generation, pcie_generation_max, pcie_width, pcie_width_max, pcie_replays;
  GpuValue pcie_received_bytes, pcie_sent_bytes;
  GpuValue pcie_received_rate, pcie_sent_rate;  // bytes per second since the look before

  std::array<GpuValue, kClockDomains.size()> clock_hertz{};
  std::array<GpuValue, kClockDomains.size()> clock_max_hertz{};
  std::optional<uint64_t> throttle_bits;
  // By place in kGpuThrottleReasons: as the card counts them, where it does; else summed up from
  // what each look since the exporter's start has seen.
  std::array<GpuValue, kGpuThrottleReasons.size()> throttled_seconds{};
  std::array<bool, kGpuThrottleReasons.size()> throttled_by_card{};  // else as seen
  GpuValue thermal_throttled_seconds;  // by any heat, where the card does not tell which
  // As the driver's performance policies count it, each for itself: they overlap with the above.
  std::array<GpuValue, kGpuViolations.size()> violation_seconds{};

  GpuValue temperature_celsius, memory_temperature_celsius;
  std::array<GpuValue, kTemperatureThresholds.size()> temperature_threshold_celsius{};
  GpuValue temperature_margin_celsius;  // to the nearest slowdown
  GpuValue fan_ratio;
  GpuValue power_watts, energy_joules;
  std::array<GpuValue, kPowerLimits.size()> power_limit_watts{};
  GpuValue performance_state;  // 0 is the fastest

  GpuValue ecc_enabled, mig_enabled, persistence_enabled, exclusive;
  GpuValue vgpu_licensed;    // absent where the card is no vGPU that needs a licence
  GpuValue recovery_action;  // 0 none, 1 reset, 2 reboot, 3 drain, 4 drain and reset
  std::vector<GpuMigInstance> mig_instances;
  std::optional<std::vector<GpuProcess>> compute_processes;
  GpuValue graphics_processes;
};

// A container that Kubernetes gave a card.
struct GpuPod {
  std::string pod, name_space, container;

  bool operator==(const GpuPod&) const = default;
};

// What somebody else says of a card: that one's counters, as means over its period, of which bytes
// count up; or whose it is, and nothing else.
struct GpuProfile {
  std::string uuid;  // of a MIG instance, where `pods` has it
  std::vector<GpuPod> pods{};
  GpuValue engine_active, sm_active, sm_occupancy, dram_active;
  GpuValue tensor_active, fp64_active, fp32_active, fp16_active;
  GpuValue pcie_received_bytes, pcie_sent_bytes, nvlink_received_bytes, nvlink_sent_bytes;
};

struct GpuIdentity {
  int32_t index = 0;  // as the driver counts; the uuid is what stays
  std::string uuid;
  std::string model;
  std::string bus_id;
  std::string serial;
  std::string driver;
  int32_t minor = -1;  // of /dev/nvidia<minor>; -1 = not told

  bool operator==(const GpuIdentity&) const = default;
};

enum class GpuState : uint8_t {
  kNotLookedAt,   // so far
  kUp,            // the newest look ended in time
  kUnresponsive,  // a call into the driver does not return
  kLost,          // the driver says that the card is gone or must be reset
  kDenied,        // this program may not look at it
  kFailed,        // the driver answers nothing but errors
};

enum class GpuHealth : uint8_t { kHealthy, kDegraded, kUnhealthy, kLost, kUnresponsive };
inline constexpr std::array<std::string_view, 5> kGpuHealthNames = {
    "healthy", "degraded", "unhealthy", "lost", "unresponsive"};

struct GpuStatus {
  GpuIdentity identity;
  GpuState state = GpuState::kNotLookedAt;
  std::string reason;  // why it is not up
  GpuReading reading;  // meaningful while it is up
};

// How often the driver has reported this error of this card since this program began, and when
// last.
struct XidCount {
  std::string card;  // PciCard of its place
  int32_t code = 0;
  int64_t count = 0;
  Timestamp last;
};

// What the errors of a card ask for and nobody has done yet; several at once.
enum class XidNeed : uint8_t { kResetGpu, kReboot, kInspect };
inline constexpr std::array<std::string_view, 3> kXidNeedNames = {"reset_gpu", "reboot", "inspect"};

struct XidPending {
  std::string card;
  std::array<bool, kXidNeedNames.size()> needs{};
  // Of the newest error that asks for something.
  int32_t code = 0;
  Timestamp since;
};

// The same of the node's NVSwitches, by code.
struct SxidCount {
  int32_t code = 0;
  bool fatal = false;
  int64_t count = 0;
};

// What is known of the Xids of a node's cards.
struct XidReport {
  bool heard = false;               // somebody tells of them: silence means that there was none
  std::vector<XidCount> counts;     // one that is only of before this program began has 0
  std::vector<XidPending> pending;  // of cards that wait for something
  std::vector<SxidCount> switches;
};

// Takes from `profile` what the reading does not have; its own values stay. Counters of bytes begin
// elsewhere than the card's own, so `with_bytes` is for cards that have never told their own.
void FillFrom(const GpuProfile& profile, bool with_bytes, GpuReading& reading);
// Whether it tells bytes over PCIe or NVLink.
bool TellsBytes(const GpuReading& reading);

// A roll-up for people to look at, and never a cause by itself.
GpuHealth HealthOf(const GpuStatus& gpu);

}  // namespace rankscope
