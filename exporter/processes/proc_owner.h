// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Which processes are some job's by what they show of themselves, and whose: one rule for the three
// sources that watch processes. Any thread.
#pragma once

#include <string>

#include "exporter/processes/proc_reader.h"
#include "exporter/processes/process_table.h"

namespace rankscope::collectors {

// A launcher has told it its place, or it stands in a job's cgroup. Slurm's own processes are
// nobody's: its step daemon, what holds the extern step open, prolog and epilog.
bool BelongsToAJob(const ProcessFacts& facts);

// `tracked` with what the facts say of it. Its job is the cgroup's unless a wrapper has named it;
// the environment's where nobody names one.
TrackedProcess WithFacts(TrackedProcess tracked, const ProcessFacts& facts);

// What the source itself knows of the job and the environment does not tell; for
// ProcessStart::job_id.
std::string JobKnown(const TrackedProcess& before, const ProcessFacts& facts);

}  // namespace rankscope::collectors
