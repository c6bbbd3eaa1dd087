// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What snapshot.cc and snapshot_*.cc share: the builder of a snapshot. For these only; loop thread.
#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>
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

// What is remembered of a rank from tick to tick: label sets that need no look-up, which is most of
// what a tick costs on a node of many ranks.
struct RankMemory {
  LabelPointer plain;             // job_id, rank
  std::vector<LabelPointer> own;  // by signal, of those with a label of their own
  LabelPointer info;              // of what follows
  RankPlace place;
  int32_t local_rank = -1;
  std::string gpus;
  bool used = false;  // since the last sweep
};

// What is remembered of a job from tick to tick.
struct JobMemory {
  LabelCache labels;
  std::map<int32_t, RankMemory> ranks;
  std::map<std::string, bool, std::less<>> warnings;  // kind -> stands now
};

struct SnapshotBuilder::Impl {
  class GpuSeries;  // in snapshot_gpus.cc
  struct Part {
    void (Impl::*add)(const JobStatus&);
    JobStage last;  // the last stage in which a job has this part
  };
  using Jobs = std::span<const ShownJob>;

  explicit Impl(SnapshotOptions o) : options(std::move(o)) {
    process = std::make_unique<ProcessMetrics>(options.proc_self, options.proc_stat);
  }

  std::shared_ptr<const Snapshot> Build(const Published& published);

  void Begin(const Published& published);
  void AddReloads(const AgentStatus& agent);
  void AddNotifications(const NotifyStatus& notify);
  void AddAgent(const AgentStatus& agent, double wall_seconds);
  void AddProbe(const std::string& source, const ProbeStatus& probe);
  void AddParts(Jobs of, std::initializer_list<Part> parts);
  void AddLive(const Published& published, Jobs live, Jobs ended);
  void AddEnded(Jobs ended);
  void AddVerdictInfo(const JobStatus& job);
  void AddVerdict(const JobStatus& job);
  void AddRuledOut(const JobStatus& job);
  void AddJobInfo(const JobStatus& job);
  void AddJob(const JobStatus& job);
  void AddPorts(const JobStatus& job);
  void AddTraining(const JobStatus& job);
  void AddCheckpoints(const CheckpointStatus& checkpoints, const LabelPointer& labels);
  void AddOutput(const SourceStatus& stdio);
  void AddKernelLines(const SourceStatus& kmsg);
  void AddRefusals(const SourceStatus& run);
  void AddLogs(const JobStatus& job);
  void AddGaps(const JobStatus& job);
  void AddRankSignals(const JobStatus& job, const RankStatus& rank, RankMemory& memory);
  void AddPlace(const JobStatus& job, const RankStatus& rank, const std::string& gpus,
                RankMemory& memory);
  void AddRanks(const JobStatus& job);
  // Of the ranks of each user's jobs, each metric whole.
  void AddAllRanks(Jobs of);
  void AddSwitches(const SourceStatus& source);
  void StageGpus(const Published& published);
  // What ranks hold of them.
  void AddRankMemory(const Published& published);
  void AddNvmlCalls(const AgentStatus& agent);
  // Whose GPUs are, for the labels that dcgm-exporter has of them: by the node's prolog and by the
  // kubelet.
  struct GpuOwners {
    std::map<std::string, std::vector<std::string>, std::less<>> jobs;  // by uuid
    std::map<std::string, std::vector<GpuPod>, std::less<>> pods;       // by uuid, or "nvidia0"
  };
  static GpuOwners GpuOwnersOf(const Published& published);
  void AddDcgmNames(const AgentStatus& agent, const GpuStatus& gpu, const GpuOwners& owners);
  void AddLibraryCalls(const std::vector<LibraryCall>& calls);
  void AddCallSeconds(MetricId id, const LibraryCall& call);
  void AddSlurm(const SourceStatus& source);
  void AddSlurmCalls(const std::vector<LibraryCall>& calls);
  void AddSlurmNode(const SlurmNodeState& node);
  void AddSlurmController(const SlurmController& told);
  void AddSlurmQueue(const SlurmQueue& queue);
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
  // Between Stage and Settle series are set aside, and there is room for all. Settle takes those of
  // rows that are kept as `keep` says, each metric whole or not at all: of some GPUs or ranks a sum
  // or a maximum would be wrong, and nothing would show it.
  void Stage() { staging = true; }
  void EndStage() { staging = false; }
  void Settle(Keep keep);
  void LeaveOut(MetricId id, size_t count);
  void AddMissing();
  size_t max_series() const {
    return static_cast<size_t>(options.max_series > 0 ? options.max_series
                                                      : MaxSeriesOf(options.profile));
  }

  SnapshotOptions options;
  std::unique_ptr<ProcessMetrics> process;
  std::string own_node;               // of this daemon
  std::unique_ptr<SelfMetrics> self;  // made at the first tick, which knows the version
  LabelCache agent_labels;
  std::unordered_map<std::string, JobMemory> jobs;
  std::set<std::string> count_own_bytes;  // uuids of GPUs that ever have

  std::array<std::vector<Series>, kCatalog.size()> series;  // of the tick being built
  std::array<std::vector<Histogram>, kCatalog.size()> histograms;
  std::array<std::vector<Series>, kCatalog.size()> staged;
  std::vector<MetricId> staged_ids;  // that have some
  bool staging = false;
  size_t used = 0;
  struct Missing {
    size_t series = 0;
    bool named = false;  // there is room for its row
  };
  std::array<Missing, kCatalog.size()> missing{};
  size_t reserved = 0;  // places for rows that say what is missing
  size_t names = 0;     // of these, taken by a metric
  SeriesShares shares;
  const JobStatus* of_job = nullptr;  // whose series are being added; null: nobody's
  bool of_ended = false;              // and whether that job has ended
  size_t of_nobody = 0;               // series, at the tick before
  bool cuda_up = false;               // the source
  std::map<std::string, int, std::less<>>
      gpu_jobs;  // running jobs to which the GPU belongs, by uuid
};

}  // namespace rankscope::metrics
