// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Numbers of what the job's threads do when they do not run: wait classes, and snapshots of a
// standstill, for the families. Plain data.
#pragma once

#include "detectors/features/evidence.h"

namespace rankscope::features {

struct WaitFeatures {};

}  // namespace rankscope::features
