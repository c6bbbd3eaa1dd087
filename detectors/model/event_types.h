// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The closed vocabulary of events: `Event::type`. A new one is a row of event_types.inc. Any
// thread.
#pragma once

#include <cstdint>

namespace rankscope {

enum class EventType : uint32_t {
  kUnspecified = 0,
#define EVENT(id, constant, name) constant = id,
#include "detectors/model/event_types.inc"
#undef EVENT
};

inline uint32_t WireType(EventType type) {
  return static_cast<uint32_t>(type);
}

}  // namespace rankscope
