// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Ranks that the kernel reports before anybody has told of their launcher. A wrapper's recording
// and the kernel's events come by different ways, so a rank may be seen some milliseconds before
// the command that started it; judged at once it would become a job of its own. What concerns such
// a process waits here, in order, until its launcher is known or nobody claims it. A user whose
// processes crowd the room sends his own on early, and nobody else's. Loop thread only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <set>

#include "detectors/model/observation.h"

namespace rankscope::exporter {

class WaitingRoom {
 public:
  // A scan of /proc and a wrapper's wake-up both come within a second.
  static constexpr Duration kPatience = Seconds(2);
  // 8,192 observations of about 1 kB; past this those of the user with the most go on as they are.
  static constexpr size_t kCapacity = 8192;
  // A node's ranks and what their workers tell within kPatience.
  static constexpr size_t kMaxPerUser = 2048;

  // `known`: whether a process belongs to a job. `next` takes what need not wait, or has waited.
  WaitingRoom(std::function<bool(const ProcessKey&)> known,
              std::function<void(const Observation&)> next);

  void Accept(const Observation& observation, Timestamp now);
  // Lets those go who have waited long enough.
  void Release(Timestamp now);

  size_t waiting() const { return queue_.size(); }

 private:
  struct Guest {
    Observation observation;
    Timestamp until;
    uint32_t uid = 0;
  };

  bool MustWait(const Observation& observation) const;
  // A parent of guests that is nobody's: only they, let go first, can name its job.
  bool IsStrange(const Observation& observation) const;
  void Admit(Guest guest);
  std::deque<Guest> TakeAll();
  void Retry(Timestamp now);
  void ReleaseUser(uint32_t uid);

  std::function<bool(const ProcessKey&)> known_;
  std::function<void(const Observation&)> next_;
  std::deque<Guest> queue_;
  std::map<ProcessKey, uint32_t> processes_;  // those that wait, and whose they are
  std::set<ProcessKey> awaited_;              // parents of these
  std::map<uint32_t, size_t> counts_;         // of queue_, by user
};

}  // namespace rankscope::exporter
