// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Windows -> JobFeatures. Pure: the same window and the same now give the same features.
#pragma once

#include "detectors/features/job_features.h"
#include "detectors/windows/job_window.h"

namespace rankscope::features {

JobFeatures BuildFeatures(const windows::JobWindow& job,
                          const std::array<Availability, kStores>& stores, Timestamp now);

// The attempt that has just ended (job.previous()), judged as it stood when the next one began.
JobFeatures BuildPreviousFeatures(const windows::JobWindow& job,
                                  const std::array<Availability, kStores>& stores, Timestamp now);

}  // namespace rankscope::features
