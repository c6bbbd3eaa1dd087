// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/daemon/job_summaries.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <utility>
#include <vector>

#include "exporter/daemon/kept_file.h"

namespace rankscope::exporter {
namespace {

namespace fs = std::filesystem;

int64_t EndOf(std::string_view line) {
  const std::optional<JobSummary> summary = ReadJobSummary(line);
  return summary ? summary->end_wall_seconds : 0;
}

// At most what a line and its seal may have.
std::string ReadFile(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  std::string text(JobSummary::kMostBytes + 64, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(std::max<std::streamsize>(0, stream.gcount())));
  return text;
}

}  // namespace

JobSummaries::JobSummaries(EventLoop& loop, DiskThread& disk, size_t most)
    : most_(most),
      files_(loop, disk, {[this](const std::string& job_id) { return Render(job_id); }}) {}

Status JobSummaries::Open(const std::string& directory) {
  std::error_code error;
  fs::create_directories(directory, error);
  if (error) {
    return Error{"cannot create " + directory + ": " + error.message() +
                 "; job summaries are kept in memory only; check state.dir"};
  }
  files_.Open(directory);
  std::string named;
  Lines lines = *lines_;
  for (fs::directory_iterator file(directory, error), end; !error && file != end;
       file.increment(error)) {
    struct stat info {};
    if (lstat(file->path().c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
    const std::string text = ReadFile(file->path());
    const std::optional<std::string_view> line = OpenLine(text);
    const std::optional<JobSummary> summary = line ? ReadJobSummary(*line) : std::nullopt;
    if (!summary || FileNameOf(summary->job_id) != file->path().filename().string()) {
      // What a crash left half written goes.
      if (file->path().extension() == ".new") {
        unlink(file->path().c_str());
      } else {
        ++damaged_;
        named = file->path().string();
      }
      continue;
    }
    lines[summary->job_id] = FindJobSummary(*line);
  }
  const std::vector<std::string> gone = MakeRoom(lines);
  lines_ = std::make_shared<const Lines>(std::move(lines));
  for (const std::string& job_id : gone) files_.Changed(job_id);
  if (damaged_ == 0) return {};
  return Error{"skipped " + std::to_string(damaged_) + " damaged job summaries, one of them " +
               named + "; remove it"};
}

void JobSummaries::Put(const JobSummary& summary) {
  if (summary.job_id.empty() || summary.job_id.size() > JobSummary::kMostWordBytes) return;
  JobSummary next = summary;
  if (const std::optional<JobSummary> before = ReadJobSummary(Find(summary.job_id)))
    next = GoOn(*before, std::move(next));
  std::string line = JobSummaryToText(next);
  if (line == Find(summary.job_id)) return;
  // Copied, for readers may hold the old ones: a job ends once in a while, and 4 MiB take 1 ms.
  Lines lines = *lines_;
  lines[summary.job_id] = line;
  const std::vector<std::string> gone = MakeRoom(lines);
  lines_ = std::make_shared<const Lines>(std::move(lines));
  for (const std::string& job_id : gone) files_.Changed(job_id);
  files_.Changed(summary.job_id);
}

std::vector<DocumentFolder::File> JobSummaries::Render(const std::string& job_id) const {
  const auto found = lines_->find(job_id);
  if (found == lines_->end()) return {{FileNameOf(job_id), {}}};
  return {{FileNameOf(job_id), SealLine(found->second)}};
}

std::string_view JobSummaries::Find(std::string_view job_id) const {
  return LineOfJob(*lines_, job_id);
}

// Takes those that ended first out of `lines`, and says who they were.
std::vector<std::string> JobSummaries::MakeRoom(Lines& lines) const {
  if (lines.size() <= most_) return {};
  // Some at once, so that not all lines are read again with each job.
  const size_t excess = lines.size() - most_ + most_ / 64;
  std::vector<std::pair<int64_t, std::string>> oldest;
  oldest.reserve(lines.size());
  for (const auto& [job_id, line] : lines) oldest.emplace_back(EndOf(line), job_id);
  std::sort(oldest.begin(), oldest.end());
  oldest.resize(std::min(excess, oldest.size()));
  std::vector<std::string> gone;
  for (const auto& [end, job_id] : oldest) {
    lines.erase(job_id);
    gone.push_back(job_id);
  }
  return gone;
}

}  // namespace rankscope::exporter
