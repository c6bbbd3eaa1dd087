// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// How much memory the daemon may take and takes, and how many jobs that allows. The limit is the
// configuration's, else the lowest of the daemon's cgroup and those above it, else a sane one.
// Reads a file or two per question. Loop thread only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace rankscope::exporter {

class MemoryBudget {
 public:
  struct Options {
    int64_t configured = 0;  // bytes; 0 = what the cgroup allows
    int64_t otherwise = 0;   // where it allows anything; 0 = anything
    std::string proc_self = "/proc/self";
    std::string cgroups = "/sys/fs/cgroup";
  };

  explicit MemoryBudget(Options options);

  int64_t limit() const { return limit_; }  // 0 = none
  int64_t used() const { return used_; }    // as last measured

  // Measures. Above kHigh of the limit fewer jobs are allowed than there are, below it some more,
  // up to `most`.
  size_t JobsAllowed(size_t jobs, size_t most);
  // Whether there is too much, as last measured.
  bool high() const { return limit_ > 0 && used_ > limit_ / 100 * kHighPercent; }
  // "97 of 96 MiB are in use", for people.
  std::string Words() const;

 private:
  // What a burst between two ticks takes must fit above it: the lines of a second, some dozen jobs.
  static constexpr int64_t kHighPercent = 80;

  void Measure();

  Options options_;
  int64_t limit_ = 0;
  int64_t used_ = 0;
  std::string usage_file_;  // of the cgroup that has the limit; empty: the process's own is counted
  std::string stat_file_;
  std::string cache_key_;  // of stat_file_: pages that the kernel can take back
  size_t allowed_ = 0;     // 0: as many as there may be
};

}  // namespace rankscope::exporter
