// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Looks at the dumps of one rank, on the thread of its user: what has changed since the last look
// and has settled is read and told as events. What it remembers travels with the look. Any thread,
// one look at a time.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "detectors/model/observation.h"
#include "exporter/loop/user_identity.h"
#include "exporter/nccl/dump_file.h"
#include "exporter/nccl/rank_roster.h"

namespace rankscope::collectors {

// What is remembered of a rank from look to look.
struct RankDumps {
  struct Flight {
    FileStamp seen, told;
  };
  struct Log {  // of Inspector
    FileStamp seen;
    int64_t told = 0;  // bytes
  };
  std::map<std::string, Flight> flights;  // by path
  std::map<std::string, Log> logs;
  std::set<std::string> refused;  // paths
  int64_t looks = 0;
  bool sees_our_root = false;     // its absolute paths are ours
  std::optional<bool> roots_own;  // of a process of root: see IsRootsOwn
};

struct DumpLook {
  exporter::UserIdentity who;
  RankProcess process;
  bool gone = false;  // its process has ended
  RankDumps dumps;
  // What comes of it.
  std::vector<Event> events;
  int64_t lost = 0;         // dumps that could not be read
  bool other_user = false;  // the process has changed its ids: nothing was looked at
};

// What one user's looks may read in one round.
struct DumpBudget {
  int64_t bytes = int64_t{64} << 20;
};

void LookAtDumps(const std::string& proc_root, DumpLook& look, DumpBudget& budget);

}  // namespace rankscope::collectors
