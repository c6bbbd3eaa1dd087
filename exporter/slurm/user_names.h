// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Names of users and their numbers. For a worker's thread: names may be a directory's, which takes
// its time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "exporter/slurm/records.h"

namespace rankscope::exporter::slurm {

std::optional<uint32_t> UidOf(const std::string& name);

// Accounting knows who cancelled a job by his number: "1000" becomes "alice(1000)" where this host
// knows a name for it.
void NameCancellers(std::vector<SlurmJob>& jobs);

}  // namespace rankscope::exporter::slurm
