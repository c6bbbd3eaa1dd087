// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/gpu/nvml_calls.h"

#include <algorithm>
#include <iterator>

namespace rankscope::collectors::nvml {
namespace {

struct ErrorName {
  Return error;
  std::string_view name;
};

// As nvml.h has them, without NVML_ERROR_.
constexpr ErrorName kNames[] = {
    {kUninitialized, "uninitialized"},
    {kInvalidArgument, "invalid_argument"},
    {kNoPermission, "no_permission"},
    {kDriverNotLoaded, "driver_not_loaded"},
    {kTimeout, "timeout"},
    {kCorruptedInfoRom, "corrupted_inforom"},
    {kGpuIsLost, "gpu_is_lost"},
    {kResetRequired, "reset_required"},
    {kOperatingSystem, "operating_system"},
    {kLibraryMismatch, "lib_rm_version_mismatch"},
    {kMemory, "memory"},
    {kNoData, "no_data"},
    {kArgumentVersionMismatch, "argument_version_mismatch"},
    {kGpuNotFound, "gpu_not_found"},
    {kUnknownError, "unknown"},
};

// How a GPU says that it has no such thing, and a list that it does not fit yet.
bool IsAnAnswer(Return result) {
  return result == kSuccess || result == kNotSupported || result == kFunctionNotFound ||
         result == kInsufficientSize || result == kNotFound;
}

}  // namespace

void CallBook::Note(size_t function, Return result, int64_t ns) {
  static_assert(std::size(kNames) + 1 == kMaxErrors);
  if (function >= entries_.size()) return;
  Entry& entry = entries_[function];
  const auto within = std::lower_bound(kLibraryCallBounds.begin(), kLibraryCallBounds.end(),
                                       static_cast<double>(ns) * 1e-9) -
                      kLibraryCallBounds.begin();
  entry.counts[static_cast<size_t>(within)].fetch_add(1, std::memory_order_relaxed);
  entry.ns.fetch_add(ns, std::memory_order_relaxed);
  if (IsAnAnswer(result)) return;
  const auto* const name = std::find_if(std::begin(kNames), std::end(kNames),
                                        [result](const auto& row) { return row.error == result; });
  entry.errors[static_cast<size_t>(name - kNames)].fetch_add(1, std::memory_order_relaxed);
}

std::vector<LibraryCall> CallBook::Read() const {
  std::vector<LibraryCall> calls;
  for (size_t i = 0; i < entries_.size(); ++i) {
    const Entry& entry = entries_[i];
    LibraryCall call;
    int64_t count = 0;
    for (size_t at = 0; at < entry.counts.size(); ++at) {
      count += call.counts[at] = entry.counts[at].load(std::memory_order_relaxed);
    }
    if (count == 0) continue;
    call.function = kFunctionNames[i].substr(0, kFunctionNames[i].find('|'));
    call.seconds = static_cast<double>(entry.ns.load(std::memory_order_relaxed)) * 1e-9;
    for (size_t at = 0; at < kMaxErrors; ++at) {
      const int64_t errors = entry.errors[at].load(std::memory_order_relaxed);
      if (errors == 0) continue;
      call.errors.emplace_back(at < std::size(kNames) ? kNames[at].name : "other", errors);
    }
    calls.push_back(std::move(call));
  }
  return calls;
}

}  // namespace rankscope::collectors::nvml
