// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Numbers of what NCCL and PyTorch report of their own collectives: RAS, Flight Recorder,
// Inspector, for the families. Plain data.
#pragma once

#include "detectors/features/evidence.h"

namespace rankscope::features {

struct ReportFeatures {};

}  // namespace rankscope::features
