// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/features/gpu_error.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "detectors/model/xids.h"

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

GpuErrorOwner OwnerOf(const Xid& xid) {
  switch (xid.kind) {
    case XidClass::kProgram:
      return GpuErrorOwner::kProgram;
    case XidClass::kHardware:
      return GpuErrorOwner::kHardware;
    case XidClass::kDriver:
      return GpuErrorOwner::kDriver;
    case XidClass::kFollows:
    case XidClass::kLatent:
    case XidClass::kInforms:
      return GpuErrorOwner::kNone;
    case XidClass::kUnknown:
      return GpuErrorOwner::kUndecided;
  }
  return GpuErrorOwner::kUndecided;
}

std::string_view Field(const logs::Incident& incident, std::string_view key) {
  for (const KeyValue& field : incident.fields) {
    if (field.key == key) return field.value;
  }
  return {};
}

std::optional<Xid> XidOf(const logs::Incident& incident) {
  if (incident.kind != logs::IncidentKind::kXid) return std::nullopt;
  const std::string_view text = Field(incident, "code");
  int code = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), code).ec != std::errc())
    return std::nullopt;
  return FindXid(code);
}

}  // namespace

bool AsksForRestartAtMost(const logs::Incident& incident) {
  const std::optional<Xid> xid = XidOf(incident);
  return xid && (xid->action == XidAction::kNone || xid->action == XidAction::kRestartApp);
}

GpuErrorOwner OwnerOfGpuError(const logs::Incident& incident) {
  if (incident.kind == logs::IncidentKind::kXid) {
    const std::optional<Xid> xid = XidOf(incident);
    return xid ? OwnerOf(*xid) : GpuErrorOwner::kUndecided;
  }
  if (incident.kind != logs::IncidentKind::kCudaError) return GpuErrorOwner::kNone;
  const std::string_view error = Field(incident, "error");
  for (const ErrorRow& row : kErrors) {
    if (row.error == error) return row.owner;
  }
  return GpuErrorOwner::kUndecided;
}

}  // namespace rankscope::features
