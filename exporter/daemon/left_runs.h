// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Runs that ended while no daemon was there. A wrapper keeps a recording in its run's folder: what
// that holds beyond what was heard is read from there, and judged as if it had been heard. The
// folder is the user's: it must be his, is read on a thread with his rights only, and says no more
// than his wrapper could: lines and the end of this one job.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "detectors/model/observation.h"

namespace rankscope::exporter {

struct LeftRun {
  std::string job_id;
  ProcessKey root;
  std::string log;        // as its wrapper named it: the folder is the one that it lies in
  uint32_t uid = 0;       // the wrapper's, by the kernel's word
  int64_t after_seq = 0;  // up to here its observations were heard
};

// Owns the texts that its observations point at.
class LeftRest {
 public:
  static constexpr int64_t kMostBytes = 32 << 20;  // as much as a wrapper keeps in segments

  void Add(const Observation& observation);
  bool full() const { return bytes_ >= kMostBytes; }

  std::vector<Observation> observations;  // in the order of the recording
  bool ended = false;    // the ends of the command and of its streams are among them
  int64_t last_seq = 0;  // of the newest one
  std::string problem;   // why nothing was read; empty = something was

 private:
  std::vector<std::unique_ptr<std::string>> texts_;
  int64_t bytes_ = 0;
};

// Blocks on files: on a thread of the user's.
LeftRest ReadLeftRun(const LeftRun& run);

}  // namespace rankscope::exporter
