// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// How many jobs wait and run, whose they are and where, and what the nodes have and give: counted
// from one poll of all jobs and nodes. Pure; a worker's thread.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "detectors/model/slurm_report.h"
#include "exporter/slurm/records.h"

namespace rankscope::exporter::slurm {

// A job that waits for one of several partitions counts in each, as a node does that is in several.
// Records of an array's tasks that still wait together count as so many jobs.
SlurmQueue Summarize(const std::vector<SlurmJob>& jobs, const std::vector<SlurmNode>& nodes);

// "1-5,9%2": 6; 1 for what is no list of tasks.
int64_t CountTasks(std::string_view tasks);

}  // namespace rankscope::exporter::slurm
