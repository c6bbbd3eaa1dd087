// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The ports below /sys/class/infiniband, whatever they speak: InfiniBand, RoCE or EFA. Layouts:
// Documentation/ABI/stable/sysfs-class-infiniband, drivers mlx5 and efa. Data of the port counters
// are in words of four bytes; a counter that a port does not have is missing or says "N/A (no
// PMA)". Reading one may ask the card's firmware and wait: the worker's thread.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "detectors/model/port_counters.h"

namespace rankscope::collectors {

inline constexpr int64_t kNotCounted = -1;

struct PortReading {
  std::string device;  // mlx5_0
  std::string port;    // "1"
  std::string link;    // infiniband | roce | efa
  std::string state;   // as the kernel says: "4: ACTIVE"
  bool up = false;
  int64_t bits_per_second = kNotCounted;
  int64_t received_bytes = kNotCounted;
  int64_t sent_bytes = kNotCounted;
  // In the order of kPortCounterKinds.
  std::array<int64_t, kPortCounterKinds.size()> counts{};
};

// Nothing where it is no number: "N/A (no PMA)", an empty file, a sign.
std::optional<int64_t> ParsePortCounter(std::string_view text);
// "200 Gb/sec (4X HDR)", "2.5 Gb/sec (1X SDR)" in bits per second.
std::optional<int64_t> ParsePortRate(std::string_view text);

// At most 64 ports: a node has some ten, virtual functions more.
std::vector<PortReading> ReadPorts(const std::string& sys_root);

}  // namespace rankscope::collectors
