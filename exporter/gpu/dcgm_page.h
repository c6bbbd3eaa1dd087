// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What a page of dcgm-exporter (Prometheus' text format 0.0.4) says of each whole GPU: the values
// of the hardware's counters, and a mark of everything it says, by which one page is told from the
// next. Parts of a GPU (MIG, links) are not the GPU and are left out. Any bytes may come; what is
// not understood is counted. Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "detectors/model/gpu_reading.h"

namespace rankscope::collectors {

struct DcgmCard {
  std::string uuid;
  // Bytes per second where the profile has bytes: that is how DCGM tells them, whatever type the
  // page gives them.
  GpuProfile values;
  bool any = false;   // whether one of the values is known
  uint64_t mark = 0;  // of the values of all its metrics
};

struct DcgmPage {
  std::vector<DcgmCard> cards;  // in the order in which they are named first
  int64_t samples = 0;          // lines that are one, of whatever
  int64_t dcgm_samples = 0;     // of these, such as DCGM_FI_* of a whole GPU
  int64_t part_samples = 0;     // of parts of GPUs
  int64_t malformed = 0;        // lines that are none and no comment
};

// As many as nvml.cc believes a node to have.
inline constexpr size_t kMaxDcgmCards = 64;

DcgmPage ReadDcgmPage(std::string_view text);

}  // namespace rankscope::collectors
