// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// A log file judged without the run that wrote it: its lines, perhaps an exit code, and nothing
// else; there is no clock. Blocks on files; any thread.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "detectors/model/result.h"
#include "detectors/proto/verdict.pb.h"

namespace rankscope::replay {

// Judges the files as the streams of one job, in order. "-" is standard input. `exit_code` as the
// job's shell would see it. An error says which file cannot be read, and why.
Result<proto::Verdict> JudgeLogs(std::span<const std::string> files, std::optional<int> exit_code);

// Directories become the regular files below them; files stay. Sorted so that rank 2 comes before
// rank 10.
Result<std::vector<std::string>> LogFilesOf(std::span<const std::string> files_and_directories);

}  // namespace rankscope::replay
