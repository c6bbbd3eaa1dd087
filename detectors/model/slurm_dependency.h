// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Whom a job waits for, as it is written for sbatch and as Slurm prints it:
//
//   afterok:123:124,afterany:125?afternotok:126   after:123+5   singleton
//   afterok:123(unfulfilled),afterany:7_3(failed)   afterok:7_*   (null)
//
// Pure; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rankscope {

struct SlurmDependency {
  std::string kind;    // after | afterany | afterok | afternotok | aftercorr
  std::string job_id;  // "123", of an array's task "7_3", of a whole array "7"
  bool operator==(const SlurmDependency&) const = default;
};

// At most 8, in their order, each once. `singleton` names nobody. `array_task`: "9_3" where the job
// that waits is a task of an array: with aftercorr it waits for the other array's task of its own
// number, not for all of them.
std::vector<SlurmDependency> ReadSlurmDependencies(std::string_view text,
                                                   std::string_view array_task = {});

// The words of a submit line; Slurm keeps them without their quotes.
std::vector<std::string> SplitSubmitLine(std::string_view line);

// What `--dependency` or `-d` of a submit line says; empty: nothing.
std::string DependencyOfSubmitLine(std::string_view line);

}  // namespace rankscope
