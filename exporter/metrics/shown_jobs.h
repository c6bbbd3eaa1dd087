// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Which of the published jobs have series at a tick, and which stores of evidence spoke for them.
// Pure; any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "detectors/proto/verdict.pb.h"
#include "detectors/status/job_status.h"
#include "exporter/metrics/published.h"

namespace rankscope::metrics {

// How much of a job is shown; each shows less than the one before.
enum class JobStage : uint8_t {
  kLive,
  kJustEnded,  // for a minute after its final verdict
  kEnded,      // for five: no ranks, training and logs
  kFailed,     // for an hour, if it failed: the verdict, and whose job it was
};

struct ShownJob {
  const JobStatus* job = nullptr;
  JobStage stage = JobStage::kLive;
};

// Whether the verdict is that of a failure, of which somebody may still want to know after an hour.
bool IsFailure(const proto::Verdict& verdict);

// The jobs that have series at this tick: each id once (a reused id: the running one, else the
// later), the live before the finished, so that these lose their series first. Those that are not
// watched have none.
std::vector<ShownJob> Shown(const Published& published);

// How many series the jobs of each user may have, so that nobody's are crowded out by another's
// (max-min fairness): what is left goes to who wants more. Reckoned with what each wanted at the
// tick before; of one who was not there then, nothing is known, and he may have a fair share.
class SeriesShares {
 public:
  // `room`: of the whole page, without what is nobody's.
  void Begin(std::span<const ShownJob> shown, size_t room);
  // Whether `count` more series of this user's jobs are within his share.
  bool Take(int64_t uid, size_t count);

 private:
  struct User {
    size_t wanted_before = SIZE_MAX;
    size_t wanted = 0;
    size_t used = 0;
  };
  std::map<int64_t, User> users_;
  size_t share_ = SIZE_MAX;
};

inline constexpr std::array kStores = {
    proto::STORE_LOG,       proto::STORE_PROCESS, proto::STORE_KERNEL,
    proto::STORE_SCHEDULER, proto::STORE_GPU,     proto::STORE_CUDA,
    proto::STORE_NCCL,      proto::STORE_HOST,    proto::STORE_FLEET};

// Whether the store has said anything about this job.
bool StoreSpoke(const JobStatus& job, proto::Store store);

}  // namespace rankscope::metrics
