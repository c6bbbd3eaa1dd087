// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The regular files that a process has as its standard output and error, opened to be read. No path
// that a user names is ever walked: the descriptor that the process holds leads to the file, and
// only a file that the process may write, on a file system of the machine's own, that belongs to
// the process's user, is opened. May block on a slow file system: for a Worker.
#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "detectors/model/ids.h"

namespace rankscope::collectors {

struct OutputFileId {
  uint64_t device = 0;
  uint64_t inode = 0;
  auto operator<=>(const OutputFileId&) const = default;
};

// An open file; closed with its last owner.
class OutputFile {
 public:
  explicit OutputFile(int fd) : fd_(fd) {}
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  int64_t size() const;  // below zero: cannot be told
  // Up to `most` bytes from `offset`.
  std::string Read(int64_t offset, size_t most) const;

 private:
  int fd_;
};

struct FoundOutput {
  int descriptor = 0;  // 1 or 2
  OutputFileId id;
  // Where what this job wrote begins, as far as can be told: a file that the process appends to may
  // hold what others wrote before.
  int64_t begin = 0;
  std::shared_ptr<OutputFile> file;  // null where the caller knows the file
};

// `known`: files that need not be opened again.
std::vector<FoundOutput> FindOutputFiles(const std::string& proc_root, const ProcessKey& process,
                                         uint32_t uid, const std::vector<OutputFileId>& known);

// "flags:\t0102001" and "pos:\t12" of /proc/PID/fdinfo/N. Pure.
struct DescriptorFacts {
  bool writable = false;
  bool append = false;
  int64_t position = 0;
};
std::optional<DescriptorFacts> ParseDescriptorFacts(const std::string& text);

}  // namespace rankscope::collectors
