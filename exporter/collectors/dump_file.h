// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Reads a file that a job's own user has named and written, as a daemon of root may: seen as the
// process sees it (its root and working directory), never through a link as its last step, nothing
// but a regular file of that very user, opened only once that is known (opening a device or a pipe
// can already do something), no larger than allowed, and never mapped (its owner may cut it short
// at any time). Blocks where the file system does; the worker's thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "detectors/model/result.h"

namespace rankscope::collectors {

// What tells one writing of a file from the next.
struct FileStamp {
  uint64_t device = 0, inode = 0;
  int64_t size = -1;
  int64_t changed_ns = 0;  // since 1970

  bool operator==(const FileStamp&) const = default;
};

class DumpFile {
 public:
  // `root`: the folder that absolute paths begin at ("" = our own). An error says why the file is
  // none to read; where there is no file at all, it is empty.
  static Result<DumpFile> Find(const std::string& root, const std::string& path, uid_t owner);

  DumpFile(DumpFile&& other) noexcept;
  DumpFile& operator=(DumpFile&&) = delete;
  ~DumpFile();

  const FileStamp& stamp() const { return stamp_; }
  // From `offset`, at most `most` bytes.
  Result<std::string> Read(int64_t offset, size_t most) const;

 private:
  DumpFile(int fd, FileStamp stamp) : fd_(fd), stamp_(stamp) {}
  int fd_;  // names the file, and cannot read it
  FileStamp stamp_;
};

}  // namespace rankscope::collectors
