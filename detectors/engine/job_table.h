// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The jobs that the engine watches, by id, within the places that there are (see job_places.h), and
// those that it does not. A job that has been final for a while rests: its state is packed into
// bytes, and holds no place; the scheduler's late word, or its next attempt, wakes it. Single
// writer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "detectors/engine/engine_job.h"
#include "detectors/engine/job_places.h"

namespace rankscope::engine {

class JobTable {
 public:
  using Map = std::map<std::string, Job, std::less<>>;

  // `on_leave` hears of every job that is no longer watched, or was not taken.
  JobTable(int32_t most, std::string node, std::function<void(const std::string&)> on_leave);

  // Resting bytes of all, beyond which those that ended first are forgotten. A job's are some ten
  // to a hundred kB.
  static constexpr size_t kMaxRestingBytes = 16 << 20;

  Job* Find(std::string_view id);  // that does not rest
  // The same, and one that rests if there is a place for it.
  Job* Wake(std::string_view id, Timestamp t, int64_t wall_offset_ns);
  Map::iterator Rest(Map::iterator job);
  bool Rests(std::string_view id) const { return resting_.contains(id); }
  // Those that ended before.
  void ForgetResting(Timestamp before);
  // Null: there is no place for another job of this user; what is served of it says so.
  Job* FindOrAdd(const std::string& id, int64_t uid, Timestamp t, int64_t wall_offset_ns);
  Map::iterator Erase(Map::iterator job);
  // A job of this id has begun: that one of it was not watched is past.
  void BeginAnew(const std::string& id) { unwatched_.Erase(id); }
  void EndUnwatched(const std::string& id);

  // See Engine::SetMaxJobs.
  void SetMost(int32_t most, std::string why);
  // What is done once per tick: jobs that are too many leave, documents of long ago are forgotten.
  void Tick(Timestamp now, int64_t wall_offset_ns);

  int32_t most() const { return most_; }
  const std::string& why_fewer() const { return why_fewer_; }
  Map& all() { return jobs_; }
  // Of jobs that rest or are not watched.
  template <class F>
  void ForEachStored(F f) const {
    for (const auto& [id, job] : resting_) f(job.View(id));
    unwatched_.ForEach(f);
  }
  size_t CountStored() const { return resting_.size() + unwatched_.size(); }
  std::optional<JobView> FindStored(std::string_view id) const;
  // The state of each job, by id, as SaveJob writes it.
  std::vector<std::pair<std::string, std::string>> SaveAll();
  int64_t dropped() const { return dropped_; }
  void set_dropped(int64_t dropped) { dropped_ = dropped; }
  // Since the last call: those that left although they lived, and after their end.
  std::vector<std::string> TakeShed() { return std::exchange(shed_, {}); }
  std::vector<std::string> TakeEnded() { return std::exchange(ended_, {}); }
  // Whose verdict was written here: it is not watched, and why.
  std::vector<std::string> TakeWritten() { return std::exchange(written_, {}); }

 private:
  struct Resting {
    int64_t uid = kNobody;
    Timestamp final_since;
    std::string bytes;
    proto::Verdict verdict;

    JobView View(std::string_view id) const { return {id, uid, false, true, &verdict}; }
  };

  // Whether a job of this user may come: there is a place, or one was given up for it. `why`: not.
  bool MakePlace(int64_t uid, Timestamp t, int64_t wall_offset_ns, std::string& why);
  void ForgetOneResting();
  std::vector<Place> Places() const;
  std::string WhyNot(int64_t uid, const std::vector<Place>& places) const;
  void Refuse(const std::string& id, int64_t uid, const std::string& why, Timestamp t,
              int64_t wall_offset_ns);
  void GiveUp(const Place& place, const std::string& why, Timestamp t, int64_t wall_offset_ns);

  int32_t configured_;
  int32_t most_;
  std::string why_fewer_;  // than configured; empty = there are as many
  std::string node_;
  std::function<void(const std::string&)> on_leave_;
  Map jobs_;
  Map::iterator found_last_ = jobs_.end();  // lines come by the thousand for one job
  std::map<std::string, Resting, std::less<>> resting_;
  size_t resting_bytes_ = 0;
  UnwatchedJobs unwatched_;
  BeginLimit begun_;
  std::vector<std::string> shed_;
  std::vector<std::string> ended_;
  std::vector<std::string> written_;
  int64_t dropped_ = 0;
};

}  // namespace rankscope::engine
