// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/engine/job_places.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace rankscope::engine {
namespace {

// Slurm's last word comes some seconds after the end of a job, accounting's within a minute. After
// that an ended job's place is anybody's.
constexpr Duration kLastWord = Seconds(60);

std::map<int64_t, size_t> CountByUser(std::span<const Place> places) {
  std::map<int64_t, size_t> counts;
  for (const Place& place : places) ++counts[place.uid];
  return counts;
}

// Of the places that `wanted` takes, the one that ended first; else the one that began last, where
// live ones are to be had.
template <class Wanted>
std::optional<size_t> FirstToGo(std::span<const Place> places, bool live, Wanted wanted) {
  std::optional<size_t> ended, newest;
  for (size_t i = 0; i < places.size(); ++i) {
    if (!wanted(places[i])) continue;
    if (places[i].final && (!ended || places[i].since < places[*ended].since)) ended = i;
    if (!places[i].final && (!newest || places[i].since >= places[*newest].since)) newest = i;
  }
  return ended || !live ? ended : newest;
}

}  // namespace

std::optional<size_t> PlaceFor(int64_t uid, std::span<const Place> places, Timestamp now) {
  std::map<int64_t, size_t> counts = CountByUser(places);
  int64_t largest = uid;
  size_t most = counts[uid] + 1;
  for (const auto& [user, count] : counts) {
    if (user == 0 || user == uid || count <= most) continue;
    largest = user;
    most = count;
  }
  const auto of_largest = [largest](const Place& place) { return place.uid == largest; };
  if (const auto found = FirstToGo(places, largest != uid, of_largest)) return found;
  return FirstToGo(places, false,
                   [now](const Place& place) { return now - place.since >= kLastWord; });
}

std::optional<size_t> PlaceToGiveUp(std::span<const Place> places) {
  const auto anybody = [](const Place&) { return true; };
  if (const auto ended = FirstToGo(places, false, anybody)) return ended;
  std::map<int64_t, size_t> weights;
  for (const Place& place : places) weights[place.uid] += place.weight;
  int64_t largest = 0;
  size_t most = 0;
  for (const auto& [user, weight] : weights) {
    if (user == 0 || weight <= most) continue;
    largest = user;
    most = weight;
  }
  std::optional<size_t> heaviest;
  for (size_t i = 0; i < places.size(); ++i) {
    if (places[i].uid != largest) continue;
    const auto order = [&](size_t n) { return std::pair(places[n].weight, places[n].since); };
    if (!heaviest || order(i) >= order(*heaviest)) heaviest = i;
  }
  return heaviest;
}

size_t PlacesOf(int64_t uid, std::span<const Place> places) {
  return static_cast<size_t>(std::count_if(places.begin(), places.end(),
                                           [uid](const Place& place) { return place.uid == uid; }));
}

bool BeginLimit::Take(int64_t uid, int32_t most, Timestamp now) {
  if (uid == 0) return true;
  if (!users_.contains(uid) && users_.size() >= kMaxUsers) {
    users_.erase(std::min_element(users_.begin(), users_.end(), [](const auto& a, const auto& b) {
      return a.second.t < b.second.t;
    }));
  }
  const auto [found, fresh] = users_.try_emplace(uid, Left{static_cast<double>(most), now});
  Left& left = found->second;
  if (now > left.t) {
    left.jobs = std::min<double>(most, left.jobs + (now - left.t).seconds() * most / 60);
    left.t = now;
  }
  if (left.jobs < 1) return false;
  left.jobs -= 1;
  return true;
}

std::optional<JobView> UnwatchedJobs::Find(std::string_view job_id) const {
  const auto found = jobs_.find(job_id);
  if (found == jobs_.end()) return std::nullopt;
  return found->second.View(found->first);
}

bool UnwatchedJobs::End(std::string_view job_id) {
  const auto found = jobs_.find(job_id);
  if (found == jobs_.end()) return false;
  found->second.running = false;
  found->second.verdict.mutable_triage()->set_running(false);
  return true;
}

void UnwatchedJobs::Touch(std::string_view job_id, Timestamp now) {
  if (const auto found = jobs_.find(job_id); found != jobs_.end()) found->second.heard = now;
}

void UnwatchedJobs::Add(int64_t uid, proto::Verdict verdict, Timestamp now) {
  std::map<int64_t, size_t> counts;
  for (const auto& [id, job] : jobs_) ++counts[job.uid];
  int64_t leaver = uid;
  if (counts[leaver] < kMaxPerUser && jobs_.size() >= kMax) {
    leaver = std::max_element(counts.begin(), counts.end(), [](const auto& a, const auto& b) {
               return a.second < b.second;
             })->first;
  }
  if (counts[leaver] >= kMaxPerUser || jobs_.size() >= kMax) {
    auto oldest = jobs_.end();
    for (auto it = jobs_.begin(); it != jobs_.end(); ++it) {
      if (it->second.uid != leaver) continue;
      if (oldest == jobs_.end() || it->second.heard < oldest->second.heard) oldest = it;
    }
    if (oldest != jobs_.end()) jobs_.erase(oldest);
  }
  const std::string id = verdict.job_id();
  jobs_.insert_or_assign(id, Unwatched{uid, std::move(verdict), now});
}

void UnwatchedJobs::Erase(std::string_view job_id) {
  if (const auto found = jobs_.find(job_id); found != jobs_.end()) jobs_.erase(found);
}

void UnwatchedJobs::Expire(Timestamp now) {
  std::erase_if(jobs_, [now](const auto& entry) { return now - entry.second.heard >= kForget; });
}

proto::Verdict UnwatchedVerdict(const std::string& job_id, const std::string& node,
                                const std::string& why, int64_t wall_ns) {
  proto::Verdict verdict;
  verdict.set_job_id(job_id);
  verdict.set_state(proto::LIVE);
  verdict.set_node(node);
  verdict.set_code("U0");
  verdict.set_family("undetermined");
  verdict.mutable_attempt()->set_ordinal(1);
  verdict.mutable_triage()->set_severity("info");
  verdict.mutable_triage()->set_running(true);
  verdict.set_updated_ns(wall_ns);
  verdict.add_cannot_decide()->set_question(why);
  verdict.mutable_data_quality()->add_notes(why);
  return verdict;
}

}  // namespace rankscope::engine
