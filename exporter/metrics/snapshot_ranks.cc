// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Series of a job's ranks.
#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <utility>

#include "exporter/metrics/snapshot_impl.h"

namespace rankscope::metrics {
namespace {

// Which series shows a signal of a rank's calls into CUDA and NCCL.
struct CallRow {
  SignalId signal;
  MetricId metric;
};
constexpr CallRow kCallRows[] = {
    CallRow{SignalId::kAllocatedBytes, MetricNamed("rankscope_cuda_alloc_bytes_total")},
    CallRow{SignalId::kAllocationFailures, MetricNamed("rankscope_cuda_alloc_failures_total")},
    CallRow{SignalId::kAllocationSeconds, MetricNamed("rankscope_cuda_alloc_seconds_total")},
    CallRow{SignalId::kCountedShare, MetricNamed("rankscope_cuda_counted_ratio")},
    CallRow{SignalId::kCudaErrors, MetricNamed("rankscope_cuda_errors_total")},
    CallRow{SignalId::kGraphLaunches, MetricNamed("rankscope_cuda_graph_launches_total")},
    CallRow{SignalId::kKernelLaunches, MetricNamed("rankscope_cuda_kernel_launches_total")},
    CallRow{SignalId::kLargestLaunchGapSeconds,
            MetricNamed("rankscope_cuda_largest_launch_gap_seconds")},
    CallRow{SignalId::kLastFailedAllocationBytes,
            MetricNamed("rankscope_cuda_last_failed_alloc_bytes")},
    CallRow{SignalId::kLaunchSeconds, MetricNamed("rankscope_cuda_launch_seconds_total")},
    CallRow{SignalId::kCopyCalls, MetricNamed("rankscope_cuda_memcpy_calls_total")},
    CallRow{SignalId::kCopySeconds, MetricNamed("rankscope_cuda_memcpy_seconds_total")},
    CallRow{SignalId::kOldestSyncSeconds, MetricNamed("rankscope_cuda_oldest_sync_seconds")},
    CallRow{SignalId::kSyncCalls, MetricNamed("rankscope_cuda_sync_calls_total")},
    CallRow{SignalId::kCudaSyncSeconds, MetricNamed("rankscope_cuda_sync_seconds_total")},
    CallRow{SignalId::kTimedShare, MetricNamed("rankscope_cuda_timed_ratio")},
    CallRow{SignalId::kCollectiveBytes, MetricNamed("rankscope_nccl_bytes_total")},
    CallRow{SignalId::kCollectivesEnqueued,
            MetricNamed("rankscope_nccl_collectives_enqueued_total")},
    CallRow{SignalId::kCommunicatorAborts, MetricNamed("rankscope_nccl_comm_aborts_total")},
    CallRow{SignalId::kCommunicatorInitSeconds,
            MetricNamed("rankscope_nccl_comm_init_in_flight_seconds")},
    CallRow{SignalId::kCommunicators, MetricNamed("rankscope_nccl_communicators")},
    CallRow{SignalId::kCollectiveSeconds, MetricNamed("rankscope_nccl_enqueue_seconds_total")},
    CallRow{SignalId::kUninterruptibleThreads,
            MetricNamed("rankscope_rank_uninterruptible_threads")},
};

// Why a rank's threads were off the CPU.
struct ReasonRow {
  std::string_view reason;
  SignalId signal;
};
constexpr ReasonRow kReasonRows[] = {
    ReasonRow{"runnable", SignalId::kRunnableSeconds},
    ReasonRow{"futex", SignalId::kWaitFutexSeconds},
    ReasonRow{"socket", SignalId::kWaitSocketSeconds},
    ReasonRow{"network_file", SignalId::kWaitNetworkFileSeconds},
    ReasonRow{"file", SignalId::kWaitBlockSeconds},
    ReasonRow{"gpu", SignalId::kWaitGpuSeconds},
    ReasonRow{"sleep", SignalId::kWaitSleepSeconds},
    ReasonRow{"stopped", SignalId::kStoppedSeconds},
    ReasonRow{"other", SignalId::kWaitOtherSeconds},
};

}  // namespace

void SnapshotBuilder::Impl::AddFilesAndSockets(const std::string& job_id, const RankStatus& rank) {
  LabelCache& cache = jobs[job_id].labels;
  const std::string number = std::to_string(rank.rank);
  const LabelPointer& labels = cache.Get("job_id,rank", {job_id, number});
  Add(MetricNamed("rankscope_rank_connect_failures_total"), labels, rank.connect_failures);
  Add(MetricNamed("rankscope_rank_tcp_retransmits_total"), labels, rank.tcp_retransmits);
  Add(MetricNamed("rankscope_rank_file_errors_total"), labels, rank.file_errors);
  Add(MetricNamed("rankscope_rank_fsync_seconds_total"), labels, rank.sync_file_seconds);
  const auto directed = [&](MetricId metric, const char* direction, double value) {
    Add(metric, cache.Get("job_id,rank,direction", {job_id, number, direction}), value);
  };
  directed(MetricNamed("rankscope_rank_tcp_bytes_total"), "sent", rank.tcp_sent_bytes);
  directed(MetricNamed("rankscope_rank_tcp_bytes_total"), "received", rank.tcp_received_bytes);
  directed(MetricNamed("rankscope_rank_checkpoint_bytes_total"), "written",
           rank.checkpoint_written_bytes);
  directed(MetricNamed("rankscope_rank_checkpoint_bytes_total"), "read",
           rank.checkpoint_read_bytes);
}

void SnapshotBuilder::Impl::AddGaps(const RankStatus& rank, const LabelPointer& labels) {
  constexpr MetricId kGaps = MetricNamed("rankscope_cuda_launch_gap_seconds");
  const double sum = rank.Call(SignalId::kLaunchGapSeconds);
  if (!rank.launch_gaps_counted || std::isnan(sum) || !Room(kGaps, SeriesOf(kCatalog[kGaps])))
    return;
  Histogram histogram{labels, {}, sum};
  histogram.counts.reserve(kLaunchGapSlots);
  double count = 0;
  for (const double more : rank.launch_gaps) histogram.counts.push_back(count += more);
  histograms[kGaps].push_back(std::move(histogram));
}

void SnapshotBuilder::Impl::AddCalls(const JobStatus& job, const RankStatus& rank,
                                     const LabelPointer& labels) {
  for (const CallRow& row : kCallRows) {
    Add(row.metric, labels, rank.Call(row.signal));
  }
  AddGaps(rank, labels);
  // Of what a source does not look at any more nothing is known.
  if (cuda_up) Add(MetricNamed("rankscope_cuda_attached"), labels, rank.cuda_attached);
  if (!std::isnan(rank.last_launch_wall_seconds))
    Add(MetricNamed("rankscope_cuda_last_launch_timestamp_seconds"), labels,
        rank.last_launch_wall_seconds);
  for (const auto& [direction, signal] : {std::pair{"h2d", SignalId::kCopiedToDeviceBytes},
                                          std::pair{"d2h", SignalId::kCopiedToHostBytes}}) {
    const double value = rank.Call(signal);
    if (std::isnan(value)) continue;
    Add(MetricNamed("rankscope_cuda_memcpy_bytes_total"),
        jobs[job.job_id].labels.Get("job_id,rank,direction",
                                    {job.job_id, std::to_string(rank.rank), direction}),
        value);
  }
  for (const ReasonRow& row : kReasonRows) {
    const double value = rank.Call(row.signal);
    if (std::isnan(value)) continue;
    Add(MetricNamed("rankscope_rank_offcpu_seconds_total"),
        jobs[job.job_id].labels.Get(
            "job_id,rank,reason", {job.job_id, std::to_string(rank.rank), std::string(row.reason)}),
        value);
  }
}

void SnapshotBuilder::Impl::AddPlace(const JobStatus& job, const RankStatus& rank) {
  constexpr MetricId kInfo = MetricNamed("rankscope_rank_info");
  std::string gpus;
  for (const JobGpuStatus& gpu : job.gpus) {
    if (std::find(gpu.ranks.begin(), gpu.ranks.end(), rank.rank) == gpu.ranks.end()) continue;
    gpus += (gpus.empty() ? "" : ",") + gpu.uuid;
  }
  const auto number = [](int32_t n, int32_t least) {
    return n < least ? std::string() : std::to_string(n);
  };
  const RankPlace& place = rank.place;
  Add(kInfo,
      jobs[job.job_id].labels.Get(
          kCatalog[kInfo].labels,
          {job.job_id, std::to_string(rank.rank), place.step_id, number(rank.local_rank, 0),
           number(place.node_rank, 0), number(place.world_size, 1), place.node, gpus,
           place.container_id, place.pod_uid, place.master_addr}),
      1);
}

void SnapshotBuilder::Impl::AddRanks(const JobStatus& job) {
  LabelCache& cache = jobs[job.job_id].labels;
  std::map<int32_t, const RankStatus*> ranks;  // a restarted rank may be listed twice: the living
  for (const RankStatus& rank : job.ranks) {
    const RankStatus*& kept = ranks[rank.rank];
    if (kept == nullptr || (rank.alive && !kept->alive)) kept = &rank;
  }
  ranks.erase(-1);  // speaker not known
  for (const auto& [number, rank] : ranks) {
    const LabelPointer& labels = cache.Get("job_id,rank", {job.job_id, std::to_string(number)});
    Add(MetricNamed("rankscope_rank_alive"), labels, Flag(rank->alive));
    Add(MetricNamed("rankscope_rank_cpu_seconds_total"), labels, rank->cpu_seconds);
    Add(MetricNamed("rankscope_rank_resident_bytes"), labels, rank->resident_bytes);
    Add(MetricNamed("rankscope_rank_threads"), labels, rank->threads);
    Add(MetricNamed("rankscope_rank_engine_active_median_ratio"), labels, rank->engine_activity);
    Add(MetricNamed("rankscope_rank_sm_active_median_ratio"), labels, rank->sm_activity);
    Add(MetricNamed("rankscope_rank_collectives_completed_total"), labels,
        rank->collectives_completed);
    Add(MetricNamed("rankscope_rank_collectives_in_flight"), labels, rank->collectives_in_flight);
    Add(MetricNamed("rankscope_rank_oldest_collective_seconds"), labels,
        rank->oldest_collective_seconds);
    AddPlace(job, *rank);
    AddFilesAndSockets(job.job_id, *rank);
    AddCalls(job, *rank, labels);
  }
}

}  // namespace rankscope::metrics
