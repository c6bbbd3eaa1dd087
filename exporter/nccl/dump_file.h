// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Reads a file that a job's own user has named and written, on that user's thread (see
// UserWorkers): seen as the process sees it (its root and working directory), never through a link
// as its last step, on no file system that he answers for himself, nothing but a regular file of
// that very user, opened only once that is known (opening a device or a pipe can already do
// something), no larger than allowed, and never mapped (its owner may cut it short at any time).
// Blocks where the file system does.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "detectors/model/result.h"
#include "exporter/loop/owned_fd.h"
#include "exporter/loop/user_path.h"

namespace rankscope::collectors {

// What tells one writing of a file from the next.
struct FileStamp {
  uint64_t device = 0, inode = 0;
  int64_t size = -1;
  int64_t changed_ns = 0;  // since 1970

  bool operator==(const FileStamp&) const = default;
};

// Where paths of a process begin.
struct PathStart {
  OwnedFd root;
  OwnedFd working_directory;
};

class DumpFile {
 public:
  // An error says why the file is none to read; where there is no file at all, it is empty.
  // `owner`: of root's files only those that all may read are read.
  static Result<DumpFile> Find(const PathStart& start, const std::string& path, uid_t owner,
                               exporter::UserMounts& mounts);

  const FileStamp& stamp() const { return stamp_; }
  // From `offset`, at most `most` bytes.
  Result<std::string> Read(int64_t offset, size_t most) const;

 private:
  DumpFile(OwnedFd fd, FileStamp stamp) : fd_(std::move(fd)), stamp_(stamp) {}
  OwnedFd fd_;  // names the file, and cannot read it
  FileStamp stamp_;
};

// Names in a folder, at most `most`; nothing where it is none to read.
std::vector<std::string> ListFolder(const PathStart& start, const std::string& path, size_t most,
                                    exporter::UserMounts& mounts);

}  // namespace rankscope::collectors
