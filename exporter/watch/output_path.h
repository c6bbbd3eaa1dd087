// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Where a batch job's output lies. Slurm prints the path as it was asked for: squeue of 22.05
// expands nothing in it, later versions some or all; the rest is what slurmd puts in when it opens
// the file on the batch host. Pure; any bytes; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "exporter/slurm/records.h"

namespace rankscope::watch {

// The path as it is printed, then the same with what is left to expand, as older and newer versions
// do it: a name may hold a percent sign, and then the first is right. Empty: nothing was said.
std::vector<std::string> OutputPaths(std::string_view printed,
                                     const exporter::slurm::SlurmJob& job);

// sbatch(1), "filename pattern", as the step of the batch script. `not_known`: letters that stay.
std::string ExpandPattern(std::string_view pattern, const exporter::slurm::SlurmJob& job,
                          std::string_view not_known = {});

}  // namespace rankscope::watch
