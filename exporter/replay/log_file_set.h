// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The logs of one job's ranks: which can be read, whose each is, and how they lie in time. Looks at
// the beginning and the end of each file only. Blocks on files; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "exporter/replay/log_file_names.h"

namespace rankscope::replay {

struct JobLog {
  std::string file;
  LogName name;         // what the file's own lines contradict is left out
  bool timed = false;   // its lines print times that can be compared with the other files'
  int32_t year = 2000;  // for printed dates without one
};

struct JobLogSet {
  std::vector<JobLog> logs;             // in the order in which they are to be read
  std::vector<std::string> unreadable;  // "FILE: why"
  std::vector<std::string> notes;       // what was left out, and how sure the order is
  int32_t ranks = 0;                    // different ones that the files' names and places say
};

JobLogSet ArrangeLogs(std::span<const std::string> files);

}  // namespace rankscope::replay
