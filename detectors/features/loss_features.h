// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Numbers of the loss curve. Statistics only; what they mean is the families' business. Pure.
#pragma once

#include "detectors/features/job_features.h"
#include "detectors/windows/trackers/loss_tracker.h"

namespace rankscope::features {

// Evidence references are left empty: only the builder knows the streams' names.
LossFeatures BuildLossFeatures(const windows::LossTracker& tracker);

}  // namespace rankscope::features
