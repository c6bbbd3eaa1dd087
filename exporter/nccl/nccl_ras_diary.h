// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Which of a job's RAS reports are worth an observation: a healthy job says the same every half
// minute for weeks, and a recording keeps facts for good. Told are the first report, every report
// with trouble that lasts (somebody dead, missing or failed; counts that differ and have not moved
// since the report before, which then is told as well), the first without it, and the first that
// lists other processes as the job's ranks than were told. That ranks differ
// while their counts move is how collectives are. One per job; the worker's thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "detectors/model/time.h"
#include "detectors/reports/ras_roster.h"

namespace rankscope::collectors {

class NcclRasDiary {
 public:
  // An observation's text: RAS prints 3 kB of a job in trouble; JSON of 64 ranks has 24 kB.
  static constexpr size_t kMaxTold = 32 * 1024;
  // A job's facts have 8 MiB in its recording.
  static constexpr size_t kMaxToldBytes = size_t{2} << 20;
  // Of a trouble that stays as it is: so many reports, then one in ten minutes.
  static constexpr int kToldAtOnce = 4;
  static constexpr Duration kToldApart = Seconds(10);
  static constexpr Duration kToldAgain = Seconds(600);
  // For its ranks alone: a job that is restarted without end has others each time.
  static constexpr int kMaxRosters = 16;

  struct Entry {
    Timestamp t;
    std::string text;
  };

  // The reports to tell now, oldest first; none, one or two.
  std::vector<Entry> Add(Timestamp t, std::string_view text);
  int64_t untold() const { return untold_; }  // past the budget

 private:
  struct Ledger {  // furthest count per communicator and operation, of those that differ
    std::map<std::string, int64_t> furthest;
    bool hard = false;
    reports::RasRoster roster;
  };
  static Ledger Sum(const reports::RasReport& report);
  bool Take(std::vector<Entry>& told, Timestamp t, std::string_view text);

  bool any_ = false;
  bool in_trouble_ = false;
  int told_of_it_ = 0;
  Timestamp last_told_;
  Ledger before_;
  reports::RasRoster roster_;  // that was told last
  int rosters_ = 0;
  Entry held_;  // the newest report that was not told; empty = it was
  size_t bytes_ = 0;
  int64_t untold_ = 0;
};

}  // namespace rankscope::collectors
