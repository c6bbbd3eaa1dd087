// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/verdict_store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include "detectors/verdict_json.h"

namespace rankscope::exporter {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSuffix = ".pb";
constexpr uintmax_t kMaxFileBytes = 4 << 20;  // a verdict with every bound used is far below

Error FileError(const std::string& what, const std::string& path) {
  return Error{what + " " + path + ": " + std::strerror(errno) +
               "; check state.dir, its permissions and free space"};
}

}  // namespace

std::string FileNameOf(std::string_view job_id) {
  std::string name;
  for (const char c : job_id) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '_' || (c == '.' && !name.empty());
    if (plain) {
      name += c;
    } else {
      constexpr char kHex[] = "0123456789ABCDEF";
      const auto byte = static_cast<unsigned char>(c);
      name += {'%', kHex[byte >> 4], kHex[byte & 15]};
    }
  }
  return name.substr(0, 200);
}

Status ReplaceFile(const std::string& path, std::string_view content) {
  const std::string next = path + ".new";
  const int fd = open(next.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return FileError("cannot create", next);
  size_t done = 0;
  while (done < content.size()) {
    const ssize_t n = write(fd, content.data() + done, content.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    done += static_cast<size_t>(n);
  }
  const bool written = done == content.size() && fsync(fd) == 0;
  const Error failure = FileError("cannot write", next);
  close(fd);
  if (!written) {
    unlink(next.c_str());
    return failure;
  }
  if (rename(next.c_str(), path.c_str()) != 0) return FileError("cannot replace", path);
  return {};
}

Status VerdictStore::Open(const std::string& directory, int64_t wall_ns, Duration keep) {
  std::error_code error;
  fs::create_directories(directory, error);
  if (error) {
    return Error{"cannot create " + directory + ": " + error.message() +
                 "; verdicts live in memory only; check state.dir"};
  }
  directory_ = directory;
  std::string damaged;
  for (const fs::directory_entry& file : fs::directory_iterator(directory, error)) {
    if (file.path().extension() != kSuffix) continue;
    struct stat info {};
    if (lstat(file.path().c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
    Entry entry;
    std::string bytes;
    if (static_cast<uintmax_t>(info.st_size) <= kMaxFileBytes) {
      std::ifstream stream(file.path(), std::ios::binary);
      bytes.assign(std::istreambuf_iterator<char>(stream), {});
    }
    if (!entry.job.verdict.ParseFromString(bytes) || entry.job.verdict.job_id().empty()) {
      damaged = file.path().string();
      continue;
    }
    entry.job.job_id = entry.job.verdict.job_id();
    entry.job.attempt = {entry.job.verdict.attempt().slurm_restart(),
                         entry.job.verdict.attempt().elastic_restart(),
                         entry.job.verdict.attempt().ordinal()};
    entry.job.running = false;
    entry.written_wall_ns =
        static_cast<int64_t>(info.st_mtim.tv_sec) * 1'000'000'000 + info.st_mtim.tv_nsec;
    entries_[entry.job.job_id] = std::move(entry);
  }
  Expire(wall_ns, keep);
  if (!damaged.empty()) {
    return Error{"skipped an unreadable verdict: " + damaged + "; remove it"};
  }
  return {};
}

Status VerdictStore::Put(const JobStatus& job, int64_t wall_ns) {
  if (!entries_.contains(job.job_id) && entries_.size() >= kMaxVerdicts) {
    const auto oldest =
        std::min_element(entries_.begin(), entries_.end(), [](const auto& a, const auto& b) {
          return a.second.written_wall_ns < b.second.written_wall_ns;
        });
    Erase(std::string(oldest->first));
  }
  entries_[job.job_id] = {job, wall_ns};
  if (directory_.empty()) return {};
  const std::string base = directory_ + '/' + FileNameOf(job.job_id);
  if (Status status = ReplaceFile(base + ".pb", job.verdict.SerializeAsString()); !status.ok()) {
    return status;
  }
  return ReplaceFile(base + ".json", VerdictToJson(job.verdict) + '\n');
}

void VerdictStore::Expire(int64_t wall_ns, Duration keep) {
  std::vector<std::string> old;
  for (const auto& [job_id, entry] : entries_) {
    if (entry.written_wall_ns + keep.ns < wall_ns) old.push_back(job_id);
  }
  for (const std::string& job_id : old) Erase(job_id);
}

void VerdictStore::Erase(const std::string& job_id) {
  entries_.erase(job_id);
  if (directory_.empty()) return;
  const std::string base = directory_ + '/' + FileNameOf(job_id);
  unlink((base + ".pb").c_str());
  unlink((base + ".json").c_str());
}

std::vector<const JobStatus*> VerdictStore::Jobs() const {
  std::vector<const JobStatus*> jobs;
  for (const auto& [job_id, entry] : entries_) jobs.push_back(&entry.job);
  return jobs;
}

}  // namespace rankscope::exporter
