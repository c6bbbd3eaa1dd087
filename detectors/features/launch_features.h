// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Numbers of what ranks ask of the CUDA runtime and driver: launches, synchronisation, copies,
// allocations, for the families. Plain data.
#pragma once

#include "detectors/features/evidence.h"

namespace rankscope::features {

struct LaunchFeatures {};

}  // namespace rankscope::features
