// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The regular files that a process has as its standard output and error, opened to be read, on the
// thread of the process's user (see UserWorkers): the kernel decides what he may read. No path that
// he names is walked: the descriptor that the process holds leads to the file, and only one that
// the process may write is opened, on a file system that he does not answer for himself. Blocks
// where the file system does.
#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "detectors/model/ids.h"
#include "exporter/loop/owned_fd.h"
#include "exporter/loop/user_identity.h"

namespace rankscope::collectors {

struct OutputFileId {
  uint64_t device = 0;
  uint64_t inode = 0;
  auto operator<=>(const OutputFileId&) const = default;
};

// An open file; closed with its last owner, which takes no time: it was only read, and is on none
// of the file systems that are not touched.
class OutputFile {
 public:
  explicit OutputFile(OwnedFd file) : file_(std::move(file)) {}

  int64_t size() const;  // below zero: cannot be told
  // Up to `most` bytes from `offset`.
  std::string Read(int64_t offset, size_t most) const;

 private:
  OwnedFd file_;
};

struct FoundOutput {
  int descriptor = 0;  // 1 or 2
  OutputFileId id;
  // Where what this job wrote begins, as far as can be told: a file that the process appends to may
  // hold what others wrote before.
  int64_t begin = 0;
  std::shared_ptr<OutputFile> file;  // null where the caller knows the file
  int64_t size = 0;
  int64_t position = 0;    // where the process has come to
  int64_t born_ns = 0;     // wall time; 0 = its file system does not tell
  int64_t written_ns = 0;  // when it was last written, by the clock of whoever keeps it
};

struct OutputFiles {
  std::vector<FoundOutput> found;
  std::string refusal;  // why another one is not read; empty: there is none
  // What it writes goes to a pipe as well, or to something else that is no regular file.
  bool piped = false, elsewhere = false;
  bool closed = false;  // the kernel does not let this user see what the process has open
};

// The process's user, whose thread this is. Of a file of root's, `all_roots` says that Slurm knows
// the job and that all its processes are root's; else only what every user may read is, and only of
// a process that is root's own doing.
struct OutputReader {
  exporter::UserIdentity who;
  bool all_roots = false;
};

// `known`: files that need not be opened again.
OutputFiles FindOutputFiles(const std::string& proc_root, const ProcessKey& process,
                            const OutputReader& reader, const std::vector<OutputFileId>& known);

// "flags:\t0102001" and "pos:\t12" of /proc/PID/fdinfo/N. Pure.
struct DescriptorFacts {
  bool writable = false;
  bool append = false;
  int64_t position = 0;
};
std::optional<DescriptorFacts> ParseDescriptorFacts(const std::string& text);

}  // namespace rankscope::collectors
