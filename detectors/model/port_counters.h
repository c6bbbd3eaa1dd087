// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The closed list of what ports of InfiniBand, RoCE and EFA count besides bytes: keys of
// EventType::kPortCounters and values of a label. Any thread.
#pragma once

#include <array>
#include <string_view>

namespace rankscope {

struct PortCounterKind {
  std::string_view name;
  // Whether a healthy, busy port counts none of it. Congestion, retries and single flipped bits are
  // a network's daily life.
  bool fault;
};

inline constexpr std::array kPortCounterKinds = {
    PortCounterKind{"congestion_notifications", false},
    PortCounterKind{"discards", false},
    PortCounterKind{"integrity_errors", true},
    PortCounterKind{"link_downs", true},
    PortCounterKind{"link_error_recoveries", true},
    PortCounterKind{"out_of_sequence", false},
    PortCounterKind{"packet_sequence_errors", false},
    PortCounterKind{"rdma_request_errors", true},
    PortCounterKind{"receive_errors", true},
    PortCounterKind{"retransmissions", false},
    PortCounterKind{"symbol_errors", false},
    PortCounterKind{"timeouts", false},
};

constexpr const PortCounterKind* FindPortCounterKind(std::string_view name) {
  for (const PortCounterKind& kind : kPortCounterKinds) {
    if (kind.name == name) return &kind;
  }
  return nullptr;
}

}  // namespace rankscope
