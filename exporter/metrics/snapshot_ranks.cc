// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Series of a job's ranks.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
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

// By rank, the GPUs that are its own: "GPU-1,GPU-2".
std::map<int32_t, std::string> GpusByRank(const JobStatus& job) {
  std::map<int32_t, std::string> gpus;
  for (const JobGpuStatus& gpu : job.gpus) {
    for (const int32_t rank : gpu.ranks) {
      std::string& all = gpus[rank];
      all.append(all.empty() ? "" : ",").append(gpu.uuid);
    }
  }
  return gpus;
}

bool IsSame(const RankPlace& a, const RankPlace& b) {
  const auto all = [](const RankPlace& p) {
    return std::tie(p.step_id, p.node_rank, p.world_size, p.node, p.container_id, p.pod_uid,
                    p.master_addr);
  };
  return all(a) == all(b);
}

}  // namespace

void SnapshotBuilder::Impl::AddRankSignals(const JobStatus& job, const RankStatus& rank,
                                           RankMemory& memory) {
  memory.own.resize(kRankSeries.size());
  for (size_t i = 0; i < kRankSeries.size(); ++i) {
    const RankSeries& row = kRankSeries[i];
    const double value = rank.signals[row.signal];
    if (std::isnan(value)) continue;
    LabelPointer& own = row.labels.empty() ? memory.plain : memory.own[i];
    if (own == nullptr)
      own = MakeLabels(row.labels, std::array<std::string_view, 3>{
                                       job.job_id, std::to_string(rank.rank), row.value});
    Add(row.metric, own, value);
  }
}

void SnapshotBuilder::Impl::AddGaps(const JobStatus& job) {
  constexpr MetricId kGaps = MetricNamed("rankscope_cuda_launch_gap_seconds");
  JobMemory& memory = jobs[job.job_id];
  for (const auto& [number, rank] : RanksOf(job)) {
    const double sum = rank->signals[SignalId::kLaunchGapSeconds];
    if (!rank->launch_gaps_counted || std::isnan(sum) || !Room(kGaps, SeriesOf(kCatalog[kGaps])))
      continue;
    Histogram histogram{memory.ranks[number].plain, {}, sum};
    histogram.counts.reserve(kLaunchGapSlots);
    double count = 0;
    for (const double more : rank->launch_gaps) histogram.counts.push_back(count += more);
    histograms[kGaps].push_back(std::move(histogram));
  }
}

void SnapshotBuilder::Impl::AddPlace(const JobStatus& job, const RankStatus& rank,
                                     const std::string& gpus, RankMemory& memory) {
  constexpr MetricId kInfo = MetricNamed("rankscope_rank_info");
  const RankPlace& place = rank.place;
  const bool known = memory.info != nullptr && memory.local_rank == rank.local_rank &&
                     memory.gpus == gpus && IsSame(memory.place, place);
  if (!known) {
    const auto number = [](int32_t n, int32_t least) {
      return n < least ? std::string() : std::to_string(n);
    };
    const std::string of_rank = std::to_string(rank.rank), local = number(rank.local_rank, 0),
                      of_node = number(place.node_rank, 0), size = number(place.world_size, 1);
    memory.local_rank = rank.local_rank;
    memory.gpus = gpus;
    memory.place = place;
    memory.info = MakeLabels(
        kCatalog[kInfo].labels,
        std::array<std::string_view, 11>{job.job_id, of_rank, place.step_id, local, of_node, size,
                                         place.node.empty() ? own_node : place.node, gpus,
                                         place.container_id, place.pod_uid, place.master_addr});
  }
  Add(kInfo, memory.info, 1);
}

void SnapshotBuilder::Impl::AddRanks(const JobStatus& job) {
  std::map<int32_t, RankMemory>& memories = jobs[job.job_id].ranks;
  const std::map<int32_t, std::string> gpus = GpusByRank(job);
  for (const auto& [number, rank] : RanksOf(job)) {
    RankMemory& memory = memories[number];
    memory.used = true;
    if (memory.plain == nullptr) {
      memory.plain = MakeLabels(
          "job_id,rank", std::array<std::string_view, 2>{job.job_id, std::to_string(number)});
    }
    const auto own = gpus.find(number);
    Add(MetricNamed("rankscope_rank_alive"), memory.plain, Flag(rank->alive));
    AddPlace(job, *rank, own == gpus.end() ? std::string() : own->second, memory);
    AddRankSignals(job, *rank, memory);
    // A source that no longer observes reports no current state.
    if (cuda_up) Add(MetricNamed("rankscope_cuda_attached"), memory.plain, rank->cuda_attached);
  }
}

}  // namespace rankscope::metrics
