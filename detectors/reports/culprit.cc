// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/reports/culprit.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <map>
#include <set>
#include <string_view>
#include <utility>

namespace rankscope::reports {
namespace {

// Numbers of operations; clamped, for they are a stranger's.
constexpr int64_t kMost = int64_t{1} << 48;

int64_t Clamp(int64_t number) {
  return std::min(std::max<int64_t>(number, -1), kMost);
}

bool Waits(const Standing& standing) {
  return standing.enqueued >= 0 && standing.completed < standing.enqueued;
}

int64_t Waiting(const GroupStandings& group) {
  return std::count_if(group.standings.begin(), group.standings.end(), Waits);
}

bool IsIn(std::span<const int32_t> rising, int32_t rank) {
  return std::binary_search(rising.begin(), rising.end(), rank);
}

// What most of the waiting members wait for.
std::string CommonOperation(const GroupStandings& group) {
  std::map<std::string_view, int> votes;
  for (const Standing& standing : group.standings) {
    if (Waits(standing) && !standing.operation.empty()) ++votes[standing.operation];
  }
  const auto best = std::max_element(
      votes.begin(), votes.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return best == votes.end() ? std::string() : std::string(best->first);
}

Culprits Absent(std::span<const GroupStandings> groups, std::span<const int32_t> told) {
  Culprits found;
  std::set<int32_t> ranks;
  for (const GroupStandings& group : groups) {
    const int64_t waiting = Waiting(group);
    if (waiting == 0) continue;
    std::set<int32_t> here;
    for (const Standing& standing : group.standings) {
      if (standing.enqueued >= 0) here.insert(standing.rank);
    }
    std::vector<int32_t> absent;
    for (const int32_t member : group.members) {
      if (here.contains(member)) continue;
      if (IsIn(told, member)) absent.push_back(member);
    }
    // Where most of a group are absent, its name means another group to them.
    if (!IsFew(std::ssize(absent), std::ssize(absent) + std::ssize(here))) continue;
    ranks.insert(absent.begin(), absent.end());
    if (waiting <= found.waiting) continue;
    found.group = group.name;
    found.waiting = waiting;
    found.operation = CommonOperation(group);
  }
  if (ranks.empty()) return {};
  found.by = Culprits::By::kAbsent;
  found.ranks.assign(ranks.begin(), ranks.end());
  return found;
}

// The lower one of two: half a cohort that lags is no exception, and of two ranks one may be.
int64_t LowMedian(std::vector<int64_t> values) {
  const auto middle = values.begin() + static_cast<int64_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

struct Lag {
  int64_t total = 0;
  int64_t worst = 0;  // in one group
  const GroupStandings* group = nullptr;
  int64_t own = -1, furthest = -1;
};

std::map<int32_t, Lag> Lags(std::span<const GroupStandings> groups) {
  std::map<int32_t, Lag> lags;
  for (const GroupStandings& group : groups) {
    int64_t enqueued = -1, completed = -1;
    for (const Standing& standing : group.standings) {
      enqueued = std::max(enqueued, Clamp(standing.enqueued));
      completed = std::max(completed, Clamp(standing.completed));
    }
    for (const Standing& standing : group.standings) {
      const int64_t behind =
          enqueued - Clamp(standing.enqueued) + completed - Clamp(standing.completed);
      Lag& lag = lags[standing.rank];
      lag.total = std::min(lag.total + behind, kMost);
      if (lag.group == nullptr || behind > lag.worst) {
        lag.worst = behind;
        lag.group = &group;
        lag.own = Clamp(standing.enqueued);
        lag.furthest = enqueued;
      }
    }
  }
  return lags;
}

Culprits Laggards(std::span<const GroupStandings> groups) {
  const std::map<int32_t, Lag> lags = Lags(groups);
  if (lags.size() < 2) return {};
  std::vector<int64_t> totals;
  for (const auto& [rank, lag] : lags) totals.push_back(lag.total);
  const int64_t median = LowMedian(totals);
  std::vector<int64_t> deviations;
  for (const int64_t total : totals) deviations.push_back(std::abs(total - median));
  // 3 sigma of the robust kind; where most agree exactly, any lag is one.
  const double allowed = 3 * 1.4826 * static_cast<double>(LowMedian(deviations));
  Culprits found;
  int64_t furthest_behind = 0;
  for (const auto& [rank, lag] : lags) {
    const int64_t above = lag.total - median;
    if (above <= 0 || static_cast<double>(above) <= allowed) continue;
    found.ranks.push_back(rank);
    if (above <= furthest_behind) continue;
    furthest_behind = above;
    found.lag = above;
    found.own = lag.own;
    found.furthest = lag.furthest;
    found.group = lag.group->name;
    found.waiting = Waiting(*lag.group);
    found.operation = CommonOperation(*lag.group);
  }
  if (!IsFew(std::ssize(found.ranks), std::ssize(lags))) return {};
  found.by = Culprits::By::kLag;
  return found;
}

std::vector<int32_t> Silent(std::span<const GroupStandings> groups, std::span<const int32_t> told) {
  std::set<int32_t> silent;
  for (const GroupStandings& group : groups) {
    if (Waiting(group) == 0) continue;
    for (const int32_t member : group.members) {
      if (!IsIn(told, member)) silent.insert(member);
    }
  }
  return {silent.begin(), silent.end()};
}

// Operations whose every member gives the same number of elements. Others (gathers of uneven
// lists, all-to-all, scatter, send) may differ rightly.
bool HasEqualSizes(std::string_view operation) {
  constexpr std::string_view kEqual[] = {
      "all_reduce",           "broadcast",         "reduce", "_all_gather_base",
      "_reduce_scatter_base", "all_reduce_barrier"};
  return std::find(std::begin(kEqual), std::end(kEqual), operation) != std::end(kEqual);
}

using Votes = std::map<std::pair<std::string, std::string>, std::vector<int32_t>>;

// Of those who wait at one place, the ones that wait for something else than most do.
Desync Disagreement(const GroupStandings& group, int64_t sequence, const Votes& votes) {
  size_t all = 0;
  Votes::const_iterator most = votes.begin();
  for (auto it = votes.begin(); it != votes.end(); ++it) {
    all += it->second.size();
    if (it->second.size() > most->second.size()) most = it;
  }
  Desync desync;
  Votes::const_iterator other = votes.end();
  for (auto it = votes.begin(); it != votes.end(); ++it) {
    if (it == most) continue;
    const bool same_operation = it->first.first == most->first.first;
    if (same_operation && !HasEqualSizes(it->first.first)) continue;
    if (other == votes.end()) other = it;
    desync.ranks.insert(desync.ranks.end(), it->second.begin(), it->second.end());
  }
  if (other == votes.end()) return {};
  std::sort(desync.ranks.begin(), desync.ranks.end());
  desync.found = true;
  desync.group = group.name;
  desync.sequence = sequence;
  desync.sizes = other->first.first == most->first.first;
  const auto describe = [](const Votes::const_iterator& vote) {
    return vote->first.first + " " + vote->first.second;
  };
  desync.theirs = describe(other);
  desync.others = describe(most);
  desync.other_ranks = static_cast<int64_t>(all - desync.ranks.size());
  return desync;
}

}  // namespace

Culprits FindCulprits(std::span<const GroupStandings> groups, std::span<const int32_t> told) {
  Culprits found = Absent(groups, told);
  if (found.by == Culprits::By::kNobody) {
    const bool anybody_waits =
        std::any_of(groups.begin(), groups.end(),
                    [](const GroupStandings& group) { return Waiting(group) > 0; });
    if (anybody_waits) found = Laggards(groups);
  }
  found.silent = Silent(groups, told);
  return found;
}

Desync FindDesync(std::span<const GroupStandings> groups) {
  for (const GroupStandings& group : groups) {
    std::map<int64_t, Votes> by_sequence;
    for (const Standing& standing : group.standings) {
      if (standing.pending < 0 || standing.operation.empty()) continue;
      by_sequence[standing.pending][{standing.operation, standing.sizes}].push_back(standing.rank);
    }
    for (const auto& [sequence, votes] : by_sequence) {
      if (votes.size() < 2) continue;
      if (Desync desync = Disagreement(group, sequence, votes); desync.found) return desync;
    }
  }
  return {};
}

}  // namespace rankscope::reports
