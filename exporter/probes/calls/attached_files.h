// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The probes in files that one user's processes have brought: which functions of a file are probed,
// and by which programs. Placing and leaving them waits for the memory maps of all processes that
// use the file, so it may hang with one of them: on the user's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "exporter/probes/attach/library_finder.h"
#include "exporter/probes/attach/prologue.h"
#include "exporter/probes/attach/uprobe_link.h"
#include "exporter/probes/calls/call_table.h"

namespace rankscope::probes {

// Of the object in the kernel; -1 = it has none. `alive` keeps them loaded for as long as the
// worker may use them.
struct CallPrograms {
  int launch = -1;
  int launch_end = -1;
  int begin = -1;
  int end = -1;
  std::shared_ptr<const void> alive;
  // Makes the programs treat the daemon like a rank, while it measures them; and takes it back.
  std::function<void(bool)> track_self = {};
  // Timed calls are looked at from now on: what was entered before has returned unseen.
  std::function<void()> timing_begins = {};
  // The same of launches: what lies between the last one seen and the next is no gap.
  std::function<void()> launches_begin = {};
};

// Which probes are wanted.
struct LaunchProbes {
  bool driver = true;
  bool runtime = true;
  bool returns = false;
  bool calls = true;          // the timed ones
  bool stepped_calls = true;  // those that the kernel single-steps
  bool operator==(const LaunchProbes&) const = default;
};

// Where one function of a file is probed.
struct PlacedProbe {
  uint8_t op = 0;
  uint8_t layer = 0;
  SiteClass site = SiteClass::kUnknown;
  bool launch() const { return op == RS_CUDA_LAUNCH || op == RS_CUDA_GRAPH; }
  bool stepped() const { return !IsCheap(site); }
  auto operator<=>(const PlacedProbe&) const = default;
};

class AttachedFiles {
 public:
  AttachedFiles(std::span<const CallRow> calls, CallPrograms programs, AttachVia via);
  ~AttachedFiles();

  // What came of it.
  struct Report {
    std::set<PlacedProbe> placed;
    int points = 0;
    int64_t refused = 0;  // points that the kernel would not take
    std::string trouble;  // why, of the last one
    double seconds = 0;
  };
  Report Attach(FoundLibrary library, const LaunchProbes& launches);
  void Detach(const FileKey& file) { files_.erase(file); }
  Report Want(const LaunchProbes& launches);

  // All that is placed, to be left together with others'.
  Places TakePlaces();

 private:
  struct File {
    OwnedFd file;
    std::vector<ProbePoint> driver, runtime, calls, stepped_calls;
    Places driver_links, runtime_links, return_links;
    Places call_links, call_end_links, stepped_links, stepped_end_links;
  };

  void Choose(const ElfFunction& function, bool x86_64, File& file, Report& report) const;
  void Apply(File& file, Report& report) const;
  void Settle(bool wanted, int program, const File& file, const std::vector<ProbePoint>& points,
              bool at_return, Places& links, Report& report) const;

  std::span<const CallRow> calls_;
  CallPrograms programs_;
  AttachVia via_;
  bool skips_long_nops_;
  LaunchProbes launches_;
  std::map<FileKey, File> files_;
};

}  // namespace rankscope::probes
