// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Finds the files with wanted functions that one user's processes run code from: libraries wherever
// they lie, bundled copies, static programs. By what is mapped and by the names inside, never by a
// file's name, and through /proc/PID/map_files, so that the process's mount namespace does not
// matter and a deleted file is found too.
//
// Everything here is the user's: what he maps is read within an allowance of CPU time, and may hang
// with his process or with a file system of his own. So each user has a finder, on a thread that
// waits for nobody else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "detectors/model/ids.h"
#include "exporter/loop/user_path.h"
#include "exporter/probes/attach/allowance.h"
#include "exporter/probes/attach/elf_symbols.h"
#include "exporter/probes/attach/mappings.h"
#include "exporter/probes/attach/uprobe_link.h"

namespace rankscope::probes {

// A state of a file, as the kernel knows it. On an overlay each mount shows a device of its own for
// the one file below; the inode's number is that file's. So there content decides instead of the
// device, with the time of its last change, which nobody but the kernel can set: who could choose
// all of these could pass for another user's library.
struct FileVersion {
  uint64_t device = 0;  // 0: on an overlay
  uint64_t inode = 0;
  int64_t bytes = 0;
  int64_t written_ns = 0;
  int64_t changed_ns = 0;
  auto operator<=>(const FileVersion&) const = default;
};
// The file itself: of a device, its inode; the rest is 0. On an overlay, its only version.
using FileKey = FileVersion;
FileKey KeyOf(const FileVersion& version);

struct FoundLibrary {
  FileVersion version;
  std::string path;  // as the process names it
  OwnedFd file;
  ElfFile elf;
};

class LibraryFinder {
 public:
  // `now_ns`, `cpu_ns`: the time, and that of the calling thread on a CPU.
  struct Clocks {
    std::function<int64_t()> now_ns;
    std::function<int64_t()> cpu_ns;
  };
  static Clocks OwnClocks();

  LibraryFinder(std::string proc_root, Names wanted, Clocks clocks = OwnClocks());

  struct Seen {
    std::vector<FileKey> mapped;  // all with wanted functions
    // False: there may be more. Its maps could not be read yet within the allowance, or a file of
    // its is more than is read, or on a file system that a user serves.
    bool complete = false;
  };
  struct Round {
    std::map<ProcessKey, Seen> seen;  // those that live
    std::vector<FoundLibrary> fresh;  // that are not settled
    std::string trouble;              // why something is not complete
  };
  // Looks at all of the user's processes, as far as his allowance goes, and forgets his others.
  // Reads a process's maps again when its code has changed since the last look. `settled`: the
  // files that are known well enough, by their version; who maps another one has it offered anew.
  using Settled = std::map<FileKey, FileVersion>;
  Round Look(const std::vector<ProcessKey>& processes, const Settled& settled);

  // A job maps some hundred libraries, and a user's jobs mostly the same: 4,096 of 100 bytes.
  static constexpr size_t kMaxFiles = 4096;
  // Files that are held open for the caller.
  static constexpr size_t kMaxFresh = 16;
  // Of one core: a job's start takes some 0.3 s, all names of its libraries once.
  static constexpr double kBurstSeconds = 1;
  static constexpr double kShare = 0.05;
  // What was seen of a process so long ago says nothing of what it runs now.
  static constexpr int64_t kOldNs = 5'000'000'000;

 private:
  enum class Content : uint8_t { kNothing, kWanted, kUnread };
  struct Known : Seen {
    std::string code_mark;
    int64_t looked_ns = 0;
    bool unread = false;
  };

  // Takes what the thread has done since the last time from the allowance.
  void Charge();
  std::string OfProcess(int32_t pid, const std::string& name) const;
  void LookAt(const ProcessKey& process, const Settled& settled, Known& known, Round& round);
  bool Examine(int32_t pid, const Mapping& mapping, exporter::UserMounts& mounts,
               const Settled& settled, Known& known, Round& round);
  Content Read(const FileVersion& version, const std::string& path, OwnedFd file, Round& round);
  void Remember(const FileVersion& version, Content content);

  std::string proc_;
  Names wanted_;
  Clocks clocks_;
  Allowance cpu_seconds_{kBurstSeconds, kShare};
  std::map<ProcessKey, Known> known_;
  int64_t charged_ns_ = 0;
  ProcessKey next_;  // who is looked at first
  std::map<FileVersion, Content> files_;
  std::deque<FileVersion> order_;
};

}  // namespace rankscope::probes
