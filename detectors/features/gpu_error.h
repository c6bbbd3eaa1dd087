// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Whose fault a GPU error is, by its name: the card's, the program's own kernels', or the node's
// set-up. From NVIDIA's CUDA error documentation and Xid catalogue. Pure.
#pragma once

#include "detectors/logs/record.h"

namespace rankscope::features {

enum class GpuErrorOwner : uint8_t {
  kNone,  // not a GPU error
  kHardware,
  kDriver,  // or its firmware, or the card behind it
  kProgram,
  kEnvironment,  // driver, architecture, visibility: there from the first call
  kUndecided,    // the name says nothing
};

GpuErrorOwner OwnerOfGpuError(const logs::Incident& incident);

// An Xid for which NVIDIA's catalogue asks for a restart of the program, or for nothing.
bool AsksForRestartAtMost(const logs::Incident& incident);

}  // namespace rankscope::features
