// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The JSON of Slurm's commands and of slurmrestd, as the same records as text_reader.h makes of
// texts. Shapes of v0.0.38 (22.05) to v0.0.44 (25.11): a name that is absent, renamed or of
// another type is an absent fact. Pure; any bytes may come; any thread.
#pragma once

#include <string>

#include "exporter/slurm/records.h"

namespace rankscope::exporter::slurm {

// `squeue --json`, `scontrol show job --json`, /slurm/v0.0.*/jobs, /job/N
Read<SlurmJob> ReadJobJson(std::string text);

// `scontrol show node --json`, `sinfo --json`, /slurm/v0.0.*/nodes. From 23.02 sinfo says a state
// of several nodes at once; what it sums up over them is left out.
Read<SlurmNode> ReadNodeJson(std::string text);

// `sacct -D --json`, /slurmdb/v0.0.*/jobs: jobs, each followed by its steps
Read<SlurmJob> ReadAccountingJson(std::string text);

// `sdiag --json`, /slurm/v0.0.*/diag
SlurmDiag ReadDiagJson(std::string text);

}  // namespace rankscope::exporter::slurm
