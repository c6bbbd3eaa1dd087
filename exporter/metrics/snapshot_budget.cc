// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Which series a page has room for, in which order, and what is said of the rest.
#include <algorithm>
#include <cassert>
#include <cmath>
#include <iterator>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "exporter/metrics/snapshot_impl.h"

namespace rankscope::metrics {

size_t Snapshot::SeriesCount() const {
  size_t count = 0;
  for (const Family& family : families) count += family.SeriesCount();
  return count;
}

void SnapshotBuilder::Impl::Begin(const Published& published) {
  if (!self) self = std::make_unique<SelfMetrics>(published.agent.version);
  used = self->series_count();
  // That of "other", and as many as the tick before had something to name: a page that is full when
  // the first series does not fit has no room left to say so. And some more, for what these crowd
  // out.
  constexpr size_t kMore = 16;
  const auto before = std::count_if(missing.begin(), missing.end(),
                                    [](const Missing& one) { return one.series > 0; });
  reserved = before > 0 ? 1 + kMore + static_cast<size_t>(before) : 1;
  names = 0;
  missing.fill({});
  // Else each GPU would be told of twice under one name, by two exporters.
  const auto is_dcgm_exporter = [](const SourceStatus& source) {
    return source.name == "dcgm" &&
           (source.state == Availability::kUp || source.state == Availability::kStale ||
            source.state == Availability::kUnsupported);
  };
  if (options.dcgm_names && options.dcgm_names_yield &&
      std::any_of(published.agent.sources.begin(), published.agent.sources.end(),
                  is_dcgm_exporter)) {
    options.dcgm_names = false;
  }
  cuda_up = std::any_of(published.agent.sources.begin(), published.agent.sources.end(),
                        [](const SourceStatus& source) {
                          return source.name == "cuda" && source.state == Availability::kUp;
                        });
}

bool SnapshotBuilder::Impl::Room(MetricId id, size_t count) {
  const MetricRow& row = kCatalog[id];
  if (IsOfFullProfile(row.profile) && options.profile != Profile::kFull) return false;
  if (IsDcgmName(row.profile) && !options.dcgm_names) return false;
  if (staging) return true;
  const bool within_share = of_job == nullptr || shares.Take(of_job->uid, count);
  if (IsDroppable(row.keep) && (!within_share || used + reserved + count > max_series())) {
    LeaveOut(id, count);
    return false;
  }
  used += count;
  if (of_job == nullptr) of_nobody += count;
  return true;
}

void SnapshotBuilder::Impl::LeaveOut(MetricId id, size_t count) {
  self->CountDropped(of_ended ? kOfEndedJob : DropReason(kCatalog[id].keep), count);
  Missing& left_out = missing[id];
  left_out.series += count;
  if (left_out.named) return;
  if (names + 1 >= reserved) {
    if (used + reserved >= max_series()) return;
    ++reserved;
  }
  if (used + reserved > max_series()) return;  // what is never dropped has taken it
  left_out.named = true;
  ++names;
}

void SnapshotBuilder::Impl::AddMissing() {
  constexpr MetricId kMissing = MetricNamed("rankscope_series_missing");
  size_t other = 0;
  for (MetricId id = 0; id < missing.size(); ++id) {
    if (missing[id].named) {
      Add(kMissing, agent_labels.Get("metric", {kCatalog[id].name}),
          static_cast<double>(missing[id].series));
    } else {
      other += missing[id].series;
    }
  }
  if (other > 0) Add(kMissing, agent_labels.Get("metric", {"other"}), static_cast<double>(other));
}

void SnapshotBuilder::Impl::Put(MetricId id, LabelPointer labels, double value) {
  std::vector<Series>& to = staging ? staged[id] : series[id];
  if (staging && to.empty()) staged_ids.push_back(id);
  to.push_back({std::move(labels), value});
}

void SnapshotBuilder::Impl::Add(MetricId id, const LabelPointer& labels, double value) {
  if (std::isnan(value) || !Room(id)) return;
  Put(id, labels, value);
}

void SnapshotBuilder::Impl::Settle(Keep keep) {
  std::sort(staged_ids.begin(), staged_ids.end());
  size_t left = 0;
  for (const MetricId id : staged_ids) {
    if (kCatalog[id].keep != keep) {
      staged_ids[left++] = id;
      continue;
    }
    if (Room(id, staged[id].size())) {
      if (series[id].empty()) {
        series[id].swap(staged[id]);
      } else {
        series[id].insert(series[id].end(), std::move_iterator(staged[id].begin()),
                          std::move_iterator(staged[id].end()));
      }
    }
    staged[id].clear();
  }
  staged_ids.resize(left);
}

void SnapshotBuilder::Impl::AddParts(Jobs of, std::initializer_list<Part> parts) {
  for (const Part part : parts) {
    for (const ShownJob& one : of) {
      if (one.stage > part.last) continue;
      of_job = one.job;
      (this->*part.add)(*one.job);
    }
  }
  of_job = nullptr;
}

void SnapshotBuilder::Impl::AddAllRanks(Jobs of) {
  std::map<int64_t, std::vector<const JobStatus*>> by_user;
  for (const ShownJob& one : of) {
    if (one.stage <= JobStage::kJustEnded) by_user[one.job->uid].push_back(one.job);
  }
  for (const auto& [uid, theirs] : by_user) {
    Stage();
    for (const JobStatus* job : theirs) {
      AddRanks(*job);
      AddRankGpus(*job);
    }
    EndStage();
    of_job = theirs.front();
    Settle(Keep::kRank);
    Settle(Keep::kRankDetail);
    for (const JobStatus* job : theirs) AddGaps(*job);
  }
  of_job = nullptr;
}

void SnapshotBuilder::Impl::AddLive(const Published& published, Jobs live, Jobs ended) {
  AddParts(live, {{&Impl::AddVerdict, JobStage::kLive},
                  {&Impl::AddJobInfo, JobStage::kLive},
                  {&Impl::AddJob, JobStage::kLive},
                  {&Impl::AddTraining, JobStage::kLive}});
  // Whose the failed ones were: alerts tell of nobody's job.
  of_ended = true;
  AddParts(ended, {{&Impl::AddJobInfo, JobStage::kFailed}});
  of_ended = false;
  Settle(Keep::kDcgm);
  Settle(Keep::kGpuDetail);
  AddNvmlCalls(published.agent);
  for (const SourceStatus& source : published.agent.sources) {
    if (source.name == "slurm") AddSlurm(source);
  }
  AddParts(live, {{&Impl::AddRuledOut, JobStage::kLive}, {&Impl::AddLogs, JobStage::kLive}});
  AddAllRanks(live);
  AddRankMemory(published);
}

void SnapshotBuilder::Impl::AddEnded(Jobs ended) {
  of_ended = true;
  AddParts(ended, {{&Impl::AddVerdict, JobStage::kFailed},
                   {&Impl::AddJob, JobStage::kEnded},
                   {&Impl::AddTraining, JobStage::kJustEnded},
                   {&Impl::AddLogs, JobStage::kJustEnded}});
  AddAllRanks(ended);
  of_ended = false;
}

// Drops the memory of jobs and label sets that this tick has not shown.
void SnapshotBuilder::Impl::Forget(const std::vector<ShownJob>& shown) {
  std::unordered_set<std::string_view> ids;
  for (const ShownJob& one : shown) ids.insert(one.job->job_id);
  std::erase_if(jobs, [&](const auto& entry) { return !ids.contains(entry.first); });
  for (auto& [id, memory] : jobs) {
    memory.labels.Sweep();
    std::erase_if(memory.ranks, [](const auto& entry) { return !entry.second.used; });
    for (auto& [number, rank] : memory.ranks) rank.used = false;
  }
  agent_labels.Sweep();
}

size_t SnapshotBuilder::Impl::AddCollectable(const prometheus::Collectable& collectable) {
  size_t count = 0;
  ForEachSeries(
      collectable,
      [&](MetricId id, LabelPointer labels, double value) {
        Put(id, std::move(labels), value);
        ++count;
      },
      [&](size_t left_out) { self->CountDropped(kNotCatalogued, left_out); });
  return count;
}

std::shared_ptr<const Snapshot> SnapshotBuilder::Impl::Build(const Published& published) {
  Begin(published);
  AddAgent(published.agent, published.wall_seconds);
  used += AddCollectable(*process);

  // What matters most takes its room first, for every job, before anything that matters less: the
  // verdicts that alerts are made of, then the GPUs. At most 1,280 verdicts (256 live jobs and the
  // 1,024 that are kept), 16 GPUs with 60 series each and some 250 of the exporter's own make
  // 2,500.
  const std::vector<ShownJob> shown = Shown(published);
  CountGpuJobs(shown);
  shares.Begin(shown, max_series() - std::min(max_series(), used + of_nobody));
  of_nobody = 0;
  const auto ended = std::find_if(shown.begin(), shown.end(),
                                  [](const ShownJob& one) { return one.stage != JobStage::kLive; });
  AddParts(shown, {{&Impl::AddVerdictInfo, JobStage::kFailed}});
  StageGpus(published);
  Settle(Keep::kGpu);
  AddLive(published, {shown.begin(), ended}, {ended, shown.end()});
  AddEnded({ended, shown.end()});
  assert(staged_ids.empty() && "a class of series that nobody settles");
  AddMissing();
  Forget(shown);
  self->SetSeries(used);
  AddCollectable(self->registry());

  auto snapshot = std::make_shared<Snapshot>();
  snapshot->tick = published.tick;
  snapshot->start_wall_seconds = published.agent.start_wall_seconds;
  for (const Missing& one : missing) snapshot->left_out += one.series;
  for (MetricId id = 0; id < series.size(); ++id) {
    if (series[id].empty() && histograms[id].empty()) continue;
    const size_t size = series[id].size();
    snapshot->families.push_back(
        {&kCatalog[id], std::move(series[id]), std::exchange(histograms[id], {})});
    series[id] = {};
    series[id].reserve(size);  // the next tick's is of much the same size
  }
  return snapshot;
}

SnapshotBuilder::SnapshotBuilder(SnapshotOptions options)
    : impl_(std::make_unique<Impl>(std::move(options))) {}

SnapshotBuilder::~SnapshotBuilder() = default;

void SnapshotBuilder::SetMaxSeries(int32_t max_series) {
  impl_->options.max_series = max_series;
}

std::shared_ptr<const Snapshot> SnapshotBuilder::Build(const Published& published) {
  return impl_->Build(published);
}

}  // namespace rankscope::metrics
