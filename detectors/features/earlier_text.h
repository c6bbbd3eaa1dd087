// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What stands in a job's text and is not about the run that is judged: other runs that wrote to
// the same file, tools that a script called before, a print of the driver's log. Private to
// features; pure.
#pragma once

#include <functional>
#include <vector>

#include "detectors/features/cause.h"
#include "detectors/features/job_features.h"

namespace rankscope::features {

// Whether a training follows this in the text and comes to its end.
using TrainedOn = std::function<bool(const windows::Candidate&)>;

// Of several runs that write to one file, jobs or commands of one script, the last one is judged,
// and what stands before the end of another is another's. That an end is another's shows by the
// number of the job that Slurm closes its text with, or by a whole training behind it. Where jobs
// are observed, a line names a job that is not this one (windows/another_job.h).
void SetEarlierRunsAside(std::vector<Cause>& causes, const JobFeatures& f,
                         const TrainedOn& trained_on);

// A tool that the script called before the program failed, and the script went on.
void SetToolsAside(std::vector<Cause>& causes, const JobFeatures& f);

// The driver's lines at the top of a job's own text are a script's print of its log; a failure that
// the program then names in words of its own, and that is none of the GPU's, is another.
void SetOldXidsAside(std::vector<Cause>& causes);

}  // namespace rankscope::features
