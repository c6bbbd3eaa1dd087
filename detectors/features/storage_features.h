// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Numbers of what the job reads and writes: checkpoints, data, errors of the file system, for the
// families. Plain data.
#pragma once

#include "detectors/features/evidence.h"

namespace rankscope::features {

struct StorageFeatures {};

}  // namespace rankscope::features
