// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What the kernel's log said of the node under the run, besides Xids, for the families. Plain data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "detectors/features/evidence.h"
#include "detectors/model/time.h"

namespace rankscope::features {

struct NodeFault {
  KernelEventType type = KernelEventType::kUnnamed;  // one that FaultLog takes
  std::string device;  // PCI address or file server; empty = none is named
  std::string text;    // the newest line
  int32_t rank = -1;
  bool own = false;        // it befell a process of the run
  bool severe = false;     // an error that nothing corrected, or that is fatal to its device
  bool corrected = false;  // a PCIe link mended it itself
  bool over = false;       // a file server that answers again
  Timestamp first, last;
  EvidenceRef evidence = kNoEvidence;
};

}  // namespace rankscope::features
