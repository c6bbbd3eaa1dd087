// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/gpu/nvml_device.h"

#include <string.h>

#include <algorithm>
#include <utility>

#include "exporter/gpu/nvml_hardware.h"
#include "exporter/gpu/nvml_processes.h"

namespace rankscope::collectors::nvml {
namespace {

constexpr double kMilli = 1e-3;
constexpr double kMega = 1e6;
constexpr double kNano = 1e-9;
constexpr double kKiB = 1024;
// A look that comes later than this after the one before says nothing of the time between.
constexpr double kLongestGapSeconds = 30;

std::string Text(const Library& library, Device device,
                 Return (*Functions::*member)(Device, char*, uint32_t)) {
  std::array<char, kTextBytes + 1> text{};
  if (library.Call(member, device, text.data(), static_cast<uint32_t>(kTextBytes)) != kSuccess)
    return {};
  return text.data();
}

// Throttling that the GPU counts by a field of its own.
struct DurationField {
  Field field;
  size_t reason;  // place in kGpuThrottleReasons
};
constexpr DurationField kDurations[] = {
    {kFieldSwThermalNs, 5}, {kFieldHwThermalNs, 6}, {kFieldHwPowerBrakeNs, 7}};
constexpr Field ViolationField(size_t violation) {
  return static_cast<Field>(kFieldFirstViolationNs + violation);
}
struct DurationPolicy {
  PerfPolicy policy;
  size_t reason;
};
constexpr DurationPolicy kPolicies[] = {{kPolicyPower, 2}, {kPolicySyncBoost, 4}};

}  // namespace

GpuValue ByteRate::Of(GpuValue total, Timestamp now) {
  const GpuValue before = std::exchange(total_, total);
  const double seconds = static_cast<double>(now.ns - std::exchange(at_, now).ns) * kNano;
  if (!before || !total || *total < *before || seconds <= 0) return std::nullopt;
  return (*total - *before) / seconds;
}

DeviceReader::DeviceReader(std::shared_ptr<const Library> library, int32_t index)
    : library_(library), gpm_(std::move(library)) {
  identity_.index = index;
  identity_.driver = library_->driver();
}

GpuStatus DeviceReader::Failed(Return error) {
  GpuStatus status;
  status.identity = identity_;
  status.reason = "NVML: " + Words(error);
  status.state = GpuState::kFailed;
  if (error == kNoPermission) status.state = GpuState::kDenied;
  if (error == kGpuIsLost || error == kResetRequired || error == kUninitialized ||
      error == kNotFound) {
    status.state = GpuState::kLost;
  }
  device_ = nullptr;
  gpm_.Forget();
  gpm_of_parts_.clear();
  rates_ = {};
  looks_ = 0;
  return status;
}

GpuStatus DeviceReader::Attach() {
  // A reset may have changed its place in the list, never its uuid.
  Return found = kFunctionNotFound;
  if (!identity_.uuid.empty())
    found = library_->Call(&Functions::handle_by_uuid, identity_.uuid.c_str(), &device_);
  if (found == kFunctionNotFound) {
    found = library_->Call(&Functions::handle_by_index, static_cast<uint32_t>(identity_.index),
                           &device_);
  }
  if (found != kSuccess) return Failed(found);
  std::array<char, kTextBytes + 1> uuid{};
  const Return named =
      library_->Call(&Functions::uuid, device_, uuid.data(), static_cast<uint32_t>(kTextBytes));
  if (named != kSuccess) return Failed(named);
  identity_.uuid = uuid.data();
  identity_.model = Text(*library_, device_, &Functions::name);
  identity_.serial = Text(*library_, device_, &Functions::serial);
  uint32_t minor = 0;
  identity_.minor = library_->Call(&Functions::minor_number, device_, &minor) == kSuccess
                        ? static_cast<int32_t>(minor & 0xff)
                        : -1;
  PciInfo pci{};
  if (library_->Call(&Functions::pci_info, device_, &pci) == kSuccess) {
    identity_.bus_id.assign(pci.bus_id, strnlen(pci.bus_id, sizeof pci.bus_id));
  }
  GpuStatus status;
  status.state = GpuState::kUp;
  return status;
}

GpuStatus DeviceReader::Look(Timestamp now) {
  if (device_ == nullptr) {
    GpuStatus status = Attach();
    if (status.state != GpuState::kUp) return status;
  }
  Session session(*library_, device_);
  if (looks_++ % kSlowLooks == 0) ReadSlow(session);
  ReadFast(session, now);
  last_look_ = now;
  if (session.gone() != kSuccess) return Failed(session.gone());
  if (session.answers() == 0) {
    return Failed(session.last_error() == kSuccess ? kNotSupported : session.last_error());
  }
  GpuStatus status;
  status.identity = identity_;
  status.state = GpuState::kUp;
  status.reading = reading_;
  return status;
}

void DeviceReader::ReadFast(Session& session, Timestamp now) {
  GpuReading& r = reading_;
  ReadMemory(session);
  ReadActivity(session, now);
  ReadFields(session, now);
  ReadThrottling(session, now);
  ReadErrors(session);
  r.pcie_generation = session.Number32(&Functions::pcie_generation);
  r.pcie_width = session.Number32(&Functions::pcie_width);
  for (uint32_t i = 0; i < kClockDomains.size(); ++i) {
    r.clock_hertz[i] = Times(session.Number32(&Functions::clock, i), kMega);
  }
  r.temperature_celsius = ReadTemperature(session);
  MarginTemperatureV1 margin{kMarginTemperatureV1, 0};
  r.temperature_margin_celsius = session.Ask(&Functions::margin_temperature, &margin)
                                     ? Degrees(static_cast<double>(margin.celsius))
                                     : std::nullopt;
  r.fan_ratio = Ratio(session.Number32(&Functions::fan_speed));
  r.power_watts = Times(session.Number32(&Functions::power_usage), kMilli);
  r.energy_joules = Times(session.Number64(&Functions::energy), kMilli);
  r.performance_state = session.Number32(&Functions::performance_state);
  if (r.performance_state >= kPerformanceStateUnknown) r.performance_state.reset();
  r.compute_processes = ReadProcesses(session, &Functions::compute_processes);
}

void DeviceReader::ReadMemory(Session& session) {
  GpuReading& r = reading_;
  r.memory_total_bytes = r.memory_used_bytes = r.memory_free_bytes = r.memory_reserved_bytes =
      std::nullopt;
  MemoryV2 v2{};
  v2.version = kMemoryV2;
  if (session.Ask(&Functions::memory_info_v2, &v2)) {
    r.memory_total_bytes = Known(v2.total);
    r.memory_used_bytes = Known(v2.used);
    r.memory_free_bytes = Known(v2.free);
    r.memory_reserved_bytes = Known(v2.reserved);
  } else if (Memory v1{}; session.Ask(&Functions::memory_info, &v1)) {
    r.memory_total_bytes = Known(v1.total);
    r.memory_used_bytes = Known(v1.used);  // with what is reserved
    r.memory_free_bytes = Known(v1.free);
  }
  Bar1Memory bar1{};
  r.bar1_used_bytes = session.Ask(&Functions::bar1_memory, &bar1) ? Known(bar1.used) : std::nullopt;
}

void DeviceReader::ReadActivity(Session& session, Timestamp now) {
  GpuReading& r = reading_;
  r.engine_active = r.memory_busy = r.sm_active = r.sm_occupancy = r.dram_active = std::nullopt;
  r.pipe_active.fill(std::nullopt);
  r.gpm = false;
  r.pcie_received_bytes = r.pcie_sent_bytes = std::nullopt;
  r.nvlink_received_bytes = r.nvlink_sent_bytes = std::nullopt;
  r.pcie_received_rate = r.pcie_sent_rate = std::nullopt;
  r.nvlink_received_rate = r.nvlink_sent_rate = std::nullopt;
  Utilization busy{kNotAvailable32, kNotAvailable32};
  if (session.Ask(&Functions::utilization, &busy)) {
    r.engine_active = Ratio(Known(busy.gpu));
    r.memory_busy = Ratio(Known(busy.memory));
  }
  uint32_t period = 0;
  uint32_t percent = kNotAvailable32;
  r.encoder_active =
      session.Ask(&Functions::encoder, &percent, &period) ? Ratio(Known(percent)) : std::nullopt;
  percent = kNotAvailable32;
  r.decoder_active =
      session.Ask(&Functions::decoder, &percent, &period) ? Ratio(Known(percent)) : std::nullopt;
  gpm_.Read(session, now, r);
  ReadParts(session, now);
}

void DeviceReader::ReadParts(Session& session, Timestamp now) {
  std::map<int64_t, std::unique_ptr<GpmReader>> before = std::exchange(gpm_of_parts_, {});
  for (GpuMigInstance& part : reading_.mig_instances) {
    if (part.gpu_instance < 0 || gpm_of_parts_.contains(part.gpu_instance)) continue;
    std::unique_ptr<GpmReader>& reader = gpm_of_parts_[part.gpu_instance];
    if (const auto known = before.find(part.gpu_instance); known != before.end())
      reader = std::move(known->second);
    if (reader == nullptr) reader = std::make_unique<GpmReader>(library_, part.gpu_instance);
    GpuReading of_part;
    reader->Read(session, now, of_part);
    part.engine_active = of_part.engine_active;
    part.sm_active = of_part.sm_active;
    part.sm_occupancy = of_part.sm_occupancy;
    part.dram_active = of_part.dram_active;
    part.pipe_active = of_part.pipe_active;
  }
}

void DeviceReader::ReadFields(Session& session, Timestamp now) {
  GpuReading& r = reading_;
  r.throttled_seconds.fill(std::nullopt);
  FieldReader fields;
  fields.Add(kFieldMemoryTemperature);
  fields.Add(kFieldPcieReceivedBytes);
  fields.Add(kFieldPcieSentBytes);
  fields.Add(kFieldRecoveryAction);
  for (const DurationField& row : kDurations) fields.Add(row.field);
  for (size_t i = 0; i < kGpuViolations.size(); ++i) fields.Add(ViolationField(i));
  if (bytes_by_link_) {
    for (const GpuLink& link : r.links) {
      if (!link.up) continue;
      fields.Add(kFieldNvlinkReceivedBytes, static_cast<uint32_t>(link.link));
      fields.Add(kFieldNvlinkSentBytes, static_cast<uint32_t>(link.link));
    }
  } else {
    fields.Add(kFieldNvlinkReceivedKib, kAllLinks);
    fields.Add(kFieldNvlinkSentKib, kAllLinks);
  }
  fields.Read(session);
  r.memory_temperature_celsius = Degrees(fields.Get(kFieldMemoryTemperature));
  r.recovery_action = fields.Get(kFieldRecoveryAction);
  for (const DurationField& row : kDurations) {
    r.throttled_seconds[row.reason] = Times(fields.Get(row.field), kNano);
  }
  for (size_t i = 0; i < kGpuViolations.size(); ++i) {
    r.violation_seconds[i] = Times(fields.Get(ViolationField(i)), kNano);
  }
  TakeBytes(fields, now);
}

void DeviceReader::TakeBytes(const FieldReader& fields, Timestamp now) {
  GpuReading& r = reading_;
  const auto replace = [](GpuValue& value, GpuValue better) {
    if (better) value = better;
  };
  const GpuValue received = fields.Get(kFieldPcieReceivedBytes);
  const GpuValue sent = fields.Get(kFieldPcieSentBytes);
  replace(r.pcie_received_bytes, received);
  replace(r.pcie_sent_bytes, sent);
  // The hardware's own rate of PCIe comes first, that of NVLink last: the counter is of data only.
  const GpuValue received_rate = rates_[0].Of(received, now);
  const GpuValue sent_rate = rates_[1].Of(sent, now);
  if (!r.pcie_received_rate) r.pcie_received_rate = received_rate;
  if (!r.pcie_sent_rate) r.pcie_sent_rate = sent_rate;
  GpuValue link_received, link_sent;
  if (bytes_by_link_) {
    link_received = fields.Sum(kFieldNvlinkReceivedBytes);
    link_sent = fields.Sum(kFieldNvlinkSentBytes);
  } else {
    link_received = Times(fields.Get(kFieldNvlinkReceivedKib), kKiB);
    link_sent = Times(fields.Get(kFieldNvlinkSentKib), kKiB);
    bytes_by_link_ = !r.links.empty() && !link_received;
  }
  replace(r.nvlink_received_bytes, link_received);
  replace(r.nvlink_sent_bytes, link_sent);
  replace(r.nvlink_received_rate, rates_[2].Of(link_received, now));
  replace(r.nvlink_sent_rate, rates_[3].Of(link_sent, now));
}

void DeviceReader::ReadThrottling(Session& session, Timestamp now) {
  GpuReading& r = reading_;
  uint64_t bits = 0;
  r.throttle_bits.reset();
  if (session.Ask(&Functions::throttle_reasons, &bits) && Known(bits)) r.throttle_bits = bits;
  const auto violation = [&session](PerfPolicy policy) -> GpuValue {
    ViolationTime time{};
    if (!session.Ask(&Functions::violation, static_cast<uint32_t>(policy), &time))
      return std::nullopt;
    return Times(Known(time.violation_ns), kNano);
  };
  for (const DurationPolicy& row : kPolicies) {
    r.throttled_seconds[row.reason] = violation(row.policy);
  }
  const bool heat_is_told_apart = r.throttled_seconds[5] && r.throttled_seconds[6];
  r.thermal_throttled_seconds = heat_is_told_apart ? std::nullopt : violation(kPolicyThermal);
  if (!r.throttle_bits) return;
  const double seconds = static_cast<double>(now.ns - last_look_.ns) * kNano;
  const bool follows = last_look_.ns != 0 && seconds > 0 && seconds < kLongestGapSeconds;
  for (size_t i = 0; i < kGpuThrottleReasons.size(); ++i) {
    if (follows && (*r.throttle_bits & kGpuThrottleReasons[i].bit) != 0) {
      seen_throttled_[i] += seconds;
    }
    card_counts_[i] = card_counts_[i] || r.throttled_seconds[i].has_value();
    if (!card_counts_[i]) r.throttled_seconds[i] = seen_throttled_[i];
  }
  r.throttled_by_card = card_counts_;
}

void DeviceReader::ReadErrors(Session& session) {
  GpuReading& r = reading_;
  for (uint32_t type = 0; type < kEccKinds.size(); ++type) {
    for (uint32_t scope = 0; scope < kEccScopes.size(); ++scope) {
      r.ecc_total[type][scope] = session.Number64(&Functions::ecc_total, type, scope);
    }
  }
  r.pcie_replays = session.Number32(&Functions::pcie_replays);
  r.remapped_correctable = r.remapped_uncorrectable = r.remap_pending = r.remap_failed =
      std::nullopt;
  uint32_t correctable = 0, uncorrectable = 0, pending = 0, failed = 0;
  if (session.Ask(&Functions::remapped_rows, &correctable, &uncorrectable, &pending, &failed)) {
    r.remapped_correctable = Known(correctable);
    r.remapped_uncorrectable = Known(uncorrectable);
    r.remap_pending = Known(pending);
    r.remap_failed = Known(failed);
  }
}

void DeviceReader::ReadSlow(Session& session) {
  ReadLimits(session, reading_);
  ReadEcc(session, reading_);
  ReadLinks(session, reading_);
  ReadModes(session, reading_);
  ReadRetiredPages(session, reading_);
  const auto graphics = ReadProcesses(session, &Functions::graphics_processes);
  reading_.vgpu_licensed = ReadLicence(session);
  reading_.graphics_processes =
      graphics ? GpuValue(static_cast<double>(graphics->size())) : std::nullopt;
}

}  // namespace rankscope::collectors::nvml
