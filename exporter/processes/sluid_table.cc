// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/processes/sluid_table.h"

#include <dirent.h>
#include <unistd.h>

#include <charconv>
#include <memory>
#include <utility>
#include <vector>

#include "detectors/attribution/cgroup_path.h"
#include "detectors/model/ascii.h"
#include "exporter/loop/small_file.h"
#include "exporter/processes/proc_text.h"

namespace rankscope::collectors {
namespace {

constexpr int kMaxSteps = 64;     // of a job on this node, looked at
constexpr int kMaxProcesses = 8;  // of a step's daemon; it has one

std::vector<std::string> StepsIn(const std::string& directory) {
  std::vector<std::string> steps;
  const std::unique_ptr<DIR, int (*)(DIR*)> open_directory(opendir(directory.c_str()), closedir);
  if (!open_directory) return steps;
  while (const dirent* entry = readdir(open_directory.get())) {
    const std::string_view name = entry->d_name;
    if (name.starts_with("step_")) steps.emplace_back(name);
    if (steps.size() == kMaxSteps) break;
  }
  return steps;
}

}  // namespace

std::string JobOfTitle(std::string_view title) {
  constexpr std::string_view kBegin = "slurmstepd: [";
  if (!title.starts_with(kBegin)) return {};
  title.remove_prefix(kBegin.size());
  const size_t end = title.find_first_not_of("0123456789");
  if (end == std::string_view::npos || (title[end] != '.' && title[end] != '+')) return {};
  if (title.find(']', end) == std::string_view::npos) return {};
  const std::string_view number = title.substr(0, end);
  uint32_t id = 0;
  const auto [last, error] = std::from_chars(number.data(), number.data() + number.size(), id);
  if (error != std::errc() || last != number.data() + number.size() || id == 0) return {};
  return std::to_string(id);
}

SluidTable::SluidTable(std::string proc_root, std::string cgroup_root,
                       std::chrono::milliseconds retry)
    : proc_root_(std::move(proc_root)), cgroup_root_(std::move(cgroup_root)), retry_(retry) {}

std::string SluidTable::WithJobId(std::string_view cgroup) {
  std::string_view rest = cgroup;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    // "0::/path" of the one hierarchy of v2, or the path alone.
    const std::string_view path = line.starts_with("0::") ? line.substr(3) : line;
    if (!path.starts_with('/')) continue;
    const std::string_view directory = attribution::SluidDirectory(path);
    if (directory.empty()) continue;
    const std::string job = JobOf(directory);
    return job.empty() ? std::string(cgroup) : attribution::NameSluid(cgroup, directory, job);
  }
  return std::string(cgroup);
}

std::string SluidTable::JobOf(std::string_view directory) {
  const std::lock_guard lock(mutex_);
  if (const auto known = jobs_.find(directory); known != jobs_.end()) return known->second;
  const auto now = std::chrono::steady_clock::now();
  if (unnamed_.directory == directory && now < unnamed_.retry) return {};
  std::string job = ReadJobOf(directory);
  if (job.empty()) {
    unnamed_ = {std::string(directory), now + retry_};
    return job;
  }
  // A SLUID is never given twice; what is forgotten is read again.
  if (jobs_.size() >= kMaxJobs) jobs_.clear();
  jobs_.emplace(directory, job);
  return job;
}

std::string SluidTable::ReadJobOf(std::string_view directory) const {
  const std::string base = cgroup_root_ + std::string(directory);
  for (const std::string& step : StepsIn(base)) {
    const std::string processes = ReadSmallFile(base + '/' + step + "/slurm/cgroup.procs");
    std::string_view rest = processes;
    for (int looked = 0; looked < kMaxProcesses && !rest.empty(); ++looked) {
      const std::string_view pid = rest.substr(0, rest.find('\n'));
      rest.remove_prefix(std::min(pid.size() + 1, rest.size()));
      if (!IsDigits(pid)) continue;
      const std::string process = proc_root_ + '/' + std::string(pid);
      const auto status = ParseStatus(ReadSmallFile(process + "/status"));
      if (!status || status->uid != 0 || ReadSmallFile(process + "/comm") != "slurmstepd\n")
        continue;
      if (std::string job = JobOfTitle(ReadSmallFile(process + "/cmdline")); !job.empty())
        return job;
    }
  }
  return {};
}

}  // namespace rankscope::collectors
