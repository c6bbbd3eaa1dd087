// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Numbers of the GPUs that the job's processes compute on, for the families. Plain data; NaN where
// a card does not tell.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "detectors/features/evidence.h"
#include "detectors/model/time.h"

namespace rankscope::features {

// The looks of one minute at a card.
struct GpuMinute {
  int32_t looks = 0;
  int32_t busy = 0;          // its engine ran for half of the time or more
  double severe_duty = 0;    // of those, the share that heat or power supply held down
  uint32_t severe_bits = 0;  // which of them
  int32_t told = 0;          // looks that tell of reasons at all
};

struct RunGpu {
  static constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

  int32_t index = -1;
  std::string uuid, model;
  std::vector<int32_t> ranks;
  bool worked = false;      // its engine was busy under the run
  bool ran = false;         // anything at all, while it was looked at
  double idle_seconds = 0;  // since then, or since the first look
  double engine = kNone;    // medians of the newest minute
  double clock = kNone;     // while busy
  double temperature = kNone;
  double busiest_minute = kNone;  // of the newest five
  double best_clock = 0;          // that it has kept for ten busy seconds, nothing holding it down
  double peers_clock =
      kNone;              // median of the same while busy, of the run's other cards of its model
  GpuMinute now, before;  // the newest minute and the one before
  double own_bytes = 0, foreign_bytes = 0;
  std::string foreign_name;  // of the largest process that is not the job's
  int32_t foreign_pid = 0;
  // Uncorrected memory errors and failed remaps under the run.
  double errors = 0;
  bool errors_counted = false;  // whether the card counts them at all
  Timestamp errors_risen;
  EvidenceRef activity_evidence = kNoEvidence;
  EvidenceRef throttle_evidence = kNoEvidence;
  EvidenceRef errors_evidence = kNoEvidence;
  EvidenceRef latent_evidence = kNoEvidence;  // of damage that was there before the run
  EvidenceRef foreign_evidence = kNoEvidence;
};

struct GpuFeatures {
  std::vector<RunGpu> gpus;  // by index of the driver

  bool known() const { return !gpus.empty(); }
};

}  // namespace rankscope::features
