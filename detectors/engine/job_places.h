// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The node's places for jobs, shared by its users: each may take what is free, and who has the most
// gives one up for a job of another (max-min fairness). Jobs that have ended hold a place only for
// what may still be told of them, and go before any that lives. Root (uid 0) gives up nothing to
// others. Pure; single writer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "detectors/engine/job_view.h"
#include "detectors/model/time.h"

namespace rankscope::engine {

inline constexpr int64_t kNobody = -1;  // owner of a job that nobody has named yet

struct Place {
  std::string_view job_id;
  int64_t uid = kNobody;
  bool final = false;
  Timestamp since;    // of its end, or of its beginning
  size_t weight = 1;  // what it takes of memory, beside others
};

// Which of the places a new job of `uid` takes, all being taken; nullopt: none, it is not watched.
std::optional<size_t> PlaceFor(int64_t uid, std::span<const Place> places, Timestamp now);
// Which place is given up when there are to be fewer: one that has ended, else the heaviest of the
// user whose jobs weigh the most.
std::optional<size_t> PlaceToGiveUp(std::span<const Place> places);
// How many of them are this user's.
size_t PlacesOf(int64_t uid, std::span<const Place> places);

// How many jobs a user may begin: `most` at once, and as many again in a minute. A program that
// starts others with a rank's environment without end would otherwise make a job, and a folder on
// disk, of each.
class BeginLimit {
 public:
  static constexpr size_t kMaxUsers = 1024;  // of more, who has begun nothing for longest is new

  bool Take(int64_t uid, int32_t most, Timestamp now);

 private:
  struct Left {
    double jobs = 0;
    Timestamp t;
  };
  std::map<int64_t, Left> users_;
};

// Jobs that are not watched, each with a document that says why. A stranger who asks for thousands
// has kMaxPerUser of them.
class UnwatchedJobs {
 public:
  static constexpr size_t kMax = 256;  // 2 kB each
  static constexpr size_t kMaxPerUser = 32;
  static constexpr Duration kForget = Seconds(600);  // after it was last heard of

  // nullopt: it is not one of these.
  std::optional<JobView> Find(std::string_view job_id) const;
  bool Contains(std::string_view job_id) const { return jobs_.contains(job_id); }
  // Says that the job is still there.
  void Touch(std::string_view job_id, Timestamp now);
  // Says that its command has ended. False: it is not one of these.
  bool End(std::string_view job_id);
  void Add(int64_t uid, proto::Verdict verdict, Timestamp now);
  void Erase(std::string_view job_id);
  // Forgets those that were not heard of for kForget.
  void Expire(Timestamp now);

  template <class F>
  void ForEach(F f) const {
    for (const auto& [id, job] : jobs_) f(job.View(id));
  }
  size_t size() const { return jobs_.size(); }

 private:
  struct Unwatched {
    int64_t uid = kNobody;
    proto::Verdict verdict;
    Timestamp heard;
    bool running = true;

    JobView View(std::string_view job_id) const { return {job_id, uid, running, false, &verdict}; }
  };
  std::map<std::string, Unwatched, std::less<>> jobs_;
};

// The verdict on a job that is not watched. `why`: a whole sentence.
proto::Verdict UnwatchedVerdict(const std::string& job_id, const std::string& node,
                                const std::string& why, int64_t wall_ns);

}  // namespace rankscope::engine
