// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What is left of jobs when their verdicts have long been forgotten: a line each with its checksum,
// DIR/JOB, replaced as a whole. For a run that goes on days later. A disk that refuses or hangs
// costs the files, never the daemon. Loop thread only, but for what all() hands out.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "detectors/model/job_summary.h"
#include "detectors/model/result.h"
#include "exporter/daemon/document_folder.h"

namespace rankscope::exporter {

class JobSummaries {
 public:
  // At most 1 kB each: 4 MiB of memory, 16 MiB of a disk with blocks of 4 kB. A node that ends a
  // job each ten minutes keeps a month. Those that ended first go first.
  static constexpr size_t kMost = 4096;

  // Lines by job id; immutable once handed out.
  using Lines = JobSummaryLines;

  JobSummaries(EventLoop& loop, DiskThread& disk, size_t most = kMost);

  // Reads what is there, at once; an unreadable file is skipped, counted and named in the error,
  // the others are kept.
  Status Open(const std::string& directory);

  // Of a job that is known, what it had trained and saved before stays where `summary` has nothing
  // of it.
  void Put(const JobSummary& summary);

  // Its line, by its number or as a task of an array; empty: it is not known.
  std::string_view Find(std::string_view job_id) const;
  size_t size() const { return lines_->size(); }
  std::shared_ptr<const Lines> all() const { return lines_; }

  // Whether the disk has them, and why not.
  const DocumentFolder& files() const { return files_; }
  // Files that are not as they were written.
  int64_t damaged() const { return damaged_; }

 private:
  std::vector<std::string> MakeRoom(Lines& lines) const;
  std::vector<DocumentFolder::File> Render(const std::string& job_id) const;

  const size_t most_;
  DocumentFolder files_;
  int64_t damaged_ = 0;
  std::shared_ptr<const Lines> lines_ = std::make_shared<const Lines>();
};

}  // namespace rankscope::exporter
