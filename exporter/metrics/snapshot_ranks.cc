// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Series of a job's ranks.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string_view>
#include <utility>

#include "exporter/metrics/snapshot_impl.h"

namespace rankscope::metrics {
namespace {

// Which series shows a signal of a rank.
struct RankSeries {
  SignalId signal;
  MetricId metric;
  std::string_view labels, value;  // names, where it has one of its own, and its value
};
constexpr bool IsOfRank(const SignalRow& row) {
  return row.scope == SignalScope::Rank && IsShown(row);
}
constexpr auto kRankSeries = [] {
  constexpr auto kCount =
      static_cast<size_t>(std::count_if(kSignals.begin(), kSignals.end(), IsOfRank));
  std::array<RankSeries, kCount> all{};
  size_t next = 0;
  for (const SignalRow& row : kSignals) {
    if (!IsOfRank(row)) continue;
    const MetricId metric = MetricOf(row);
    all[next++] = {row.id, metric, row.label().empty() ? "" : kCatalog[metric].labels,
                   row.label_value()};
  }
  return all;
}();

// By number; a restarted rank may be listed twice: the living.
std::map<int32_t, const RankStatus*> RanksOf(const JobStatus& job) {
  std::map<int32_t, const RankStatus*> ranks;
  for (const RankStatus& rank : job.ranks) {
    const RankStatus*& kept = ranks[rank.rank];
    if (kept == nullptr || (rank.alive && !kept->alive)) kept = &rank;
  }
  ranks.erase(-1);  // speaker not known
  return ranks;
}

}  // namespace

void SnapshotBuilder::Impl::AddRankSignals(const JobStatus& job, const RankStatus& rank,
                                           const LabelPointer& labels) {
  LabelCache& cache = jobs[job.job_id].labels;
  const std::string number = std::to_string(rank.rank);
  for (const RankSeries& row : kRankSeries) {
    const double value = rank.signals[row.signal];
    if (std::isnan(value)) continue;
    Add(row.metric,
        row.labels.empty() ? labels : cache.Get(row.labels, {job.job_id, number, row.value}),
        value);
  }
}

void SnapshotBuilder::Impl::AddGaps(const JobStatus& job) {
  constexpr MetricId kGaps = MetricNamed("rankscope_cuda_launch_gap_seconds");
  LabelCache& cache = jobs[job.job_id].labels;
  for (const auto& [number, rank] : RanksOf(job)) {
    const double sum = rank->signals[SignalId::kLaunchGapSeconds];
    if (!rank->launch_gaps_counted || std::isnan(sum) || !Room(kGaps, SeriesOf(kCatalog[kGaps])))
      continue;
    Histogram histogram{cache.Get("job_id,rank", {job.job_id, std::to_string(number)}), {}, sum};
    histogram.counts.reserve(kLaunchGapSlots);
    double count = 0;
    for (const double more : rank->launch_gaps) histogram.counts.push_back(count += more);
    histograms[kGaps].push_back(std::move(histogram));
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
           number(place.node_rank, 0), number(place.world_size, 1),
           place.node.empty() ? own_node : place.node, gpus, place.container_id, place.pod_uid,
           place.master_addr}),
      1);
}

void SnapshotBuilder::Impl::AddRanks(const JobStatus& job) {
  LabelCache& cache = jobs[job.job_id].labels;
  for (const auto& [number, rank] : RanksOf(job)) {
    const LabelPointer& labels = cache.Get("job_id,rank", {job.job_id, std::to_string(number)});
    Add(MetricNamed("rankscope_rank_alive"), labels, Flag(rank->alive));
    AddPlace(job, *rank);
    AddRankSignals(job, *rank, labels);
    // A source that no longer observes reports no current state.
    if (cuda_up) Add(MetricNamed("rankscope_cuda_attached"), labels, rank->cuda_attached);
  }
}

}  // namespace rankscope::metrics
