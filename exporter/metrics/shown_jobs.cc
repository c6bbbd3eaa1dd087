// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/metrics/shown_jobs.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "exporter/metrics/snapshot.h"

namespace rankscope::metrics {
namespace {

// Seconds since the verdict of a finished job last changed; nothing for a job that may still go on.
std::optional<double> SecondsAfterEnd(const JobStatus& job, double wall_seconds) {
  if (job.running || job.verdict.state() != proto::FINAL || job.verdict.updated_ns() == 0) {
    return std::nullopt;
  }
  return wall_seconds - static_cast<double>(job.verdict.updated_ns()) * 1e-9;
}

// Nothing: it is not shown any more.
std::optional<JobStage> StageOf(const JobStatus& job, double wall_seconds) {
  const std::optional<double> age = SecondsAfterEnd(job, wall_seconds);
  if (!age) return JobStage::kLive;
  if (*age <= kRankSeriesAfterEndSeconds) return JobStage::kJustEnded;
  if (*age <= kJobSeriesAfterEndSeconds) return JobStage::kEnded;
  if (*age <= kFailureSeriesAfterEndSeconds && IsFailure(job.verdict)) return JobStage::kFailed;
  return std::nullopt;
}

}  // namespace

bool IsFailure(const proto::Verdict& verdict) {
  return verdict.triage().severity() == "critical" || verdict.triage().severity() == "warning";
}

std::vector<ShownJob> Shown(const Published& published) {
  // Of a thousand jobs most have ended long ago and are kept for /verdict only.
  std::map<std::string_view, ShownJob> by_id;
  for (const auto& job : published.jobs) {
    const std::optional<JobStage> stage = StageOf(*job, published.wall_seconds);
    if (!job->watched || !stage) continue;
    ShownJob& kept = by_id[job->job_id];
    if (kept.job == nullptr || job->running || !kept.job->running) kept = {job.get(), *stage};
  }
  std::vector<ShownJob> shown;
  shown.reserve(by_id.size());
  for (const auto& [id, one] : by_id) shown.push_back(one);
  std::stable_partition(shown.begin(), shown.end(),
                        [](const ShownJob& one) { return one.stage == JobStage::kLive; });
  return shown;
}

void SeriesShares::Begin(std::span<const ShownJob> shown, size_t room) {
  std::map<int64_t, User> next;
  for (const ShownJob& one : shown) next.try_emplace(one.job->uid);
  std::vector<size_t> wanted;
  for (auto& [uid, user] : next) {
    if (const auto before = users_.find(uid); before != users_.end())
      user.wanted_before = before->second.wanted;
    wanted.push_back(user.wanted_before);
  }
  users_ = std::move(next);
  // Who wants least is served first; what he leaves is shared by the others.
  std::sort(wanted.begin(), wanted.end());
  share_ = SIZE_MAX;
  if (wanted.size() < 2) return;
  for (size_t i = 0; i < wanted.size(); ++i) {
    const size_t even = room / (wanted.size() - i);
    if (wanted[i] > even) {
      share_ = even;
      return;
    }
    room -= wanted[i];
  }
}

bool SeriesShares::Take(int64_t uid, size_t count) {
  User& user = users_[uid];
  user.wanted += count;
  if (count > share_ || user.used > share_ - count) return false;
  user.used += count;
  return true;
}

bool StoreSpoke(const JobStatus& job, proto::Store store) {
  const auto any_rank = [&](auto has) {
    return std::any_of(job.ranks.begin(), job.ranks.end(), has);
  };
  if (store == proto::STORE_LOG && !job.logs.empty()) return true;
  if (store == proto::STORE_PROCESS && !job.ranks.empty()) return true;
  if (store == proto::STORE_GPU && any_rank([](const RankStatus& r) {
        return !std::isnan(r.signals[SignalId::kRankEngineActivity]);
      })) {
    return true;
  }
  if (store == proto::STORE_NCCL && any_rank([](const RankStatus& r) {
        return !std::isnan(r.signals[SignalId::kCollectivesCompleted]);
      })) {
    return true;
  }
  const auto any_call = [&](SignalId signal) {
    return any_rank([signal](const RankStatus& r) { return !std::isnan(r.signals[signal]); });
  };
  if (store == proto::STORE_NCCL && any_call(SignalId::kCollectivesEnqueued)) return true;
  if (store == proto::STORE_CUDA && any_call(SignalId::kKernelLaunches)) return true;
  return std::any_of(job.verdict.shows().begin(), job.verdict.shows().end(),
                     [&](const proto::Evidence& evidence) { return evidence.store() == store; });
}

}  // namespace rankscope::metrics
