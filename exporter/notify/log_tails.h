// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The last lines that each process of a job has printed, for whoever is told that it failed. They
// are masked already. Bounded; loop thread only.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "detectors/model/observation.h"
#include "detectors/status/job_status.h"
#include "exporter/notify/describe.h"

namespace rankscope::exporter::notify {

class LogTails {
 public:
  static constexpr size_t kLines = 20, kLineBytes = 300;
  static constexpr size_t kMostWriters = 1024;  // of all jobs: 6 MB

  void Note(const LogLine& line);
  // Of the first of the ranks that the verdict names, else of whoever has printed last; without
  // lines where nothing was printed.
  LogTail Of(const JobStatus& job) const;
  void Forget(std::string_view job_id);

 private:
  struct Tail {
    std::array<std::string, kLines> lines;
    size_t count = 0;   // ever
    int64_t last = 0;   // number of its newest line among all
    int32_t rank = -1;  // as the source knows it
    ProcessKey writer;
  };
  using Tails = std::map<std::pair<ProcessKey, uint32_t>, Tail>;  // by writer and stream

  static LogTail Lines(const Tail& tail, std::string of);

  std::map<std::string, Tails, std::less<>> jobs_;
  size_t writers_ = 0;
  int64_t lines_ = 0;
};

}  // namespace rankscope::exporter::notify
