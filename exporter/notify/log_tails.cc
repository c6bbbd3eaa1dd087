// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/notify/log_tails.h"

#include <algorithm>

namespace rankscope::exporter::notify {

void LogTails::Note(const LogLine& line) {
  if (line.job_id.empty() || line.text.empty()) return;
  auto job = jobs_.find(line.job_id);
  const std::pair<ProcessKey, uint32_t> key{line.writer, line.stream};
  const bool known = job != jobs_.end() && job->second.contains(key);
  if (!known && writers_ >= kMostWriters) return;
  if (job == jobs_.end()) job = jobs_.emplace(line.job_id, Tails()).first;
  Tail& tail = job->second[key];
  writers_ += known ? 0 : 1;
  tail.lines[tail.count++ % kLines].assign(line.text.substr(0, kLineBytes));
  tail.last = ++lines_;
  tail.rank = line.rank;
  tail.writer = line.writer;
}

LogTail LogTails::Lines(const Tail& tail, std::string of) {
  LogTail out;
  out.of = std::move(of);
  const size_t first = tail.count > kLines ? tail.count - kLines : 0;
  for (size_t i = first; i < tail.count; ++i) out.lines.push_back(tail.lines[i % kLines]);
  return out;
}

LogTail LogTails::Of(const JobStatus& job) const {
  const auto found = jobs_.find(job.job_id);
  if (found == jobs_.end()) return {};
  const int32_t culprit = job.verdict.ranks().empty() ? -1 : job.verdict.ranks(0);
  ProcessKey process;
  for (const RankStatus& rank : job.ranks) {
    if (rank.rank == culprit && culprit >= 0) process = rank.process;
  }
  const Tail* newest = nullptr;
  const Tail* own = nullptr;
  for (const auto& [key, tail] : found->second) {
    const bool his =
        culprit >= 0 && (tail.rank == culprit || (process.pid > 0 && tail.writer == process));
    if (his && (own == nullptr || own->last < tail.last)) own = &tail;
    if (newest == nullptr || newest->last < tail.last) newest = &tail;
  }
  if (own != nullptr) return Lines(*own, "rank " + std::to_string(culprit));
  return newest == nullptr ? LogTail{} : Lines(*newest, "the job's output");
}

void LogTails::Forget(std::string_view job_id) {
  const auto found = jobs_.find(job_id);
  if (found == jobs_.end()) return;
  writers_ -= found->second.size();
  jobs_.erase(found);
}

}  // namespace rankscope::exporter::notify
