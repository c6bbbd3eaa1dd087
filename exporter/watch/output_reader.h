// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// One poll of a job's output file: what has come since the last one. The file is opened anew each
// time: a file system of the network then asks its server, and a file that was put in its place is
// seen. Blocks where the file system does; for a thread with the right user's rights (UserWorkers).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace rankscope::watch {

struct OutputRequest {
  std::vector<std::string> paths;  // the first that is there is the file
  uint64_t device = 0, inode = 0;  // as last seen; 0 = not seen yet
  int64_t offset = 0;
  size_t most = 0;  // bytes
  // The path is another user's, who may have put a file system of his own there.
  bool foreign = false;
};

struct OutputPiece {
  std::string path;      // that was opened, or tried last
  std::string error;     // why it was not; empty: it was read
  bool missing = false;  // there is no such file
  uint64_t device = 0, inode = 0;
  int64_t size = 0;
  int64_t written_ns = 0;  // wall time of the last write, by the file system's clock
  // Another file stands there, or it is shorter than what was read of it: it is read from its
  // beginning.
  bool anew = false;
  int64_t begin = 0;  // offset of `bytes`
  std::string bytes;
};

OutputPiece ReadOutput(const OutputRequest& request);

}  // namespace rankscope::watch
