// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The folder of one run: log (the command's bytes, nothing else), run.json, recording/,
// verdict.json, verdict.txt. Made and on disk before the command starts. Main thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "detectors/model/result.h"
#include "exporter/loop/owned_fd.h"

namespace rankscope::run {

// What run.json says: enough to tell whose log this is when nothing else survives.
struct RunHeader {
  std::string job_id;
  std::vector<std::string> argv;  // masked
  std::string cwd;
  std::string host;
  std::string tool_version;
  int32_t wrapper_pid = 0;
  int64_t started_wall_ns = 0;
};

struct RunDirectory {
  std::string path;  // absolute
  OwnedFd directory;
  OwnedFd log;  // append only, readable, mode 0600
};

// Makes `wanted` (absolute or below the working directory), with its parents. When a run lives
// there already, takes `wanted`.2, .3 ... instead: nothing of an earlier attempt or of another task
// is touched, and no job is refused for it.
//
// Durable: run.json and the directories that were made are fsynced, so that after a power loss the
// header, and with it the run's name, command and start, is readable; the log itself is there,
// empty. The log's bytes are as durable as any program's output to a file: they survive the death
// of every process, and a power loss up to the kernel's write-back.
Result<RunDirectory> CreateRunDirectory(const std::string& wanted, const RunHeader& header);

// The run's folder, or another one where that cannot be made: below the user's state folder
// ($XDG_STATE_HOME, $HOME), then a new one below $TMPDIR, /tmp or /dev/shm. Nothing that fails here
// keeps the command from running.
struct RunPlace {
  RunDirectory run;  // without descriptors: there is none
  std::string note;  // what could not be done, and what was done instead; empty: all as wanted
};
RunPlace FindRunPlace(const std::string& wanted, const RunHeader& header, char* const* environment);
// The same, of a run whose own folder takes no more; the note begins with `problem`.
RunPlace FindOtherPlace(const std::string& problem, const RunHeader& header,
                        char* const* environment);

// Replaces a small file as a whole; readers see the old or the new one.
Status ReplaceFile(const RunDirectory& run, const std::string& name, std::string_view content);

}  // namespace rankscope::run
