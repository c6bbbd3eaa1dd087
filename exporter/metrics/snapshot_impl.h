// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What snapshot.cc, snapshot_gpus.cc and snapshot_ranks.cc share: the builder of a snapshot. For
// these only; loop thread.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "exporter/metrics/labels.h"
#include "exporter/metrics/process_metrics.h"
#include "exporter/metrics/self_metrics.h"
#include "exporter/metrics/shown_jobs.h"
#include "exporter/metrics/snapshot.h"

namespace rankscope::metrics {

inline double Seconds(int64_t ns) {
  return static_cast<double>(ns) * 1e-9;
}
inline double Flag(bool value) {
  return value ? 1 : 0;
}
inline double Count(int64_t value) {
  return static_cast<double>(value);
}

// What is remembered of a job from tick to tick.
struct JobMemory {
  LabelCache labels;
  std::map<std::string, bool, std::less<>> warnings;  // kind -> stands now
};

struct SnapshotBuilder::Impl {
  class GpuSeries;  // in snapshot_gpus.cc
  struct Part {
    void (Impl::*add)(const JobStatus&);
    bool always;  // also of a job that is not shown whole any more
  };

  explicit Impl(SnapshotOptions o) : options(std::move(o)) {
    process = std::make_unique<ProcessMetrics>(options.proc_self, options.proc_stat);
  }

  std::shared_ptr<const Snapshot> Build(const Published& published);

  void Begin(const Published& published);
  void AddReloads(const AgentStatus& agent);
  void AddNotifications(const NotifyStatus& notify);
  void AddAgent(const AgentStatus& agent, double wall_seconds);
  void AddProbe(const std::string& source, const ProbeStatus& probe);
  void AddVerdict(const JobStatus& job);
  void AddVerdictDetail(const JobStatus& job);
  void AddJob(const JobStatus& job);
  void AddPorts(const JobStatus& job);
  void AddTraining(const JobStatus& job);
  void AddCheckpoints(const CheckpointStatus& checkpoints, const LabelPointer& labels);
  void AddOutput(const SourceStatus& stdio);
  void AddKernelLines(const SourceStatus& kmsg);
  void AddRefusals(const SourceStatus& run);
  void AddLogs(const JobStatus& job);
  void AddGaps(const RankStatus& rank, const LabelPointer& labels);
  void AddRankSignals(const JobStatus& job, const RankStatus& rank, const LabelPointer& labels);
  void AddPlace(const JobStatus& job, const RankStatus& rank);
  void AddRanks(const JobStatus& job);
  void AddSwitches(const SourceStatus& source);
  // Of rows that are kept as `keep` says.
  void AddGpus(const Published& published, Keep keep);
  void AddDcgmNames(const AgentStatus& agent, const GpuStatus& gpu);
  void AddLibraryCalls(const std::vector<LibraryCall>& calls);
  void AddCallSeconds(MetricId id, const LibraryCall& call);
  void AddSlurm(const SourceStatus& source);
  void AddSlurmCalls(const std::vector<LibraryCall>& calls);
  void AddSlurmNode(const SlurmNodeState& node);
  void AddSlurmController(const SlurmController& told);
  void CountGpuJobs(const std::vector<ShownJob>& shown);
  void AddJobGpus(const JobStatus& job);
  void AddRankGpus(const JobStatus& job);
  // How many series it gave.
  size_t AddCollectable(const prometheus::Collectable& collectable);
  void Forget(const std::vector<ShownJob>& shown);

  // Whether `count` more series fit; what does not fit is counted. State sets ask once for all
  // their states.
  bool Room(MetricId id, size_t count = 1);
  void Put(MetricId id, LabelPointer labels, double value);
  // One series; an absent value (NaN) makes none.
  void Add(MetricId id, const LabelPointer& labels, double value);

  SnapshotOptions options;
  std::unique_ptr<ProcessMetrics> process;
  std::string own_node;               // of this daemon
  std::unique_ptr<SelfMetrics> self;  // made at the first tick, which knows the version
  LabelCache agent_labels;
  std::unordered_map<std::string, JobMemory> jobs;
  std::set<std::string> count_own_bytes;  // uuids of GPUs that ever have

  std::array<std::vector<Series>, kCatalog.size()> series;  // of the tick being built
  std::array<std::vector<Histogram>, kCatalog.size()> histograms;
  size_t used = 0;
  SeriesShares shares;
  const JobStatus* of_job = nullptr;  // whose series are being added; null: nobody's
  size_t of_nobody = 0;               // series, at the tick before
  bool cuda_up = false;               // the source
  std::map<std::string, int, std::less<>>
      gpu_jobs;  // running jobs to which the GPU belongs, by uuid
};

}  // namespace rankscope::metrics
