// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// A job of several steps is judged by the one that trained: what a later step does is how the job
// ended, and says nothing of the training. Pure.
#pragma once

#include "detectors/features/cite.h"
#include "detectors/features/job_features.h"
#include "detectors/windows/job_window.h"

namespace rankscope::features {

void DescribeSteps(const windows::JobWindow& job, Citer& citer, JobFeatures& f);

// Whether this is of what came after the training had ended well; an end of the whole job is not.
bool IsAfterTraining(const windows::Candidate& candidate, const JobFeatures& f);

}  // namespace rankscope::features
