// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Numbers of communicators and collectives as the calls into NCCL show them, for the families.
// Plain data.
#pragma once

#include "detectors/features/evidence.h"

namespace rankscope::features {

struct CollectiveFeatures {};

}  // namespace rankscope::features
