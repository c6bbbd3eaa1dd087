// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/engine/job_table.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace rankscope::engine {
namespace {

// Jobs that a user may begin within a minute, however few are watched at once.
constexpr int32_t kLeastBeginnings = 64;

std::string UserText(int64_t uid) {
  return uid == kNobody ? "nobody that is known" : "user " + std::to_string(uid);
}

}  // namespace

JobTable::JobTable(int32_t most, std::string node, std::function<void(const std::string&)> on_leave)
    : configured_(most), most_(most), node_(std::move(node)), on_leave_(std::move(on_leave)) {}

Job* JobTable::Find(std::string_view id) {
  if (found_last_ == jobs_.end() || found_last_->first != id) found_last_ = jobs_.find(id);
  return found_last_ == jobs_.end() ? nullptr : &found_last_->second;
}

Job* JobTable::FindOrAdd(const std::string& id, int64_t uid, Timestamp t, int64_t wall_offset_ns) {
  if (Job* job = Find(id)) return job;
  if (unwatched_.Contains(id)) {
    unwatched_.Touch(id, t);
    on_leave_(id);
    return nullptr;
  }
  const int32_t beginnings = std::max(configured_, kLeastBeginnings);
  if (!begun_.Take(uid, beginnings, t)) {
    Refuse(id, uid,
           "not watched: " + UserText(uid) + " has begun more than " + std::to_string(beginnings) +
               " jobs within a minute",
           t, wall_offset_ns);
    return nullptr;
  }
  if (std::string why; !MakePlace(uid, t, wall_offset_ns, why)) {
    Refuse(id, uid, why, t, wall_offset_ns);
    return nullptr;
  }
  Job& job = jobs_[id];
  job.uid = uid;
  job.window = windows::JobWindow(id, t);
  return &job;
}

bool JobTable::MakePlace(int64_t uid, Timestamp t, int64_t wall_offset_ns, std::string& why) {
  if (jobs_.size() < static_cast<size_t>(most_)) return true;
  const std::vector<Place> places = Places();
  const std::optional<size_t> place = PlaceFor(uid, places, t);
  if (!place) {
    why = WhyNot(uid, places);
    return false;
  }
  GiveUp(places[*place],
         "no longer watched: its place was needed for a job of " + UserText(uid) + "; " +
             UserText(places[*place].uid) + " had " +
             std::to_string(PlacesOf(places[*place].uid, places)) + " of the " +
             std::to_string(most_) + " places",
         t, wall_offset_ns);
  return true;
}

Job* JobTable::Wake(std::string_view id, Timestamp t, int64_t wall_offset_ns) {
  if (Job* job = Find(id)) return job;
  const auto found = resting_.find(id);
  if (found == resting_.end()) return nullptr;
  std::string why;
  if (!MakePlace(found->second.uid, t, wall_offset_ns, why)) return nullptr;
  auto packed = resting_.extract(found);
  resting_bytes_ -= packed.mapped().bytes.size();
  Job& job = jobs_[packed.key()];
  if (!LoadJob(packed.mapped().bytes, job)) {  // cannot be: these bytes never leave memory
    jobs_.erase(packed.key());
    return nullptr;
  }
  job.dirty = false;
  return &job;
}

JobTable::Map::iterator JobTable::Rest(Map::iterator job) {
  found_last_ = jobs_.end();
  Resting& resting = resting_[job->first];
  resting.uid = job->second.uid;
  resting.final_since = job->second.judge.final_since();
  resting.bytes = SaveJob(job->second);
  resting.bytes.shrink_to_fit();
  resting.verdict = job->second.judge.verdict();
  resting_bytes_ += resting.bytes.size();
  const auto next = jobs_.erase(job);
  while (resting_bytes_ > kMaxRestingBytes) ForgetOneResting();
  return next;
}

// Of the user whose jobs take the most, the one that ended first.
void JobTable::ForgetOneResting() {
  std::map<int64_t, size_t> bytes;
  for (const auto& [id, job] : resting_) bytes[job.uid] += job.bytes.size();
  const auto largest = std::max_element(
      bytes.begin(), bytes.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  auto first = resting_.end();
  for (auto it = resting_.begin(); it != resting_.end(); ++it) {
    if (it->second.uid != largest->first) continue;
    if (first == resting_.end() || it->second.final_since < first->second.final_since) first = it;
  }
  const std::string id = first->first;
  resting_bytes_ -= first->second.bytes.size();
  resting_.erase(first);
  ended_.push_back(id);
  on_leave_(id);
}

void JobTable::ForgetResting(Timestamp before) {
  for (auto it = resting_.begin(); it != resting_.end();) {
    if (it->second.final_since > before) {
      ++it;
      continue;
    }
    resting_bytes_ -= it->second.bytes.size();
    ended_.push_back(it->first);
    on_leave_(it->first);
    it = resting_.erase(it);
  }
}

std::optional<JobView> JobTable::FindStored(std::string_view id) const {
  const auto found = resting_.find(id);
  if (found == resting_.end()) return unwatched_.Find(id);
  return found->second.View(found->first);
}

std::vector<std::pair<std::string, std::string>> JobTable::SaveAll() {
  std::vector<std::pair<std::string, std::string>> saved;
  for (auto& [id, job] : jobs_) saved.emplace_back(id, SaveJob(job));
  for (const auto& [id, job] : resting_) saved.emplace_back(id, job.bytes);
  return saved;
}

JobTable::Map::iterator JobTable::Erase(Map::iterator job) {
  found_last_ = jobs_.end();
  const std::string id = job->first;
  const auto next = jobs_.erase(job);
  on_leave_(id);
  return next;
}

void JobTable::EndUnwatched(const std::string& id) {
  if (unwatched_.End(id)) written_.push_back(id);
}

void JobTable::SetMost(int32_t most, std::string why) {
  most_ = std::clamp(most, 1, configured_);
  why_fewer_ = most_ < configured_ ? std::move(why) : std::string();
}

void JobTable::Tick(Timestamp now, int64_t wall_offset_ns) {
  unwatched_.Expire(now);
  if (most_ < configured_ && !resting_.empty()) ForgetOneResting();
  while (jobs_.size() > static_cast<size_t>(most_)) {
    const std::vector<Place> places = Places();
    const std::optional<size_t> place = PlaceToGiveUp(places);
    if (!place) return;
    GiveUp(places[*place], "no longer watched: " + why_fewer_, now, wall_offset_ns);
  }
}

std::vector<Place> JobTable::Places() const {
  std::vector<Place> places;
  places.reserve(jobs_.size());
  for (const auto& [id, job] : jobs_) {
    const bool final = job.judge.is_final();
    // A rank's history is some 10 kB, a job without any some dozen.
    places.push_back({id, job.uid, final, final ? job.judge.final_since() : job.window.begin(),
                      1 + job.window.ranks().size() + job.window.streams().size() / 4});
  }
  return places;
}

std::string JobTable::WhyNot(int64_t uid, const std::vector<Place>& places) const {
  std::string why = "not watched: " + UserText(uid) + " has " +
                    std::to_string(PlacesOf(uid, places)) + " of the " + std::to_string(most_) +
                    " places for jobs on this node, and no other user has more";
  return why + (why_fewer_.empty() ? " (state.max_jobs)" : "; " + why_fewer_);
}

void JobTable::Refuse(const std::string& id, int64_t uid, const std::string& why, Timestamp t,
                      int64_t wall_offset_ns) {
  ++dropped_;
  unwatched_.Add(uid, UnwatchedVerdict(id, node_, why, t.ns + wall_offset_ns), t);
  written_.push_back(id);
  on_leave_(id);
}

void JobTable::GiveUp(const Place& place, const std::string& why, Timestamp t,
                      int64_t wall_offset_ns) {
  const std::string id(place.job_id);
  const auto leaving = jobs_.find(id);
  if (place.final) {
    ended_.push_back(id);
  } else {
    shed_.push_back(id);
    ++dropped_;
    unwatched_.Add(place.uid, UnwatchedVerdict(id, node_, why, t.ns + wall_offset_ns), t);
    written_.push_back(id);
  }
  Erase(leaving);
}

}  // namespace rankscope::engine
