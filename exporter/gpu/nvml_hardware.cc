// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/gpu/nvml_hardware.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <string>
#include <string_view>

namespace rankscope::collectors::nvml {
namespace {

constexpr double kMilli = 1e-3;
constexpr double kMega = 1e6;
// Seven slices, and each may be cut into as many compute instances.
constexpr uint32_t kMaxMigInstances = 64;

}  // namespace

void FieldReader::Add(Field field, uint32_t scope) {
  FieldValue value{};
  value.field = field;
  value.scope = scope;
  value.status = kNotSupported;
  values_.push_back(value);
}

void FieldReader::Read(Session& session) {
  if (session.Ask(&Functions::field_values, static_cast<int32_t>(values_.size()), values_.data()))
    return;
  for (FieldValue& value : values_) value.status = kNotSupported;
}

GpuValue FieldReader::Get(Field field) const {
  const auto found = std::find_if(values_.begin(), values_.end(),
                                  [field](const FieldValue& v) { return v.field == field; });
  return found == values_.end() ? std::nullopt : FieldNumber(*found);
}

GpuValue FieldReader::Sum(Field field) const {
  GpuValue sum;
  for (const FieldValue& value : values_) {
    if (value.field != field) continue;
    if (const GpuValue number = FieldNumber(value)) sum = sum.value_or(0) + *number;
  }
  return sum;
}

GpuValue ReadTemperature(Session& session) {
  TemperatureV1 v1{kTemperatureV1, 0, 0};
  if (session.Ask(&Functions::temperature_v, &v1)) return Degrees(static_cast<double>(v1.celsius));
  return Degrees(session.Number32(&Functions::temperature, 0u));
}

void ReadLimits(Session& session, GpuReading& r) {
  for (uint32_t i = 0; i < kClockDomains.size(); ++i) {
    r.clock_max_hertz[i] = Times(session.Number32(&Functions::clock_max, i), kMega);
  }
  for (uint32_t i = 0; i < kTemperatureThresholds.size(); ++i) {
    r.temperature_threshold_celsius[i] =
        Degrees(session.Number32(&Functions::temperature_threshold, i));
  }
  r.power_limit_watts[0] = Times(session.Number32(&Functions::power_limit_enforced), kMilli);
  r.power_limit_watts[1] = Times(session.Number32(&Functions::power_limit_default), kMilli);
  uint32_t least = 0;
  uint32_t most = kNotAvailable32;
  r.power_limit_watts[2] = session.Ask(&Functions::power_limit_range, &least, &most)
                               ? Times(Known(most), kMilli)
                               : std::nullopt;
  r.pcie_generation_max = session.Number32(&Functions::pcie_generation_max);
  r.pcie_width_max = session.Number32(&Functions::pcie_width_max);
}

void ReadEcc(Session& session, GpuReading& r) {
  for (uint32_t type = 0; type < kEccKinds.size(); ++type) {
    for (uint32_t scope = 0; scope < kEccScopes.size(); ++scope) {
      for (uint32_t location = 0; location < kEccLocations.size(); ++location) {
        r.ecc[type][scope][location] =
            session.Number64(&Functions::ecc_errors, type, scope, location);
      }
    }
  }
  r.remap_banks.fill(std::nullopt);
  RowRemapperHistogram banks{};
  if (session.Ask(&Functions::remap_histogram, &banks)) {
    r.remap_banks = {Known(banks.max), Known(banks.high), Known(banks.partial), Known(banks.low),
                     Known(banks.none)};
  }
}

// Whether any of what this vGPU can do is licensed.
GpuValue ReadLicence(Session& session) {
  LicensableFeatures licence{};
  if (!session.Ask(&Functions::licensable_features, &licence) || licence.supported == 0)
    return std::nullopt;
  const auto count = std::min<size_t>(licence.count, std::size(licence.features));
  if (count == 0) return std::nullopt;
  return std::any_of(licence.features, licence.features + count,
                     [](const LicensableFeature& each) { return each.licensed != 0; })
             ? 1
             : 0;
}

void ReadRetiredPages(Session& session, GpuReading& r) {
  FieldReader fields;
  fields.Add(kFieldRetiredSingleBit);
  fields.Add(kFieldRetiredDoubleBit);
  fields.Add(kFieldRetiredPending);
  fields.Read(session);
  r.retired_single_bit = fields.Get(kFieldRetiredSingleBit);
  r.retired_double_bit = fields.Get(kFieldRetiredDoubleBit);
  r.retired_pending = fields.Get(kFieldRetiredPending);
}

void ReadLinks(Session& session, GpuReading& r) {
  r.links.clear();
  r.nvlink_errors.fill(std::nullopt);
  for (uint32_t number = 0; number < kMaxLinks; ++number) {
    uint32_t active = 0;
    if (!session.Ask(&Functions::nvlink_state, number, &active)) continue;
    GpuLink link;
    link.link = static_cast<int32_t>(number);
    link.up = active == 1;
    for (uint32_t kind = 0; kind < kGpuNvlinkErrors.size(); ++kind) {
      link.errors[kind] = session.Number64(&Functions::nvlink_errors, number, kind);
      if (link.errors[kind]) {
        r.nvlink_errors[kind] = r.nvlink_errors[kind].value_or(0) + *link.errors[kind];
      }
    }
    FieldReader speed;
    speed.Add(kFieldNvlinkSpeed, number);
    speed.Add(kFieldNvlinkSpeedCommon);
    speed.Read(session);
    link.bytes_per_second = Times(speed.Get(kFieldNvlinkSpeed), kMega);
    if (!link.bytes_per_second)
      link.bytes_per_second = Times(speed.Get(kFieldNvlinkSpeedCommon), kMega);
    r.links.push_back(link);
  }
}

namespace {

// "1g.10gb" of "NVIDIA H100 80GB HBM3 MIG 1g.10gb", and of one of its compute instances
// ("1c.1g.10gb").
std::string ProfileOf(std::string_view name) {
  constexpr std::string_view kMark = " MIG ";
  const size_t mark = name.rfind(kMark);
  if (mark == name.npos) return {};
  name.remove_prefix(mark + kMark.size());
  const size_t dot = name.find('.');
  if (dot != name.npos && dot > 0 && name[dot - 1] == 'c') name.remove_prefix(dot + 1);
  return std::string(name);
}

void ReadMig(Session& session, GpuReading& r) {
  r.mig_instances.clear();
  uint32_t now = 0;
  uint32_t pending = 0;
  r.mig_enabled.reset();
  if (!session.Ask(&Functions::mig_mode, &now, &pending)) return;
  r.mig_enabled = Known(now);
  if (now != 1) return;
  uint32_t most = 0;
  if (!session.Ask(&Functions::mig_max_count, &most)) return;
  for (uint32_t i = 0; i < std::min(most, kMaxMigInstances); ++i) {
    Device part = nullptr;
    if (!session.Ask(&Functions::mig_handle, i, &part)) continue;
    std::array<char, kTextBytes + 1> uuid{};
    if (!session.AskOf(part, &Functions::uuid, uuid.data(), static_cast<uint32_t>(kTextBytes)))
      continue;
    GpuMigInstance instance;
    instance.uuid = uuid.data();
    Memory memory{};
    if (session.AskOf(part, &Functions::memory_info, &memory)) {
      instance.memory_used_bytes = Known(memory.used);
      instance.memory_total_bytes = Known(memory.total);
      instance.memory_free_bytes = Known(memory.free);
    }
    uint32_t number = kNotAvailable32;
    if (session.AskOf(part, &Functions::gpu_instance, &number) && Known(number))
      instance.gpu_instance = number;
    std::array<char, kTextBytes + 1> name{};
    if (session.AskOf(part, &Functions::name, name.data(), static_cast<uint32_t>(kTextBytes)))
      instance.profile = ProfileOf(name.data());
    r.mig_instances.push_back(std::move(instance));
  }
}

}  // namespace

void ReadModes(Session& session, GpuReading& r) {
  uint32_t now = 0;
  uint32_t pending = 0;
  r.ecc_enabled = session.Ask(&Functions::ecc_mode, &now, &pending) ? Known(now) : std::nullopt;
  r.persistence_enabled = session.Number32(&Functions::persistence_mode);
  const GpuValue compute = session.Number32(&Functions::compute_mode);
  r.exclusive.reset();
  if (compute) r.exclusive = *compute == kComputeExclusiveProcess ? 1 : 0;
  r.fabric_state.reset();
  FabricInfoV2 fabric{};
  fabric.version = kFabricInfoV2;
  if (session.Ask(&Functions::fabric_info, &fabric) && fabric.state < kFabricStates.size())
    r.fabric_state = fabric.state;
  ReadMig(session, r);
}

}  // namespace rankscope::collectors::nvml
