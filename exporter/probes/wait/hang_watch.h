// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Decides when a process that has worked stands still for so long that its threads are worth
// looking at: a few looks per standstill, and the next ones only once it has worked again. Pure;
// loop thread only.
#pragma once

#include <map>
#include <vector>

#include "detectors/model/ids.h"
#include "detectors/model/time.h"
#include "exporter/probes/wait/wait_book.h"

namespace rankscope::probes {

class HangWatch {
 public:
  // A pause of a save or an evaluation on another rank is mostly shorter; a verdict of a hang needs
  // a minute and finds the snapshot there.
  static constexpr Duration kStill = Seconds(20);
  static constexpr Duration kBetween = Seconds(60);
  static constexpr int kMostLooks =
      3;  // per standstill: the second confirms, the third is for who comes late

  // Whether to look at this process now. Called each second for each process.
  bool Due(const ProcessKey& process, const ProcessTimes& times, Timestamp now);
  // Forgets whom nobody has asked for since `before`.
  void Forget(Timestamp before);

 private:
  struct Watch {
    double running_seconds = 0;  // at `seen`
    double silent_seconds = 0;   // the same
    double worked_seconds = 0;   // on CPUs, of the looks at which it had moved
    Timestamp seen;
    Timestamp moved;
    Timestamp looked;
    int looks = 0;
  };
  std::map<ProcessKey, Watch> watches_;
};

}  // namespace rankscope::probes
