// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Whether NCCL numbers the ranks of this node as their environment does. Its word is held against
// ours where it is certain which of its hosts this node is: the one whose processes are just the
// ranks known here. Cards are not compared: NVML counts those that a process may open, so that the
// first card of a job has number 0 on every node that confines its jobs. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "detectors/reports/ras_roster.h"
#include "detectors/windows/job_window.h"

namespace rankscope::features {

struct RasCheck {
  const reports::RasRoster* roster = nullptr;  // the window's; null: RAS has listed no ranks
  std::string host;                            // this node, as RAS names it; empty: not certain
  bool of_all_ranks = false;                   // the roster has as many ranks as the job
  struct Pair {
    int32_t environment = -1, nccl = -1;
  };
  std::vector<Pair> otherwise;  // by the rank of the environment

  // Who a process of this node is in the roster; null: nobody, or several ranks in one process.
  const reports::RasMember* Find(int64_t pid) const;
};

RasCheck CheckRas(const windows::JobWindow& job, const windows::AttemptWindow& window);

// What RAS knows of a process of this node, as a line for `explain`; empty: RAS has listed nobody.
std::string RasLine(const RasCheck& check, int32_t rank, int64_t pid);

}  // namespace rankscope::features
