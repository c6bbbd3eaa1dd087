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
  const std::string_view bare = Bare(line);
  const auto job = jobs_.find(job_id);
  return !bare.empty() && job != jobs_.end() &&
         job->second.hashes.contains(std::hash<std::string_view>()(bare));
}

}  // namespace rankscope::probes
