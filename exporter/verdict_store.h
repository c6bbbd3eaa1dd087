// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Final verdicts on disk: DIR/JOB.pb for us and DIR/JOB.json for people, each replaced as a whole.
// What is there at the start is served again. A disk that refuses costs the files, never the
// daemon. Loop thread only.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "detectors/job_status.h"
#include "detectors/model/result.h"
#include "detectors/model/time.h"

namespace rankscope::exporter {

class VerdictStore {
 public:
  // A verdict is some 10 kB, and so are the curves of eight cards: 1024 of them are 20 MB of
  // memory. The oldest goes first.
  static constexpr size_t kMaxVerdicts = 1024;

  // Reads what is there; an unreadable file is skipped and named in the error, the others are kept.
  Status Open(const std::string& directory, int64_t wall_ns, Duration keep);

  // Keeps in memory in any case; the error is the disk's.
  Status Put(const JobStatus& job, int64_t wall_ns);
  // Forgets what is older than `keep`.
  void Expire(int64_t wall_ns, Duration keep);

  bool Contains(const std::string& job_id) const { return entries_.contains(job_id); }
  std::vector<const JobStatus*> Jobs() const;

 private:
  struct Entry {
    JobStatus job;
    int64_t written_wall_ns = 0;
  };
  void Erase(const std::string& job_id);

  std::string directory_;
  std::map<std::string, Entry> entries_;
};

// A job id as a file name: what is not a letter, digit, '-', '_' or '.' becomes %XX; never "." or
// "..", at most 200 bytes.
std::string FileNameOf(std::string_view job_id);

// Writes `content` to `path` so that readers see the old or the new file; fsynced.
Status ReplaceFile(const std::string& path, std::string_view content);

}  // namespace rankscope::exporter
