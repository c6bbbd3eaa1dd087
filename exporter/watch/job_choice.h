// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Which of Slurm's jobs a word on the command line means: 8841, 8841_3, 8841_[0-9,12], 8841+1.
// Pure; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "detectors/model/result.h"
#include "exporter/slurm/records.h"

namespace rankscope::watch {

struct TaskRange {
  int64_t first = 0, last = 0, step = 1;
  bool operator==(const TaskRange&) const = default;
};

struct JobChoice {
  std::string text;              // as it was given
  std::string number;            // of the job, the array or the heterogeneous job
  std::vector<TaskRange> tasks;  // of the array; empty: all
  int32_t het_offset = -1;       // of the part; -1: all

  bool Matches(const exporter::slurm::SlurmJob& job) const;
  // What Slurm's commands are asked about: "8841", "8841_3".
  std::string Asked() const;
};

Result<JobChoice> ReadJobChoice(std::string_view text);

// How Slurm writes it: "8841", "8841_3", "8841_[4-9%2]" of what waits together, "8841+1".
std::string ShownId(const exporter::slurm::SlurmJob& job);

// Tasks of an array that wait together have no number of their own yet.
bool IsBundle(const exporter::slurm::SlurmJob& job);

}  // namespace rankscope::watch
