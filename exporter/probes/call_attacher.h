// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Keeps programs attached to the functions of a table, in every file that tracked processes run
// such code from: looks for new files, places the probes, lets go of files that nobody uses any
// more. All of it on a worker, since it may hang with a process whose memory map is held. Loop
// thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "detectors/model/ids.h"
#include "exporter/event_loop.h"
#include "exporter/probes/call_table.h"
#include "exporter/probes/probe_cost.h"
#include "exporter/probes/prologue.h"
#include "exporter/probes/uprobe_link.h"
#include "exporter/worker.h"

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

class CallAttacher {
 public:
  struct State {
    std::vector<ProcessKey> looked;  // processes whose maps were read, in rising order
    std::set<ProcessKey> users;      // those that have the library
    std::set<PlacedProbe> placed;
    int files = 0;
    int points = 0;
    int64_t refused = 0;
    std::string trouble;             // the last reason why a point was refused
    LaunchProbes launches;           // as attached
    Timestamp launches_since;        // when that was so
    double attach_seconds = 0;       // of the last file
    std::optional<SiteCosts> costs;  // measured with the first file
  };

  CallAttacher(exporter::EventLoop& loop, std::string proc_root, std::span<const CallRow> calls,
               CallPrograms programs, AttachVia via, std::function<void()> on_change);
  ~CallAttacher();

  // Looks at these processes, unless it still does so.
  void Look(std::vector<ProcessKey> processes);
  void Want(LaunchProbes launches);
  const State& state() const { return state_; }
  bool late() const { return late_; }

 private:
  struct Worked;
  void Submit(std::function<void(Worked&)> work);

  exporter::EventLoop& loop_;
  std::shared_ptr<Worked> worked_;  // the worker thread's
  std::function<void()> on_change_;
  State state_;
  LaunchProbes wanted_;
  bool looking_ = false;
  bool late_ = false;
  std::unique_ptr<exporter::Worker> worker_;  // goes first
};

}  // namespace rankscope::probes
