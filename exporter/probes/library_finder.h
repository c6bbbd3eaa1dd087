// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Finds the files with wanted functions that processes run code from: libraries wherever they lie,
// bundled copies, static programs. By what is mapped and by the names inside, never by a file's
// name, and through /proc/PID/map_files, so that the process's mount namespace does not matter and
// a deleted file is found too. Reads memory maps, which may hang with their process: on a worker.
// One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "detectors/model/ids.h"
#include "exporter/probes/elf_symbols.h"
#include "exporter/probes/uprobe_link.h"

namespace rankscope::probes {

// One file that code is mapped from.
struct Mapping {
  std::string range;   // as /proc/PID/map_files names it
  std::string device;  // as the maps print it: major:minor
  uint64_t inode = 0;
  std::string path;
};
// The executable ones of /proc/PID/maps, each file once. Pure.
std::vector<Mapping> ParseMappings(std::string_view maps);
// What of /proc/PID/status changes with every exec and every dlopen: the name, and how much code is
// mapped. Empty where there is none: the process has ended. Pure.
std::string ParseCodeMark(std::string_view status);

// A file as the kernel knows it. On an overlay each mount shows a device of its own for the one
// file below; the inode's number is that file's. So there content decides instead of the device.
struct FileIdentity {
  uint64_t device = 0;  // 0: on an overlay
  uint64_t inode = 0;
  int64_t bytes = 0;
  int64_t changed_ns = 0;
  auto operator<=>(const FileIdentity&) const = default;
};

struct FoundLibrary {
  FileIdentity identity;
  std::string path;  // as the process names it
  OwnedFd file;
  ElfFile elf;
};

class LibraryFinder {
 public:
  LibraryFinder(std::string proc_root, Names wanted);

  struct Look {
    std::vector<FoundLibrary> fresh;   // not seen before in any process
    std::vector<FileIdentity> mapped;  // all with wanted functions
  };
  // Reads the process's maps again when its code has changed since the last look.
  Look LookAt(const ProcessKey& process);
  // Forgets processes that are not among these.
  void Keep(const std::vector<ProcessKey>& processes);
  // Makes the file fresh again: nobody uses it any more.
  void Forget(const FileIdentity& file) { files_.erase(file); }

  // A node's jobs map some hundred libraries each, mostly the same ones: 8,192 of 100 bytes.
  static constexpr size_t kMaxFiles = 8192;

 private:
  struct Seen {
    std::string code_mark;
    std::vector<FileIdentity> mapped;
  };

  std::string OfProcess(int32_t pid, const std::string& name) const;
  void Examine(int32_t pid, const Mapping& mapping, Look& look);

  std::string proc_;
  Names wanted_;
  std::map<ProcessKey, Seen> seen_;
  std::map<FileIdentity, bool> files_;  // with wanted functions?
  std::deque<FileIdentity> order_;
};

}  // namespace rankscope::probes
