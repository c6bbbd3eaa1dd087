// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/daemon/verdict_store.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

#include "detectors/document/verdict_json.h"
#include "exporter/daemon/kept_file.h"

namespace rankscope::exporter {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSuffix = ".pb";
constexpr uintmax_t kMaxFileBytes = 4 << 20;  // a verdict with every bound used is far below

// A verdict under another job's name is not its own.
std::optional<proto::Verdict> ReadVerdict(const fs::path& path, uintmax_t size) {
  if (size > kMaxFileBytes) return std::nullopt;
  std::ifstream stream(path, std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(stream), {});
  const std::optional<std::string_view> message = OpenMessage(bytes);
  proto::Verdict verdict;
  if (!message || !verdict.ParseFromArray(message->data(), static_cast<int>(message->size()))) {
    return std::nullopt;
  }
  if (verdict.job_id().empty() || FileNameOf(verdict.job_id()) != path.stem().string())
    return std::nullopt;
  return verdict;
}

}  // namespace

VerdictStore::VerdictStore(EventLoop& loop, DiskThread& disk,
                           std::function<void(const std::string& job_id)> on_kept)
    : files_(loop, disk,
             {[this](const std::string& job_id) { return Render(job_id); }, std::move(on_kept)}) {}

Status VerdictStore::Open(const std::string& directory, int64_t wall_ns, Duration keep) {
  std::error_code error;
  fs::create_directories(directory, error);
  if (error) {
    return Error{"cannot create " + directory + ": " + error.message() +
                 "; verdicts are kept in memory only; check state.dir"};
  }
  files_.Open(directory);
  std::string named;
  for (fs::directory_iterator file(directory, error), end; !error && file != end;
       file.increment(error)) {
    struct stat info {};
    if (lstat(file->path().c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
    // What a crash left half written.
    if (file->path().extension() == ".new") unlink(file->path().c_str());
    if (file->path().extension() != kSuffix) continue;
    auto verdict = ReadVerdict(file->path(), static_cast<uintmax_t>(info.st_size));
    if (!verdict) {
      ++damaged_;
      named = file->path().string();
      continue;
    }
    JobStatus job;
    job.verdict = *std::move(verdict);
    job.job_id = job.verdict.job_id();
    job.attempt = {job.verdict.attempt().slurm_restart(), job.verdict.attempt().elastic_restart(),
                   job.verdict.attempt().ordinal()};
    job.running = false;
    Entry entry;
    entry.job = std::make_shared<const JobStatus>(std::move(job));
    entry.written_wall_ns =
        static_cast<int64_t>(info.st_mtim.tv_sec) * 1'000'000'000 + info.st_mtim.tv_nsec;
    entries_[entry.job->job_id] = std::move(entry);
  }
  Expire(wall_ns, keep);
  while (entries_.size() > kMaxVerdicts) MakeRoom();
  if (damaged_ == 0) return {};
  return Error{"skipped " + std::to_string(damaged_) + " damaged verdicts, one of them " + named +
               "; remove it"};
}

void VerdictStore::Put(const JobStatus& job, int64_t wall_ns) {
  if (!entries_.contains(job.job_id) && entries_.size() >= kMaxVerdicts) MakeRoom();
  entries_[job.job_id] = {std::make_shared<const JobStatus>(job), wall_ns};
  files_.Changed(job.job_id);
}

std::vector<DocumentFolder::File> VerdictStore::Render(const std::string& job_id) const {
  const std::string name = FileNameOf(job_id);
  const auto found = entries_.find(job_id);
  if (found == entries_.end()) return {{name + ".pb", {}}, {name + ".json", {}}};
  const proto::Verdict& verdict = found->second.job->verdict;
  return {{name + ".pb", SealMessage(verdict.SerializeAsString())},
          {name + ".json", VerdictToJson(verdict) + '\n'}};
}

void VerdictStore::Expire(int64_t wall_ns, Duration keep) {
  std::vector<std::string> old;
  for (const auto& [job_id, entry] : entries_) {
    if (entry.written_wall_ns + keep.ns < wall_ns) old.push_back(job_id);
  }
  for (const std::string& job_id : old) Erase(job_id);
}

// One user's thousand runs cost his own verdicts, and nobody else's.
void VerdictStore::MakeRoom() {
  std::map<std::string_view, size_t> of_user;
  for (const auto& [job_id, entry] : entries_) ++of_user[entry.job->user];
  const auto most =
      std::max_element(of_user.begin(), of_user.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  const auto* oldest = &*entries_.begin();
  bool found = false;
  for (const auto& one : entries_) {
    if (one.second.job->user != most->first) continue;
    if (found && one.second.written_wall_ns >= oldest->second.written_wall_ns) continue;
    oldest = &one;
    found = true;
  }
  Erase(std::string(oldest->first));
}

void VerdictStore::Erase(const std::string& job_id) {
  entries_.erase(job_id);
  files_.Changed(job_id);
}

std::vector<std::shared_ptr<const JobStatus>> VerdictStore::Jobs() const {
  std::vector<std::shared_ptr<const JobStatus>> jobs;
  jobs.reserve(entries_.size());
  for (const auto& [job_id, entry] : entries_) jobs.push_back(entry.job);
  return jobs;
}

std::shared_ptr<const JobStatus> VerdictStore::Find(const std::string& job_id) const {
  const auto found = entries_.find(job_id);
  return found == entries_.end() ? nullptr : found->second.job;
}

}  // namespace rankscope::exporter
