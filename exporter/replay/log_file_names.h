// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Whose log a file is, from its name and place among the others: rank_3.log, worker-3.out,
// srun's %t (slurm-77_3.out), torchrun's RUN/attempt_0/3/stderr.log. Pure; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace rankscope::replay {

struct LogName {
  int32_t rank = -1;        // -1 = the name does not say
  int32_t local_rank = -1;  // on a node that the name does not tell
  int32_t restart = -1;     // of the launcher
};

// One for each path. A number without the word rank is one only where files differ in nothing else
// and the numbers begin at 0: a lone train_3.log, an array's task or a node's number is none.
std::vector<LogName> NameLogs(std::span<const std::string> paths);

}  // namespace rankscope::replay
