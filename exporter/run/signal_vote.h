// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Decides which signals the wrapper passes on. One sent to the wrapper's pid alone must reach the
// command; one sent to the whole process group, terminal or Slurm step has reached it already, and
// a second SIGTERM makes launchers break off their clean-up. Nobody can ask the kernel how a signal
// was addressed, so a process of ours beside the command (the guardian) votes: what it received too
// went to everybody. Pure; main thread.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "detectors/model/time.h"

namespace rankscope::run {

class SignalVote {
 public:
  // A sender that walks a list of processes (slurmstepd, killall) reaches them all within this.
  static constexpr Duration kSettle = Milliseconds(50);
  // How long a vote is remembered for a signal of ours that comes later than the guardian's.
  static constexpr Duration kMemory = Milliseconds(500);

  // This process received `signo`.
  void Received(int signo, Timestamp now);
  // The guardian did.
  void GuardianReceived(int signo, Timestamp now);

  // When the next decision is due; nullopt: nothing waits.
  std::optional<Timestamp> next_due() const;
  // The signals that waited long enough, with no vote against: to be passed on, in order of
  // arrival.
  std::vector<int> TakeDue(Timestamp now);

 private:
  struct Entry {
    int signo = 0;
    Timestamp t;
  };
  std::vector<Entry> waiting_;
  std::vector<Entry> votes_;
};

}  // namespace rankscope::run
