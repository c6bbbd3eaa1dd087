// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/features/gpu_error.h"

#include <algorithm>
#include <charconv>
#include <string_view>

namespace rankscope::features {
namespace {

struct ErrorRow {
  std::string_view error;
  GpuErrorOwner owner;
};
constexpr ErrorRow kErrors[] = {
    {"ecc_uncorrectable", GpuErrorOwner::kHardware},
    {"gpu_lost", GpuErrorOwner::kHardware},
    {"nvlink", GpuErrorOwner::kHardware},
    {"hardware_stack", GpuErrorOwner::kProgram},
    {"illegal_address", GpuErrorOwner::kProgram},
    {"misaligned_address", GpuErrorOwner::kProgram},
    {"illegal_instruction", GpuErrorOwner::kProgram},
    {"launch_failure", GpuErrorOwner::kProgram},
    {"device_assert", GpuErrorOwner::kProgram},
    {"launch_timeout", GpuErrorOwner::kProgram},
    {"no_kernel_image", GpuErrorOwner::kEnvironment},
    {"driver_too_old", GpuErrorOwner::kEnvironment},
    {"no_device", GpuErrorOwner::kEnvironment},
    {"invalid_device", GpuErrorOwner::kEnvironment},
    {"device_busy", GpuErrorOwner::kEnvironment},
    {"initialization_error", GpuErrorOwner::kEnvironment},
    {"fabric_not_ready", GpuErrorOwner::kEnvironment},
};

// Xids that a user's kernel cannot cause.
constexpr int kHardwareXids[] = {48,  62,  64,  74,  79,  94,  95,  119, 120, 136, 140, 142, 143,
                                 144, 145, 146, 147, 148, 149, 150, 155, 156, 158, 167, 171, 172};
// Xids that follow another event and never begin one, or only inform.
constexpr int kSilentXids[] = {43, 45, 63, 92, 106, 107, 154, 162, 163, 164, 165};

std::string_view Field(const logs::Incident& incident, std::string_view key) {
  for (const KeyValue& field : incident.fields) {
    if (field.key == key) return field.value;
  }
  return {};
}

}  // namespace

GpuErrorOwner OwnerOfGpuError(const logs::Incident& incident) {
  if (incident.kind == logs::IncidentKind::kXid) {
    const std::string_view text = Field(incident, "code");
    int code = 0;
    if (std::from_chars(text.data(), text.data() + text.size(), code).ec != std::errc())
      return GpuErrorOwner::kUndecided;
    const auto is = [code](const auto& list) {
      return std::find(std::begin(list), std::end(list), code) != std::end(list);
    };
    if (is(kHardwareXids)) return GpuErrorOwner::kHardware;
    return is(kSilentXids) ? GpuErrorOwner::kNone : GpuErrorOwner::kProgram;
  }
  if (incident.kind != logs::IncidentKind::kCudaError) return GpuErrorOwner::kNone;
  const std::string_view error = Field(incident, "error");
  for (const ErrorRow& row : kErrors) {
    if (row.error == error) return row.owner;
  }
  return GpuErrorOwner::kUndecided;
}

}  // namespace rankscope::features
