// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The scheduler's record as features. In two parts, because a node that went down may itself be
// what explains the end, and because which of the recorded runs is judged is known only from what
// does. Private to features; pure.
#pragma once

#include "detectors/features/cite.h"
#include "detectors/features/job_features.h"
#include "detectors/windows/job_window.h"

namespace rankscope::features {

// Before the causes are put in order.
void DescribeNodeRecord(const windows::JobWindow& job, const windows::AttemptWindow& window,
                        Citer& citer, JobFeatures& f);
// And after it.
void DescribeRecord(const windows::JobWindow& job, const windows::AttemptWindow& window,
                    Citer& citer, JobFeatures& f);
void DescribeLostWork(const windows::JobWindow& job, const windows::AttemptWindow& window,
                      Citer& citer, JobFeatures& f);

}  // namespace rankscope::features
