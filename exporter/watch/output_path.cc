// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/watch/output_path.h"

#include <algorithm>
#include <climits>
#include <cstddef>

#include "detectors/model/ascii.h"

namespace rankscope::watch {
namespace {

using exporter::slurm::SlurmJob;

// What stands for a letter; nullptr-like: `known` false.
struct Part {
  std::string text;
  bool number = false;  // it can be padded: %4j
  bool known = true;
};

Part PartOf(char letter, const SlurmJob& job) {
  const std::string& task = job.array_task;
  switch (letter) {
    case 'A':
      return {job.array_job_id.empty() ? job.job_id : job.array_job_id, true};
    case 'a':
      return {IsDigits(task) && !task.empty() ? task : "4294967294", true};
    case 'b':
      return {task.empty() ? "0" : task.substr(task.size() - 1), true};
    case 'J':
    case 'j':
      return {job.job_id, true};
    case 'N':
      return {job.batch_host.substr(0, job.batch_host.find('.'))};
    case 'n':
    case 't':
      return {"0", true};
    case 's':
      return {"batch"};
    case 'u':
      return {job.user};
    case 'x':
      return {job.name};
    default:
      return {{}, false, false};
  }
}

}  // namespace

std::string ExpandPattern(std::string_view pattern, const SlurmJob& job,
                          std::string_view not_known) {
  constexpr size_t kMaxWidth = 10;  // sbatch(1)
  std::string out;
  for (size_t i = 0; i < pattern.size() && out.size() < PATH_MAX; ++i) {
    if (pattern[i] != '%') {
      out += pattern[i];
      continue;
    }
    size_t at = i + 1, width = 0;
    while (at < pattern.size() && pattern[at] >= '0' && pattern[at] <= '9')
      width = std::min<size_t>(kMaxWidth, width * 10 + static_cast<size_t>(pattern[at++] - '0'));
    if (at < pattern.size() && pattern[at] == '%' && at == i + 1) {
      out += '%';
      i = at;
      continue;
    }
    const bool known = at < pattern.size() && not_known.find(pattern[at]) == std::string_view::npos;
    const Part part = known ? PartOf(pattern[at], job) : Part{{}, false, false};
    if (!part.known) {
      out += '%';
      continue;
    }
    if (part.number && part.text.size() < width) out.append(width - part.text.size(), '0');
    out += part.text;
    i = at;
  }
  return out;
}

std::vector<std::string> OutputPaths(std::string_view printed, const SlurmJob& job) {
  if (printed.empty()) return {};
  const auto absolute = [&job](std::string path) {
    if (path.starts_with('/') || job.work_dir.empty()) return path;
    return job.work_dir + '/' + path;
  };
  std::vector<std::string> paths = {absolute(std::string(printed))};
  const auto add = [&](std::string path) {
    if (std::find(paths.begin(), paths.end(), path) == paths.end())
      paths.push_back(std::move(path));
  };
  if (printed.find('\\') != std::string_view::npos) {
    std::string plain = paths.front();
    std::erase(plain, '\\');
    add(std::move(plain));
  } else {
    add(ExpandPattern(paths.front(), job));
    add(ExpandPattern(paths.front(), job, "b"));
  }
  std::erase_if(paths, [](const std::string& path) {
    return !path.starts_with('/') || path.size() >= PATH_MAX;
  });
  return paths;
}

}  // namespace rankscope::watch
