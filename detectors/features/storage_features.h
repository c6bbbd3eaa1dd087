// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Numbers of what the job reads and writes: checkpoints, data, errors of the file system, for the
// families. Plain data.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "detectors/features/evidence.h"

namespace rankscope::features {

struct StorageFeatures {
  static constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();

  bool seen = false;  // whether anything was told of files at all

  // An error of the file system that the run ended on.
  //   full | io_error | hang
  std::string failure;
  int64_t error = 0;  // errno
  std::string name, kind;
  std::vector<int32_t> ranks;
  EvidenceRef failure_evidence = kNoEvidence;

  // A bus error while shared memory was full.
  bool shared_memory_full = false;
  EvidenceRef shared_memory_evidence = kNoEvidence;

  // Calls that have not returned for long.
  double hang_seconds = 0;
  std::string hang_call;
  EvidenceRef hang_evidence = kNoEvidence;

  // Checkpoints of this run, by their names.
  int64_t checkpoint_bytes_read = 0;
  EvidenceRef read_evidence = kNoEvidence;
  EvidenceRef missing_evidence = kNoEvidence;  // looked for and not found
  int64_t saves = 0;                           // by the main thread of the rank that saves
  double save_share = 0;                       // of the time since the first save
  double save_window_seconds = 0;              // that this is a share of
  double save_seconds = 0;
  EvidenceRef save_evidence = kNoEvidence;

  // Saves as the text tells of them.
  int64_t told_saves = 0;
  double told_step = 0;              // of the last
  double told_interval = kNoNumber;  // steps between them, where they are regular
  double told_share = kNoNumber;     // of the time since the first record; only where timed
  EvidenceRef told_evidence = kNoEvidence;
};

}  // namespace rankscope::features
