// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Follows a recording that another process is writing. The directory is a stranger's: nothing but
// regular files is opened, no link is followed, nothing is waited for, and each call reads a
// bounded number of bytes. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "detectors/model/observation.h"
#include "detectors/recording/recording.h"
#include "exporter/loop/owned_fd.h"

namespace rankscope::replay {

struct FollowerLimits {
  int64_t bytes_per_poll = 4 << 20;
  // A segment that grows beyond this is not a recorder's (whose segments are 8 MiB and one frame)
  // and is left.
  int64_t segment_bytes = 64 << 20;
};

class Follower {
 public:
  // Keeps a duplicate of `directory_fd`. Observations with a sequence number up to `after_seq` are
  // passed over: they were delivered before.
  explicit Follower(int directory_fd, int64_t after_seq = std::numeric_limits<int64_t>::min(),
                    FollowerLimits limits = {});

  // Delivers what has been written since, in order. EngineState is a stranger's state and never
  // delivered. True where there may be more to read at once.
  bool Poll(const std::function<void(const Observation&)>& deliver);

  // Times that segments were gone, or could not be read to their end, before they had been read:
  // observations are missing.
  int64_t gaps() const { return gaps_; }
  const std::string& last_problem() const { return last_problem_; }
  int64_t bytes() const { return bytes_; }
  int64_t last_seq() const { return last_seq_; }

 private:
  struct Segment {
    OwnedFd fd;
    int64_t number = 0;  // 0 = none
  };

  int64_t ReadPiece(int64_t budget, const std::function<void(const Observation&)>& deliver);
  void Deliver(const Observation& observation,
               const std::function<void(const Observation&)>& deliver);
  Segment FindNext() const;
  void Take(Segment next);
  void Leave(const std::string& problem);
  void Gap(std::string problem);

  OwnedFd directory_;
  int64_t after_seq_;
  FollowerLimits limits_;
  Segment segment_;
  int64_t offset_ = 0;
  bool left_ = false;         // nothing more is read from segment_
  bool check_start_ = false;  // the first segment found was not the first written
  recording::Decoder decoder_;
  std::vector<char> piece_;
  int64_t gaps_ = 0;
  int64_t bytes_ = 0;
  int64_t last_seq_ = std::numeric_limits<int64_t>::min();
  std::string last_problem_;
};

}  // namespace rankscope::replay
