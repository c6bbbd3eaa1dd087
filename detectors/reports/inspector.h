// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// A line of NCCL Inspector's log: one completed operation (or the statistics of a dump) as a JSON
// object of its own. The forms 4.0 to 4.2 are read, and others as far as they name the same
// members. Any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rankscope::reports {

struct InspectorRecord {
  std::string communicator;
  int32_t rank = -1;  // within the communicator
  int32_t ranks = 0;
  int32_t nodes = 0;
  std::string host;
  int64_t pid = -1;
  int64_t dumped_us = 0;  // since 1970
  // Of an operation; empty where the line is of another kind.
  std::string operation;
  bool peer_to_peer = false;
  int64_t sequence = -1;
  int64_t bytes = -1;
  double seconds = -1;
  double algorithm_bytes_per_second = -1;
  double bus_bytes_per_second = -1;
  bool timed_on_gpu = true;  // by the kernel itself and not by the CPU that waited for it
  int64_t dropped = 0;       // records lost since the last dump
};

// Nothing where the line is no record.
std::optional<InspectorRecord> ReadInspectorLine(std::string_view line);

}  // namespace rankscope::reports
