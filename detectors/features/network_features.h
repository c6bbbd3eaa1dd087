// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Numbers of how the job's processes reach each other: connection attempts, listeners, names that
// do not, for the families. Plain data.
#pragma once

#include "detectors/features/evidence.h"

namespace rankscope::features {

struct NetworkFeatures {};

}  // namespace rankscope::features
