// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What a run keeps of the files that its command has written: artifacts.tar.gz in the run's
// directory, the newest files first, as many as its budget holds, and artifacts.txt, which lists
// them and, with the reason, what was left out. The command has made the files and their names:
// they are opened without following a link or waiting for anybody, in a process of its own that has
// a deadline. Main thread, after the command.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "detectors/model/result.h"
#include "detectors/model/time.h"

namespace rankscope::run {

struct ArtifactOptions {
  // As a shell's, below the command's working directory; ** is any number of folders.
  std::vector<std::string> patterns;
  int64_t budget = 10 << 20;  // bytes of the archive
  Duration deadline = Seconds(10);
};

struct Artifacts {
  std::string archive;  // path; empty: nothing was kept
  // "out/model.log, 1234 bytes"; of those that were left out, with ": why".
  std::vector<std::string> kept, left;
  std::string complaint;  // why there is no list; empty: there is one
};

// `folder`: of the run, open; `path`: its name. Does not throw, and takes no longer than the
// deadline and a moment.
Artifacts CollectArtifacts(const ArtifactOptions& options, const std::string& cwd, int folder,
                           const std::string& path);

}  // namespace rankscope::run
