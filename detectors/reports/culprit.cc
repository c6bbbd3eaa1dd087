// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/reports/culprit.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
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

// The lower one of two: half a cohort is no exception, and of two ranks one may be.
int64_t LowMedian(std::vector<int64_t> values) {
  const auto middle = values.begin() + static_cast<int64_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// How far a member has come, in the numbers of most members.
struct Place {
  const Standing* standing = nullptr;
  int64_t enqueued = -1;
  int64_t need = -1;  // the operation that it waits for; -1 = it waits for none
};

std::vector<Place> Places(const GroupStandings& group) {
  std::vector<int64_t> completed, enqueued;
  for (const Standing& standing : group.standings) {
    if (standing.enqueued < 0) continue;
    completed.push_back(Clamp(standing.completed));
    enqueued.push_back(Clamp(standing.enqueued));
  }
  std::vector<Place> places;
  if (completed.empty()) return places;
  const int64_t usual = LowMedian(completed);
  const int64_t usual_enqueued = LowMedian(enqueued);
  const bool told = *std::max_element(completed.begin(), completed.end()) >= 0;
  for (const Standing& standing : group.standings) {
    if (standing.enqueued < 0) continue;
    Place place{&standing, Clamp(standing.enqueued), -1};
    const int64_t own = Clamp(standing.completed);
    if (Waits(standing)) {
      const bool known = standing.pending > own && standing.pending <= place.enqueued;
      place.need = known ? standing.pending : told ? own + 1 : place.enqueued;
    }
    const bool fewer = told && place.enqueued < usual;
    const bool more = told && own > usual_enqueued && Waits(standing);
    if (fewer || more) {
      place.enqueued += usual - own;
      if (place.need >= 0) place.need += usual - own;
    }
    places.push_back(place);
  }
  return places;
}

// Members that wait, and those that they wait for.
struct Hold {
  const GroupStandings* group = nullptr;
  Culprits::By by = Culprits::By::kNobody;
  std::vector<int32_t> waiting, blockers;  // rising
  int64_t sequence = -1;
};

void AddHold(Hold hold, size_t of, std::vector<Hold>& holds) {
  // Where most are missing, the group's name means another group to them.
  if (hold.waiting.empty() || !IsFew(std::ssize(hold.blockers), static_cast<int64_t>(of))) return;
  std::sort(hold.waiting.begin(), hold.waiting.end());
  std::sort(hold.blockers.begin(), hold.blockers.end());
  holds.push_back(std::move(hold));
}

// The newest operation that anybody waits for: what is older waits only for members further behind.
int64_t NewestNeed(const std::vector<Place>& places) {
  int64_t newest = -1;
  for (const Place& place : places) newest = std::max(newest, place.need);
  return newest;
}

void FindHolds(const GroupStandings& group, std::span<const int32_t> told,
               std::vector<Hold>& holds) {
  const std::vector<Place> places = Places(group);
  const int64_t newest = NewestNeed(places);
  if (newest < 0) return;
  Hold absent{&group, Culprits::By::kAbsent, {}, {}, newest};
  Hold behind{&group, Culprits::By::kLag, {}, {}, newest};
  Hold unstarted{&group, Culprits::By::kNotStarted, {}, {}, newest};
  std::set<int32_t> here;
  for (const Place& place : places) here.insert(place.standing->rank);
  for (const int32_t member : group.members) {
    if (!here.contains(member) && IsIn(told, member)) absent.blockers.push_back(member);
  }
  for (const Place& place : places) {
    const int32_t rank = place.standing->rank;
    if (place.need >= 0) absent.waiting.push_back(rank);
    if (place.need >= 0 && place.enqueued >= newest) behind.waiting.push_back(rank);
    if (place.enqueued < newest) behind.blockers.push_back(rank);
    if (place.need == newest && place.standing->state == "started")
      unstarted.waiting.push_back(rank);
    if (place.need == newest && place.standing->state == "scheduled")
      unstarted.blockers.push_back(rank);
  }
  const size_t members = places.size() + absent.blockers.size();
  const size_t queued = unstarted.waiting.size() + unstarted.blockers.size();
  AddHold(std::move(absent), members, holds);
  AddHold(std::move(behind), places.size(), holds);
  AddHold(std::move(unstarted), queued, holds);
}

// A rank that receives waits for the one that sends.
void FindPeers(const GroupStandings& group, std::vector<Hold>& holds) {
  for (const Standing& standing : group.standings) {
    if (standing.peers.empty()) continue;
    Hold hold{&group, Culprits::By::kPeer, {standing.rank}, standing.peers, -1};
    std::sort(hold.blockers.begin(), hold.blockers.end());
    holds.push_back(std::move(hold));
  }
}

void Describe(const Hold& hold, int32_t rank, Culprits& found) {
  found.by = hold.by;
  found.group = hold.group->name;
  found.sequence = hold.sequence;
  found.waiting = hold.by == Culprits::By::kPeer ? std::ssize(hold.waiting) : Waiting(*hold.group);
  found.operation = CommonOperation(*hold.group);
  if (hold.by != Culprits::By::kLag) return;
  for (const Standing& standing : hold.group->standings) {
    found.furthest = std::max(found.furthest, Clamp(standing.enqueued));
    if (standing.rank == rank) found.own = Clamp(standing.enqueued);
  }
  found.lag = found.furthest - found.own;
}

class Graph {
 public:
  explicit Graph(std::vector<Hold> holds) : holds_(std::move(holds)) {
    for (const Hold& hold : holds_) waits_.insert(hold.waiting.begin(), hold.waiting.end());
  }
  // In a group whose members all stand at one operation each of them waits, for whatever it is;
  // one whose GPU has not started it is what they wait for.
  void AddWaiting(const GroupStandings& group) {
    for (const Place& place : Places(group)) {
      // What a GPU that stands has queued elsewhere waits behind what it has not started.
      const bool behind = IsUnstarted(place.standing->rank) && place.standing->state != "started";
      if (place.need >= 0 && !behind) waits_.insert(place.standing->rank);
    }
  }

  // Ranks that hold others up and wait for nobody, by how many they hold up.
  std::map<int32_t, int64_t> Roots(std::span<const int32_t> told) const {
    std::map<int32_t, int64_t> roots;
    for (const Hold& hold : holds_) {
      for (const int32_t rank : hold.blockers) {
        if (!waits_.contains(rank) && IsIn(told, rank)) roots.try_emplace(rank, 0);
      }
    }
    for (auto& [rank, held] : roots) held = Held(rank);
    return roots;
  }

  // Where it shows most that the rank holds others up.
  const Hold* Strongest(int32_t rank) const {
    const Hold* best = nullptr;
    for (const Hold& hold : holds_) {
      if (!IsIn(hold.blockers, rank)) continue;
      if (best == nullptr || Weight(hold, rank) > Weight(*best, rank)) best = &hold;
    }
    return best;
  }

 private:
  bool IsUnstarted(int32_t rank) const {
    return std::any_of(holds_.begin(), holds_.end(), [rank](const Hold& hold) {
      return hold.by == Culprits::By::kNotStarted && IsIn(hold.blockers, rank);
    });
  }
  static std::tuple<bool, int64_t, size_t> Weight(const Hold& hold, int32_t rank) {
    Culprits lag;
    Describe(hold, rank, lag);
    return {hold.by != Culprits::By::kPeer, lag.lag, hold.waiting.size()};
  }
  int64_t Held(int32_t root) const {
    std::set<int32_t> held = {root};
    for (bool grew = true; grew;) {
      grew = false;
      for (const Hold& hold : holds_) {
        const bool holds = std::any_of(hold.blockers.begin(), hold.blockers.end(),
                                       [&held](int32_t rank) { return held.contains(rank); });
        if (!holds) continue;
        const size_t before = held.size();
        held.insert(hold.waiting.begin(), hold.waiting.end());
        grew = grew || held.size() > before;
      }
    }
    return std::ssize(held) - 1;
  }

  std::vector<Hold> holds_;
  std::set<int32_t> waits_;
};

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
  std::vector<Hold> holds;
  for (const GroupStandings& group : groups) {
    FindHolds(group, told, holds);
    FindPeers(group, holds);
  }
  Graph graph(std::move(holds));
  for (const GroupStandings& group : groups) graph.AddWaiting(group);
  const std::map<int32_t, int64_t> roots = graph.Roots(told);
  Culprits found;
  for (const auto& [rank, held] : roots) found.held = std::max(found.held, held);
  // Whoever holds up fewer is another, smaller matter.
  for (const auto& [rank, held] : roots) {
    if (held == found.held) found.ranks.push_back(rank);
  }
  if (!found.ranks.empty()) {
    const Hold* strongest = nullptr;
    int32_t whose = -1;
    for (const int32_t rank : found.ranks) {
      const Hold* hold = graph.Strongest(rank);
      if (strongest == nullptr || hold->waiting.size() > strongest->waiting.size()) {
        strongest = hold;
        whose = rank;
      }
    }
    Describe(*strongest, whose, found);
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
