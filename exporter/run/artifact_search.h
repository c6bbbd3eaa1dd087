// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Which files match the patterns of --artifacts. The part of a pattern before its first wildcard is
// what the user has typed, and is opened as it stands; below it no link is followed. Blocks on the
// file system; one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "exporter/loop/owned_fd.h"

namespace rankscope::run {

struct FoundFile {
  std::string name;   // in the archive: without a slash in front, or ".."
  std::string path;   // as it was found
  int64_t size = -1;  // bytes; below 0: not known
  int64_t mtime_ns = 0;
  uint64_t device = 0, inode = 0;  // which file it is, whatever has its name later
  std::string why_not;             // it cannot be kept; empty: it is a plain file
};

struct FoundFiles {
  std::vector<FoundFile> files;  // the newest first
  std::string note;              // what was not looked at; empty: everything was
};

inline constexpr size_t kMostFound = 10'000;       // files
inline constexpr size_t kMostEntries = 1'000'000;  // names that are compared

FoundFiles SearchFiles(const std::vector<std::string>& patterns, const std::string& cwd,
                       const std::function<bool()>& late);

// The file that was found, and no other; empty: it has gone, or may not be read.
OwnedFd OpenFound(const FoundFile& file);

}  // namespace rankscope::run
