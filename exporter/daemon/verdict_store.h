// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Final verdicts on disk: DIR/JOB.pb for us, with a checksum, and DIR/JOB.json for people, each
// replaced as a whole. What is there at the start is served again. A disk that refuses or hangs
// costs the files, never the daemon: the files follow the memory when it lets them. Loop thread
// only.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "detectors/model/result.h"
#include "detectors/model/time.h"
#include "detectors/status/job_status.h"
#include "exporter/daemon/document_folder.h"

namespace rankscope::exporter {

class VerdictStore {
 public:
  // A verdict is some 10 kB, and so are the curves of eight GPUs: 1024 of them are 20 MB of
  // memory. The oldest of the user with the most of them goes first.
  static constexpr size_t kMaxVerdicts = 1024;

  // `on_kept` (may be null) hears when a job's verdict is on the disk.
  VerdictStore(EventLoop& loop, DiskThread& disk,
               std::function<void(const std::string& job_id)> on_kept = nullptr);

  // Reads what is there, at once; an unreadable file is skipped, counted and named in the error,
  // the others are kept.
  Status Open(const std::string& directory, int64_t wall_ns, Duration keep);

  void Put(const JobStatus& job, int64_t wall_ns);
  // Forgets what is older than `keep`.
  void Expire(int64_t wall_ns, Duration keep);

  bool Contains(const std::string& job_id) const { return entries_.contains(job_id); }
  // Never null; what is handed out stays as it is.
  std::vector<std::shared_ptr<const JobStatus>> Jobs() const;
  std::shared_ptr<const JobStatus> Find(const std::string& job_id) const;

  // Whether the disk has them, and why not.
  const DocumentFolder& files() const { return files_; }
  // Files that are not as they were written.
  int64_t damaged() const { return damaged_; }

 private:
  struct Entry {
    std::shared_ptr<const JobStatus> job;
    int64_t written_wall_ns = 0;
  };
  void MakeRoom();
  void Erase(const std::string& job_id);
  std::vector<DocumentFolder::File> Render(const std::string& job_id) const;

  DocumentFolder files_;
  std::map<std::string, Entry> entries_;
  int64_t damaged_ = 0;
};

}  // namespace rankscope::exporter
