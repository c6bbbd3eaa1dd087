// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Ways to a file that a user names, which touch no file system that he answers for himself. A
// request to a FUSE server that the server has taken cannot be ended by any signal
// (request_wait_answer()), not even at our own exit, so the mount is looked at before the file is,
// and a path is walked step by step. For threads of UserWorkers.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "detectors/model/result.h"
#include "exporter/loop/owned_fd.h"

namespace rankscope::exporter {

// The text of a file below /proc, up to a piece behind `limit` bytes; empty: there is none.
std::string ReadProcText(const std::string& path, size_t limit);

struct MountFacts {
  uint64_t device = 0;  // major and minor in 32 bits each
  std::string type;
  bool served_by_root = false;  // FUSE: by the id that the kernel noted when it was mounted
};
// The text of /proc/PID/mountinfo, by mount id. Pure.
std::map<uint64_t, MountFacts> ParseMountInfo(std::string_view text);

// The mounts that a process sees, and ours.
class UserMounts {
 public:
  UserMounts(std::string proc_root, int32_t pid);

  // Why what this descriptor (O_PATH) names is not to be touched; empty when it may be: it is on no
  // FUSE but root's, on no overlay that a user could mount himself (over FUSE, for one), and
  // mounted where that can be seen. Asks no file system.
  std::string Refusal(int fd);

 private:
  struct List {
    std::map<uint64_t, MountFacts> mounts;
    bool by_root = false;  // only root can mount there
  };
  std::string Judge(size_t which, const MountFacts& mount);
  bool IsMountedByRoot(const MountFacts& mount);
  const List& Load(size_t which);

  std::string proc_;
  std::vector<std::string> owners_;  // of the lists: folders below /proc
  std::vector<List> lists_;
};

// Opens with O_PATH what `path` names for a process with this root and working directory
// (descriptors with O_PATH), as the thread's user. Links are followed within the root, but for the
// last step; none of /proc's links is. An error says why the file is not touched; empty: there is
// none.
Result<OwnedFd> WalkUserPath(int root, int working_directory, std::string_view path,
                             UserMounts& mounts);

// Opens for reading what `path_fd` (O_PATH) names, as the thread's user: what was looked at is what
// is opened. A user's lease or pipe makes nobody wait.
OwnedFd OpenLooked(int path_fd);

// A link below /proc/PID that leads to what the process has: "fd/1", "root", "cwd". With O_PATH.
OwnedFd OpenProcessLink(const std::string& proc_root, int32_t pid, std::string_view link);

}  // namespace rankscope::exporter
