// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/probes/stdio/recent_lines.h"

#include <functional>

#include "detectors/logs/text/prefix.h"

namespace rankscope::probes {
namespace {

// Without what launchers put before a line, and blanks at its ends.
std::string_view Bare(std::string_view line) {
  line = logs::StripLauncherPrefixes(line).text;
  while (!line.empty() && (line.front() == ' ' || line.front() == '\t')) line.remove_prefix(1);
  while (!line.empty() && (line.back() == ' ' || line.back() == '\r')) line.remove_suffix(1);
  return line;
}

}  // namespace

void RecentLines::Note(const std::string& job_id, std::string_view line) {
  const std::string_view bare = Bare(line);
  if (bare.empty()) return;
  if (!jobs_.contains(job_id) && jobs_.size() >= kMaxJobs) jobs_.erase(jobs_.begin());
  Job& job = jobs_[job_id];
  if (job.order.size() >= kMost) {
    job.hashes.erase(job.hashes.find(job.order.front()));
    job.order.pop_front();
  }
  const size_t hash = std::hash<std::string_view>()(bare);
  job.order.push_back(hash);
  job.hashes.insert(hash);
}

bool RecentLines::Holds(const std::string& job_id, std::string_view line) const {
  const auto job = jobs_.find(job_id);
  if (job == jobs_.end()) return false;
  const auto known = [&hashes = job->second.hashes](std::string_view text) {
    const std::string_view bare = Bare(text);
    return !bare.empty() && hashes.contains(std::hash<std::string_view>()(bare));
  };
  if (known(line)) return true;
  // Two threads of a launcher may print into each other: "[default0]:step 8 [default1]:step 0 loss
  // 4.0". What ends in a copy with its prefix is none of the launcher's own.
  constexpr int kMostPrefixes = 8;
  size_t at = line.find('[', 1);
  for (int i = 0; i < kMostPrefixes && at != std::string_view::npos; ++i) {
    const std::string_view rest = line.substr(at);
    if (logs::StripLauncherPrefixes(rest).text.size() < rest.size() && known(rest)) return true;
    at = line.find('[', at + 1);
  }
  return false;
}

}  // namespace rankscope::probes
