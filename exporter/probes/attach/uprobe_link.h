// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Puts a program on functions of a file, for every process that maps it. One link for all of them
// where the kernel has it (6.6), attached and detached in milliseconds; else one perf event for
// each, whose removal takes the kernel 50 to 120 ms. Attaching waits for the memory maps of all
// processes that use the file: any thread but the loop's.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "detectors/model/result.h"
#include "exporter/probes/attach/places.h"

namespace rankscope::probes {

struct ProbePoint {
  uint64_t offset = 0;  // in the file
  uint64_t cookie = 0;
};

enum class AttachVia : uint8_t { kMulti, kPerf };

// What expected_attach_type a program must be loaded with to be attached this way.
uint32_t ExpectedAttachType(AttachVia via);

// Tries it, with a program that does nothing.
AttachVia BestAttach();

struct Attached {
  Places places;
  int points = 0;
  int refused = 0;     // points that the kernel would not take
  std::string reason;  // of the last refusal
};
// `path`: of the file, followed; /proc/self/fd/N will do.
Attached AttachProbes(AttachVia via, int program, const std::string& path,
                      std::span<const ProbePoint> points, bool at_return);

}  // namespace rankscope::probes
