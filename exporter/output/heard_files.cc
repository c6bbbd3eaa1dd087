// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/output/heard_files.h"

#include <algorithm>

namespace rankscope::collectors {
namespace {

// Streams of wrappers have numbers below those of all others.
constexpr uint32_t kWrappersEnd = 1 << 16;

}  // namespace

void HeardFiles::Note(const LogLine& line, Timestamp t) {
  if (line.file.inode == 0) {
    if (line.stream >= kWrappersEnd && unplaced_.size() < kMaxUnplaced)
      unplaced_.insert(line.job_id);
    return;
  }
  const OutputFileId id{line.file.device, line.file.inode};
  const auto [found, is_new] = files_.try_emplace({line.job_id, id});
  HeardFile& file = found->second;
  file.job_id = line.job_id;
  file.id = id;
  file.stream = line.stream;
  if (file.ends.size() >= kMaxStreams && !file.ends.contains(line.stream)) file.ends.clear();
  if (line.file.end < file.ends[line.stream]) {  // cut short: another text
    file.end = 0;
    file.ends.clear();
  }
  file.ends[line.stream] = line.file.end;
  file.end = std::max(file.end, line.file.end);
  file.ranked = file.ranked || line.rank >= 0;
  file.last = t;
  if (!is_new || files_.size() <= kMaxFiles) return;
  const auto oldest =
      std::min_element(files_.begin(), files_.end(),
                       [](const auto& a, const auto& b) { return a.second.last < b.second.last; });
  if (unplaced_.size() < kMaxUnplaced) unplaced_.insert(oldest->second.job_id);
  files_.erase(oldest);
}

void HeardFiles::ForgetJob(const std::string& job_id) {
  std::erase_if(files_, [&](const auto& entry) { return entry.first.first == job_id; });
  unplaced_.erase(job_id);
}

const HeardFile* HeardFiles::Find(const OutputFileId& id) const {
  const HeardFile* newest = nullptr;
  for (const auto& [key, file] : files_) {
    if (key.second == id && (newest == nullptr || newest->last < file.last)) newest = &file;
  }
  return newest;
}

std::vector<HeardFile> HeardFiles::All() const {
  std::vector<HeardFile> all;
  for (const auto& [key, file] : files_) all.push_back(file);
  return all;
}

std::set<std::string> HeardFiles::Jobs() const {
  std::set<std::string> jobs = unplaced_;
  for (const auto& [key, file] : files_) jobs.insert(key.first);
  return jobs;
}

}  // namespace rankscope::collectors
