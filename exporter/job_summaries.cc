// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/job_summaries.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <utility>
#include <vector>

#include "exporter/verdict_store.h"

namespace rankscope::exporter {
namespace {

namespace fs = std::filesystem;

int64_t EndOf(std::string_view line) {
  const std::optional<JobSummary> summary = ReadJobSummary(line);
  return summary ? summary->end_wall_seconds : 0;
}

// At most what a line may have.
std::string ReadLine(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  std::string text(JobSummary::kMostBytes, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(std::max<std::streamsize>(0, stream.gcount())));
  return text;
}

}  // namespace

Status JobSummaries::Open(const std::string& directory) {
  std::error_code error;
  fs::create_directories(directory, error);
  if (error) {
    return Error{"cannot create " + directory + ": " + error.message() +
                 "; what is left of jobs lives in memory only; check state.dir"};
  }
  directory_ = directory;
  std::string damaged;
  Lines lines = *lines_;
  for (fs::directory_iterator file(directory, error), end; !error && file != end;
       file.increment(error)) {
    struct stat info {};
    if (lstat(file->path().c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
    const std::string text = ReadLine(file->path());
    const std::optional<JobSummary> summary = ReadJobSummary(text);
    if (!summary || FileNameOf(summary->job_id) != file->path().filename().string()) {
      // What a crash left half written goes.
      if (file->path().extension() == ".new") {
        unlink(file->path().c_str());
      } else {
        damaged = file->path().string();
      }
      continue;
    }
    lines[summary->job_id] = FindJobSummary(text);
  }
  MakeRoom(lines);
  lines_ = std::make_shared<const Lines>(std::move(lines));
  if (!damaged.empty())
    return Error{"skipped what is no job's summary: " + damaged + "; remove it"};
  return {};
}

Status JobSummaries::Put(const JobSummary& summary) {
  if (summary.job_id.empty() || summary.job_id.size() > JobSummary::kMostWordBytes) return {};
  JobSummary next = summary;
  if (const std::optional<JobSummary> before = ReadJobSummary(Find(summary.job_id)))
    next = GoOn(*before, std::move(next));
  std::string line = JobSummaryToText(next);
  if (line == Find(summary.job_id)) return {};
  // Copied, for readers may hold the old ones: a job ends once in a while, and 4 MiB take 1 ms.
  Lines lines = *lines_;
  lines[summary.job_id] = line;
  MakeRoom(lines);
  const bool kept = lines.contains(summary.job_id);  // it may have ended before all others
  lines_ = std::make_shared<const Lines>(std::move(lines));
  if (directory_.empty() || !kept) return {};
  return ReplaceFile(directory_ + '/' + FileNameOf(summary.job_id), line + '\n');
}

std::string_view JobSummaries::Find(std::string_view job_id) const {
  return LineOfJob(*lines_, job_id);
}

void JobSummaries::MakeRoom(Lines& lines) {
  if (lines.size() <= most_) return;
  // Some at once, so that not all lines are read again with each job.
  const size_t excess = lines.size() - most_ + most_ / 64;
  std::vector<std::pair<int64_t, std::string>> oldest;
  oldest.reserve(lines.size());
  for (const auto& [job_id, line] : lines) oldest.emplace_back(EndOf(line), job_id);
  std::sort(oldest.begin(), oldest.end());
  oldest.resize(std::min(excess, oldest.size()));
  for (const auto& [end, job_id] : oldest) {
    lines.erase(job_id);
    if (!directory_.empty()) unlink((directory_ + '/' + FileNameOf(job_id)).c_str());
  }
}

}  // namespace rankscope::exporter
