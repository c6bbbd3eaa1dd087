// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Features that are one evidence each: a warning while the run goes on, and what led up to its end.
// A new one is a function here and a row in notices.cc. Private to features; pure.
#pragma once

#include "detectors/features/cite.h"
#include "detectors/features/job_features.h"
#include "detectors/windows/job_window.h"

namespace rankscope::features {

void DescribeNotices(const windows::JobWindow& job, Citer& citer, JobFeatures& f);

}  // namespace rankscope::features
