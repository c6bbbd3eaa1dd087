// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Real runs with a label: rows beside those of generated jobs.
#pragma once

#include <string>
#include <vector>

#include "tests/generator/plan.h"

namespace rankscope::bench {

struct RealRun {
  std::string path;  // of a log or of a folder with a recording
  generator::Truth truth;
};

// FOLDER/labels.tsv with the columns file, family and acceptable, and FOLDER/logs/; empty where it
// is not there.
std::vector<RealRun> LabelledLogs(const std::string& folder);

// The recordings below tests/fixtures/recordings, labelled by bench/golden_runs.tsv.
std::vector<RealRun> GoldenRuns(const std::string& source_dir);

}  // namespace rankscope::bench
