// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The closed vocabulary of `KernelEvent::type`: a new type is a row of kernel_event.inc. Any
// thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace rankscope {

enum class KernelEventType : uint8_t {
  kUnnamed,  // of a newer build's recording
#define KERNEL_EVENT(constant, name) constant,
#include "detectors/model/kernel_event.inc"
#undef KERNEL_EVENT
  kCount
};

inline constexpr std::string_view kKernelEventNames[] = {
    "unknown",
#define KERNEL_EVENT(constant, name) name,
#include "detectors/model/kernel_event.inc"
#undef KERNEL_EVENT
};

// Those of the kernel's log, the first rows after kUnnamed.
inline constexpr size_t kKernelLogTypes = static_cast<size_t>(KernelEventType::kOomKill) - 1;

constexpr std::string_view NameOf(KernelEventType type) {
  return kKernelEventNames[static_cast<size_t>(type)];
}

// kUnnamed for other names.
constexpr KernelEventType KernelEventTypeOf(std::string_view name) {
  for (size_t i = 0; i < static_cast<size_t>(KernelEventType::kCount); ++i) {
    if (kKernelEventNames[i] == name) return static_cast<KernelEventType>(i);
  }
  return KernelEventType::kUnnamed;
}

}  // namespace rankscope
