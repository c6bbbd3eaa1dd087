// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Ranks that the kernel reports before anybody has told of their launcher. A wrapper's recording
// and the kernel's events come by different ways, so a rank may be seen some milliseconds before
// the command that started it; judged at once it would become a job of its own. What concerns such
// a process waits here, in order, until its launcher is known or nobody claims it. Loop thread
// only.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <set>

#include "detectors/model/observation.h"

namespace rankscope::exporter {

class WaitingRoom {
 public:
  // A scan of /proc and a wrapper's wake-up both come within a second.
  static constexpr Duration kPatience = Seconds(2);
  // 8,192 observations of about 1 kB; past this everybody goes on as they are.
  static constexpr size_t kCapacity = 8192;

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
  };

  bool MustWait(const Observation& observation) const;
  void Retry(Timestamp now);

  std::function<bool(const ProcessKey&)> known_;
  std::function<void(const Observation&)> next_;
  std::deque<Guest> queue_;
  std::set<ProcessKey> processes_;  // those that wait
};

}  // namespace rankscope::exporter
