// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What stands in a job's text and is not about the run that is judged: other jobs that append to
// the same file, tools that a script called before, a print of the driver's log. Private to
// features; pure.
#pragma once

#include <vector>

#include "detectors/features/cause.h"
#include "detectors/features/job_features.h"

namespace rankscope::features {

// Slurm closes each job's text with the job's number: of several jobs that append to one file the
// last one is judged, and what stands before the last line of another is another's. Where jobs are
// observed, a line names a job that is not this one (windows/another_job.h).
void SetEarlierJobsAside(std::vector<Cause>& causes, const JobFeatures& f);

// A tool that the script called before the program failed, and the script went on.
void SetToolsAside(std::vector<Cause>& causes, const JobFeatures& f);

// The driver's lines at the top of a job's own text are a script's print of its log; a failure that
// the program then names in words of its own, and that is none of the GPU's, is another.
void SetOldXidsAside(std::vector<Cause>& causes);

}  // namespace rankscope::features
