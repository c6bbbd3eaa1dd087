// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/daemon/memory_budget.h"

#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>

namespace rankscope::exporter {
namespace {

// cgroup v1 writes PAGE_COUNTER_MAX where there is no limit (mm/page_counter.c), v2 "max".
constexpr int64_t kNoLimit = int64_t{1} << 60;

std::string ReadText(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::optional<int64_t> ReadNumber(const std::string& path) {
  const std::string text = ReadText(path);
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc::result_out_of_range) return kNoLimit;
  if (error != std::errc()) return std::nullopt;
  return number;
}

// The number behind `key` in a file of "key number" lines.
int64_t ValueOf(const std::string& text, const std::string& key) {
  std::istringstream lines(text);
  std::string word;
  for (int64_t number = 0; lines >> word >> number;) {
    if (word == key) return number;
  }
  return 0;
}

struct Hierarchy {
  std::string folder;  // of the daemon's own cgroup
  bool v1 = false;
};

// /proc/self/cgroup: "4:memory:/path" of v1, "0::/path" of v2.
Hierarchy FindHierarchy(const std::string& proc_self, const std::string& cgroups) {
  std::istringstream lines(ReadText(proc_self + "/cgroup"));
  Hierarchy found;
  for (std::string line; std::getline(lines, line);) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = ',' + line.substr(first + 1, second - first - 1) + ',';
    const std::string path = line.substr(second + 1);
    if (controllers.find(",memory,") != std::string::npos)
      return {cgroups + "/memory" + path, true};
    if (controllers == ",,") found = {cgroups + path, false};
  }
  return found;
}

}  // namespace

MemoryBudget::MemoryBudget(Options options) : options_(std::move(options)) {
  limit_ = options_.configured;
  if (limit_ > 0) return;
  const Hierarchy own = FindHierarchy(options_.proc_self, options_.cgroups);
  const std::string root = options_.cgroups + (own.v1 ? "/memory" : "");
  for (std::string folder = own.folder; folder.size() > root.size();
       folder.erase(folder.rfind('/'))) {
    const auto limit = ReadNumber(folder + (own.v1 ? "/memory.limit_in_bytes" : "/memory.max"));
    if (!limit || *limit <= 0 || *limit >= kNoLimit || (limit_ > 0 && *limit >= limit_)) continue;
    limit_ = *limit;
    usage_file_ = folder + (own.v1 ? "/memory.usage_in_bytes" : "/memory.current");
    stat_file_ = folder + "/memory.stat";
    cache_key_ = own.v1 ? "total_cache" : "file";
  }
  if (limit_ == 0) limit_ = options_.otherwise;
}

void MemoryBudget::Measure() {
  if (!usage_file_.empty()) {
    const int64_t cached = ValueOf(ReadText(stat_file_), cache_key_);
    used_ = std::max<int64_t>(0, ReadNumber(usage_file_).value_or(0) - cached);
    return;
  }
  // Pages: size, resident, shared with files.
  std::istringstream statm(ReadText(options_.proc_self + "/statm"));
  int64_t size = 0, resident = 0, shared = 0;
  statm >> size >> resident >> shared;
  used_ = (resident - shared) * sysconf(_SC_PAGESIZE);
}

size_t MemoryBudget::JobsAllowed(size_t jobs, size_t most) {
  if (limit_ == 0) return most;
  Measure();
  if (high()) {
    malloc_trim(0);  // what is free in the heap is nobody's
    Measure();
  }
  if (high()) {
    allowed_ = std::max<size_t>(1, jobs - std::min(jobs, jobs / 8 + 1));
  } else if (allowed_ > 0) {
    allowed_ = std::max(allowed_, jobs) + 4;
  }
  if (allowed_ >= most) allowed_ = 0;
  return allowed_ == 0 ? most : allowed_;
}

std::string MemoryBudget::Words() const {
  constexpr int64_t kMiB = int64_t{1} << 20;
  return std::to_string(used_ / kMiB) + " of " + std::to_string(limit_ / kMiB) +
         " MiB of memory are in use";
}

}  // namespace rankscope::exporter
