// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Another program's output, within a deadline and a size. Blocks; a worker's thread. The program
// has a process group of its own, so that what it starts ends with it, no input, and of the
// environment only what is given here.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "detectors/model/time.h"

namespace rankscope::exporter {

struct CommandLine {
  std::vector<std::string> argv;         // the first is a path, not a name to be looked for
  std::vector<std::string> environment;  // besides PATH and LC_ALL=C.UTF-8
  Duration deadline = Seconds(10);
  size_t most = size_t{64} << 20;  // bytes of output; more is an error, not a part
  size_t expects = 0;              // bytes; a longer output has to be moved as it grows
};

struct CommandOutcome {
  enum class End { kDone, kFailed, kLate, kTooLong, kNotStarted };
  End end = End::kNotStarted;
  std::string output;     // whole where it is done or has failed
  std::string complaint;  // the last of what it says on standard error, or why it did not start
  int exit_code = -1;     // 128 + signal where one ended it
  Duration took;
};

CommandOutcome RunCommand(const CommandLine& command);

// The first of `folders` that has an executable of this name, with its path; empty: none.
std::string FindProgram(std::string_view name, const std::vector<std::string>& folders);

}  // namespace rankscope::exporter
