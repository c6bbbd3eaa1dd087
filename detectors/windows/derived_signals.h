// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The newest number of each signal of a job and of its ranks: sampled ones as they came, derived
// ones by a getter over the windows, a row for each (derived_signals.cc). Pure; any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "detectors/model/signal_table.h"
#include "detectors/model/time.h"
#include "detectors/windows/gpu_claims.h"
#include "detectors/windows/job_window.h"

namespace rankscope::windows {

// What the getters look at, and when.
struct SignalView {
  const JobWindow& job;
  const std::vector<ClaimedGpu>& claimed;  // of the job
  int64_t wall_offset_ns = 0;              // 0: wall time is not known
  Timestamp now;
};

JobSignals SignalsOf(const SignalView& view);
RankSignals SignalsOf(const SignalView& view, const RankWindow& rank);
// Of a job whose only process says of no rank: what its GPUs did.
RankSignals SignalsWithoutRank(const SignalView& view);

}  // namespace rankscope::windows
