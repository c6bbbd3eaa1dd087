// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Tells copies: launchers print again what their ranks have said (`torchrun --tee`, mpirun,
// `srun`), in lines with or without a prefix. What a job's ranks have said of late is remembered by
// its hash alone. Loop thread only.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <unordered_set>

namespace rankscope::probes {

class RecentLines {
 public:
  // Of a job: what 8 ranks say in a second and a half at the most that is heard of them, and far
  // more than a launcher lags behind. About 400 KiB a job.
  static constexpr size_t kMost = 8192;
  // Jobs at once; of more, the one whose id comes first is forgotten.
  static constexpr size_t kMaxJobs = 64;

  void Note(const std::string& job_id, std::string_view line);
  // Blank lines are nobody's copy.
  bool Holds(const std::string& job_id, std::string_view line) const;

 private:
  struct Job {
    std::deque<size_t> order;
    std::unordered_multiset<size_t> hashes;
  };
  std::map<std::string, Job> jobs_;
};

}  // namespace rankscope::probes
