// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "bench/scoreboard_real.h"

#include <algorithm>
#include <fstream>
#include <sstream>

namespace rankscope::bench {
namespace {

std::vector<std::string> Split(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, at);) parts.push_back(part);
  return parts;
}

std::vector<RealRun> ReadTable(const std::string& table, const std::string& folder,
                               const std::string& below) {
  std::ifstream file(table);
  std::string line;
  if (!std::getline(file, line)) return {};
  const auto head = Split(line, '\t');
  const auto column = [&head](const char* name) {
    return static_cast<size_t>(std::find(head.begin(), head.end(), name) - head.begin());
  };
  const size_t of_file = column("file"), of_family = column("family");
  const size_t of_accepted = column("acceptable");
  std::vector<RealRun> runs;
  while (std::getline(file, line)) {
    const auto cells = Split(line, '\t');
    if (cells.size() <= std::max({of_file, of_family, of_accepted})) continue;
    RealRun run;
    run.path = folder + cells[of_file] + below;
    run.truth.accepted = Split(cells[of_accepted], ',');
    run.truth.family = cells[of_family];
    // "other": what the label's list of families does not name.
    if (run.truth.family == "other" && !run.truth.accepted.empty())
      run.truth.family = run.truth.accepted.front();
    run.truth.healthy = run.truth.family == "G1";
    runs.push_back(std::move(run));
  }
  return runs;
}

}  // namespace

std::vector<RealRun> LabelledLogs(const std::string& folder) {
  return ReadTable(folder + "/labels.tsv", folder + "/logs/", "");
}

std::vector<RealRun> GoldenRuns(const std::string& source_dir) {
  return ReadTable(source_dir + "/bench/golden_runs.tsv",
                   source_dir + "/tests/fixtures/recordings/", "/recording");
}

}  // namespace rankscope::bench
