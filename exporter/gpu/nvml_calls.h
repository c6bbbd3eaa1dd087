// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The book of all calls into NVML: how long each took and how it failed. A call that hangs is in no
// bucket until it returns; that it hangs, the GPU's state says. Many threads add, any reads.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "detectors/model/library_call.h"
#include "exporter/gpu/nvml_abi.h"

namespace rankscope::collectors::nvml {

// By place in nvml_functions.inc.
inline constexpr std::string_view kFunctionNames[] = {
#define NVML_FUNCTION(member, symbol, ...) symbol,
#include "exporter/gpu/nvml_functions.inc"
#undef NVML_FUNCTION
};
inline constexpr size_t kFunctions = std::size(kFunctionNames);

class CallBook {
 public:
  void Note(size_t function, Return result, int64_t ns);
  // Of the functions that were called.
  std::vector<LibraryCall> Read() const;

 private:
  static constexpr size_t kMaxErrors = 16;  // one for each row of the table, the last for others
  struct Entry {
    std::array<std::atomic<int64_t>, kLibraryCallBounds.size() + 1> counts{};
    std::atomic<int64_t> ns{0};
    std::array<std::atomic<int64_t>, kMaxErrors> errors{};
  };
  std::array<Entry, kFunctions> entries_{};
};

}  // namespace rankscope::collectors::nvml
