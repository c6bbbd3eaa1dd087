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

// Judges one file, a log or a dump of PyTorch's Flight Recorder, as all that is known of a job. "-"
// is standard input. `exit_code` as the job's shell would see it. An error says why the file cannot
// be read.
Result<proto::Verdict> JudgeLog(const std::string& file, std::optional<int> exit_code);

struct JobJudgement {
  proto::Verdict verdict;
  std::string unreadable;  // files that could not be read, and why; empty = all could
};

// Judges the files as the logs and the Flight Recorders' dumps of one job's ranks, the logs in the
// order of the times that their lines print where they do, else side by side. Whose a file is comes
// from its name and place (log_file_names.h). An error where none can be read.
Result<JobJudgement> JudgeJobLogs(std::span<const std::string> files, std::optional<int> exit_code);

// Directories become the regular files below them; files stay. Sorted so that rank 2 comes before
// rank 10.
Result<std::vector<std::string>> LogFilesOf(std::span<const std::string> files_and_directories);

}  // namespace rankscope::replay
