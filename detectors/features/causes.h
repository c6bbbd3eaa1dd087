// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Which of a run's incidents began it all. The earliest initiating event of the judged attempt
// wins; the class order breaks ties among events closer than the clocks can tell, or where text has
// no time. Consequences by their own words, by their signal or by what happened elsewhere are
// demoted. Pure.
#pragma once

#include <vector>

#include "detectors/features/job_features.h"
#include "detectors/windows/job_window.h"

namespace rankscope::features {

// Causes of the current attempt, initiating ones first. `f` must already say how the run ended and
// how far it came.
std::vector<Cause> OrderCauses(const windows::JobWindow& job, const JobFeatures& f);

// The same for one earlier attempt.
std::vector<Cause> OrderCausesOf(const windows::JobWindow& job,
                                 const windows::AttemptWindow& window, int32_t ordinal,
                                 const JobFeatures& f);

}  // namespace rankscope::features
