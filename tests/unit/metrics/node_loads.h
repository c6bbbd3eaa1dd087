// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Published states of whole nodes, minute by minute, for tests of what fits on a page: every number
// that can be known is known, so that no node of this shape has more series.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/unit/metrics/published_states.h"

namespace rankscope::test {

struct NodeLoad {
  std::string_view name;   // a word
  std::string_view words;  // in the documentation
  int gpus = 0;
  int jobs = 0;
  int ranks = 0;  // of each job
};

inline constexpr std::array kNodeLoads = {
    NodeLoad{"one", "8 GPUs, 1 job of 8 ranks", 8, 1, 8},
    NodeLoad{"eight", "8 GPUs, 8 jobs of 1 rank", 8, 8, 1},
    NodeLoad{"sixteen", "8 GPUs, 16 jobs of 8 ranks", 8, 16, 8},
    NodeLoad{"wide", "8 GPUs, 1 job of 144 ranks", 8, 1, 144},
};

// Beside the live jobs as many fail, the first in minute kFirstFailure, then one in every minute.
// The last live job has a straggler; from minute kSourceDown on the source "io" is down.
inline constexpr int kFailures = 16;
inline constexpr int kFirstFailure = 2;
inline constexpr int kSourceDown = 3;

inline std::string FailingJob(int number) {
  return "failing-" + std::to_string(100 + number);
}

// Everything that the default profile shows of a rank or a job.
template <typename Values>
void FillSignals(SignalScope scope, Values& values) {
  double next = 0.5;
  for (const SignalRow& row : kSignals) {
    if (row.scope == scope) values.Set(row.id, next += 1);
  }
}

inline JobStatus FullJob(std::string job_id, int ranks, int first_pid) {
  JobStatus job = HealthyJob(std::move(job_id));
  job.uid = 1000;
  FillSignals(SignalScope::Job, job.signals);
  job.rdma.errors.fill(1);
  RankStatus rank = job.ranks.front();
  FillSignals(SignalScope::Rank, rank.signals);
  rank.cuda_attached = 1;
  job.ranks.clear();
  job.world_size = ranks;
  for (int number = 0; number < ranks; ++number) {
    job.ranks.push_back(rank);
    job.ranks.back().rank = number;
    job.ranks.back().process.pid = first_pid + number;
  }
  return job;
}

// Each rank has a GPU; where there are more ranks than GPUs, several share one.
inline void ShareGpus(std::vector<JobStatus>& jobs, std::vector<GpuStatus>& gpus) {
  int next = 0;
  for (GpuStatus& gpu : gpus) gpu.reading.compute_processes->clear();
  for (JobStatus& job : jobs) {
    job.gpus.clear();
    for (const RankStatus& rank : job.ranks) {
      const int at = next++ % static_cast<int>(gpus.size());
      gpus[at].reading.compute_processes->push_back({rank.process.pid, 1 << 30, -1});
      auto own = std::find_if(job.gpus.begin(), job.gpus.end(),
                              [&](const JobGpuStatus& one) { return one.index == at; });
      if (own == job.gpus.end())
        own = job.gpus.insert(own, {at, gpus[at].identity.uuid, "slurm", true, {}});
      own->ranks.push_back(rank.rank);
    }
  }
}

inline JobStatus FailedJob(int number, double wall_seconds) {
  JobStatus job = FullJob(FailingJob(number), 1, 9000 + number);
  SetFamily(job, "A2", 0.85, "critical");
  job.running = false;
  job.gpus.clear();
  for (RankStatus& rank : job.ranks) rank.alive = false;
  job.verdict.set_state(proto::FINAL);
  job.verdict.set_phase(proto::PHASE_ENDED);
  job.verdict.set_updated_ns(WallNs(wall_seconds));
  return job;
}

inline metrics::Published NodeAt(const NodeLoad& load, int minute) {
  const double now = kWallSeconds + 60.0 * minute;
  std::vector<JobStatus> jobs;
  for (int number = 0; number < load.jobs; ++number) {
    jobs.push_back(
        FullJob("live-" + std::to_string(100 + number), load.ranks, 1000 + 200 * number));
  }
  SetFamily(jobs.back(), "D3", 0.65, "warning");
  std::vector<GpuStatus> gpus;
  for (int index = 0; index < load.gpus; ++index) {
    gpus.push_back(UpGpu(index));
    gpus.back().reading.mig_enabled = 0;
  }
  ShareGpus(jobs, gpus);
  for (int number = 0; number < kFailures; ++number) {
    const int failed = kFirstFailure + number;
    if (minute >= failed) jobs.push_back(FailedJob(number, kWallSeconds + 60.0 * failed));
  }
  metrics::Published published = OnNode(std::move(jobs));
  published.wall_seconds = now;
  published.agent.sources.push_back(GpuSource(std::move(gpus)));
  for (const char* name : {"io", "nccl", "network", "nccl_ras", "infiniband", "wait", "process"}) {
    published.agent.sources.push_back({name, Availability::kUp, "", 0, 5000, now, {}});
  }
  for (metrics::SourceStatus& source : published.agent.sources) {
    if (source.name == "io" && minute >= kSourceDown) source.state = Availability::kDown;
  }
  return published;
}

}  // namespace rankscope::test
