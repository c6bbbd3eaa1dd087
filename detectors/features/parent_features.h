// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The job that this one may go on from, as its summary tells of it: another that it waited for, or
// this one before the scheduler began it anew elsewhere. Plain data.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "detectors/features/evidence.h"

namespace rankscope::features {

struct ParentFeatures {
  static constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();

  std::string job_id;  // empty: it follows nobody, as far as anybody says
  std::string kind;    // restart | afterok | afterany | ...
  bool known = false;  // its summary was found
  // By the scheduler's word this is a rerun: begun anew, or only to begin because the other failed.
  // That a job merely waits for another says little: an evaluation waits for its training, too.
  bool rerun = false;
  EvidenceRef rerun_evidence = kNoEvidence;  // that it follows

  // Meaningful where known.
  bool finished = false;
  bool saved = false;
  bool same_program = false;  // both are known
  bool same_length = true;    // no other number of steps is set out for
  int64_t records = 0;
  double last_step = kNoNumber;
  double first_loss = kNoNumber, last_loss = kNoNumber;
  double noise = 0;   // sigma around the trend
  std::string wrote;  // its newest checkpoint; may be empty
  EvidenceRef evidence = kNoEvidence;
};

}  // namespace rankscope::features
