// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// A rank that ends with 0 while its peers still train: it has returned early, or has less data. No
// error says so. Its peers then lose their connections to it, or srun ends them (--wait). Pure.
#pragma once

#include <string_view>

#include "detectors/features/cite.h"

namespace rankscope::features {

// The shapes of the incident that is inferred; its code is 0.
inline constexpr std::string_view kLeftEarly = "left_early";             // the peers lost it
inline constexpr std::string_view kLeftBeforeWait = "left_before_wait";  // srun ended the peers

bool IsOfWhoLeft(const logs::Incident& incident);

// Adds it to what is inferred. Of the current attempt only: of others it is not known who ended.
void DescribeWhoLeft(const windows::JobWindow& job, const windows::AttemptWindow& window,
                     Citer& citer, JobFeatures& f);

}  // namespace rankscope::features
