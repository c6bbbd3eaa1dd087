// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Which of the published jobs have series at a tick, and which stores of evidence spoke for them.
// Pure; any thread.
#pragma once

#include <array>
#include <vector>

#include "detectors/job_status.h"
#include "detectors/proto/verdict.pb.h"
#include "exporter/metrics/published.h"

namespace rankscope::metrics {

struct ShownJob {
  const JobStatus* job = nullptr;
  bool whole = true;  // false: only the verdict and the job itself
};

// The jobs that have series at this tick: each id once (a reused id: the running one, else the
// later), the live before the finished, so that these lose their series first.
std::vector<ShownJob> Shown(const Published& published);

inline constexpr std::array kStores = {
    proto::STORE_LOG,       proto::STORE_PROCESS, proto::STORE_KERNEL,
    proto::STORE_SCHEDULER, proto::STORE_GPU,     proto::STORE_CUDA,
    proto::STORE_NCCL,      proto::STORE_HOST,    proto::STORE_FLEET};

// Whether the store has said anything about this job.
bool StoreSpoke(const JobStatus& job, proto::Store store);

}  // namespace rankscope::metrics
