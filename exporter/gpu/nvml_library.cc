// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/gpu/nvml_library.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace rankscope::collectors::nvml {
namespace {

struct ErrorRow {
  Return error;
  std::string_view words;
};

constexpr ErrorRow kErrors[] = {
    {kUninitialized, "not initialised"},
    {kInvalidArgument, "invalid argument"},
    {kNotSupported, "not supported"},
    {kNoPermission, "no permission"},
    {kNotFound, "not found"},
    {kInsufficientSize, "insufficient size"},
    {kDriverNotLoaded, "driver not loaded"},
    {kTimeout, "timeout"},
    {kFunctionNotFound, "function not found"},
    {kCorruptedInfoRom, "corrupted InfoROM"},
    {kGpuIsLost, "GPU is lost"},
    {kResetRequired, "GPU needs a reset"},
    {kOperatingSystem, "blocked by the operating system"},
    {kLibraryMismatch, "driver and library of different versions"},
    {kMemory, "out of memory"},
    {kNoData, "no data"},
    {kArgumentVersionMismatch, "structure of another version"},
    {kGpuNotFound, "no GPU"},
    {kUnknownError, "unknown error"},
};

// The first that the library has.
void* FindSymbol(void* handle, std::string_view names) {
  while (!names.empty()) {
    const std::string name(names.substr(0, names.find('|')));
    if (void* symbol = dlsym(handle, name.c_str())) return symbol;
    names.remove_prefix(std::min(names.size(), name.size() + 1));
  }
  return nullptr;
}

Functions FindAll(void* handle) {
  Functions found;
#define NVML_FUNCTION(member, symbol, ...) \
  found.member = reinterpret_cast<decltype(found.member)>(FindSymbol(handle, symbol));
#include "exporter/gpu/nvml_functions.inc"
#undef NVML_FUNCTION
  return found;
}

Opening Failed(Availability state, std::string reason) {
  return {nullptr, state, std::move(reason)};
}

}  // namespace

std::string Words(Return error) {
  for (const ErrorRow& row : kErrors) {
    if (row.error == error) return std::string(row.words);
  }
  return "error " + std::to_string(static_cast<uint32_t>(error));
}

Opening Refused(Return error) {
  switch (error) {
    case kNoPermission:
      return Failed(
          Availability::kDenied,
          "NVML: no permission; give this user access to /dev/nvidiactl and /dev/nvidia*");
    case kDriverNotLoaded:
      return Failed(Availability::kDown,
                    "NVML: the NVIDIA driver is not loaded; run modprobe nvidia and check dmesg");
    case kLibraryMismatch:
      return Failed(Availability::kDown,
                    "NVML: library and driver are of different versions; reboot, or reload the "
                    "driver, to finish its update");
    case kGpuNotFound:
      return Failed(Availability::kNotApplicable, "no NVIDIA GPU on this node");
    default:
      return Failed(Availability::kDown, "NVML cannot be initialised: " + Words(error));
  }
}

Opening Library::Open(const std::string& path) {
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    return Failed(Availability::kNotApplicable,
                  path + " is not installed: no NVIDIA driver on this node");
  }
  auto library = std::make_shared<Library>();
  library->functions_ = FindAll(handle);
  const Functions& functions = library->functions_;
  if (functions.init == nullptr || functions.device_count == nullptr ||
      functions.handle_by_index == nullptr || functions.uuid == nullptr) {
    return Failed(
        Availability::kUnsupported,
        path + " lacks nvmlInit_v2 or the functions that find a device; update the driver");
  }
  if (const Return error = functions.init(); error != kSuccess) return Refused(error);
  std::array<char, kTextBytes> version{};
  if (library->Call(&Functions::driver_version, version.data(),
                    static_cast<uint32_t>(version.size() - 1)) == kSuccess) {
    library->driver_ = version.data();
  }
  return {std::move(library), Availability::kUp, {}};
}

}  // namespace rankscope::collectors::nvml
