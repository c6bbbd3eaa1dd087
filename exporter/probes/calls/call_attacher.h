// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Keeps programs attached to the functions of a table, in every file that tracked processes run
// such code from: looks for new files, places the probes, lets go of files that nobody uses any
// more. What is read and attached is the users', and may hang with them: each user has a thread for
// that, an allowance, and a fair share of the files that are probed at once. A process whose calls
// are not all seen is told apart from one that makes none. Loop thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "detectors/model/ids.h"
#include "exporter/loop/event_loop.h"
#include "exporter/loop/worker.h"
#include "exporter/probes/attach/allowance.h"
#include "exporter/probes/attach/library_finder.h"
#include "exporter/probes/attach/probe_cost.h"
#include "exporter/probes/attach/target_table.h"
#include "exporter/probes/calls/attached_files.h"
#include "exporter/probes/calls/call_table.h"

namespace rankscope::probes {

class CallAttacher {
 public:
  struct State {
    std::vector<ProcessKey> looked;  // processes of which all is known, in rising order
    std::set<ProcessKey> users;      // those of them that have the library
    std::set<ProcessKey> unprobed;   // those that may make calls which no probe sees
    std::set<PlacedProbe> placed;
    int files = 0;
    int points = 0;
    int64_t refused = 0;  // points that the kernel did not take
    int64_t refused_files = 0;
    std::string trouble;             // why some calls are not seen; empty: all are
    LaunchProbes launches;           // as attached
    Timestamp launches_since;        // when that was so
    std::optional<SiteCosts> costs;  // measured with the first file
  };

  struct Process {
    ProcessKey key;
    uint32_t uid = 0;
  };

  CallAttacher(exporter::EventLoop& loop, std::string proc_root, std::span<const CallRow> calls,
               CallPrograms programs, AttachVia via, std::function<void()> on_change);
  ~CallAttacher();

  // Looks at these processes, but for those of a user who is still being looked at.
  void Look(const std::vector<Process>& processes);
  void Want(LaunchProbes launches);
  const State& state() const { return state_; }
  // Whether somebody's memory map or file keeps a thread waiting.
  bool late() const;

  // New files of a user: a job brings some, and loads more in its first minutes.
  static constexpr double kFilesAtOnce = 32;
  static constexpr double kFilesPerSecond = 0.5;
  // An idle thread makes room for another user's; a node has fewer users at work.
  static constexpr size_t kMaxThreads = 32;

 private:
  // What a user's thread owns; handed from job to job, never to two at once.
  struct Hands {
    Hands(const std::string& proc_root, std::span<const CallRow> calls,
          const CallPrograms& programs, AttachVia via);
    LibraryFinder finder;
    AttachedFiles files;
  };
  struct User {
    std::shared_ptr<Hands> hands;
    std::unique_ptr<exporter::Worker> worker;  // with the daemon's rights: programs take them
    int pending() const { return worker ? worker->pending() : 0; }
    bool looking = false;
    bool late = false;
    Allowance new_files{kFilesAtOnce, kFilesPerSecond};
  };
  struct Seen : LibraryFinder::Seen {
    uint32_t uid = 0;
  };
  using Found = std::shared_ptr<FoundLibrary>;
  // A file that is being attached: which of the tries counts, and who else could do it.
  struct Pending {
    int64_t attempt = 0;
    std::map<uint32_t, Found> spares;
  };
  // Probes that are put on or taken off in all files.
  struct Change {
    LaunchProbes launches;
    std::set<uint32_t> waits_for;
  };

  User& UserOf(uint32_t uid);
  bool MakeRoom();
  bool Submit(uint32_t uid, std::function<std::function<void()>(Hands&)> work);
  void LookAt(uint32_t uid, std::vector<ProcessKey> processes);
  void OnLooked(uint32_t uid, LibraryFinder::Round& round);
  void OnLate(uint32_t uid);
  void Offer(uint32_t uid, const Found& found);
  void Refuse(const FileVersion& version, std::string why);
  void Attach(uint32_t uid, const Found& found);
  void OnAttached(const FileKey& file, int64_t attempt, const AttachedFiles::Report& report);
  void TakeOver(const FileKey& file);
  void Drop(const FileKey& file, uint32_t owner);
  void DropUnused();
  void Note(const AttachedFiles::Report& report);
  void Measure();
  void OnChanged(int64_t change, uint32_t uid);
  void SettleChanges();
  void Describe();
  std::string Trouble() const;

  exporter::EventLoop& loop_;
  std::string proc_;
  std::span<const CallRow> calls_;
  CallPrograms programs_;
  AttachVia via_;
  std::function<void()> on_change_;
  State state_;
  LaunchProbes wanted_;
  TargetTable targets_;
  std::map<FileKey, Pending> pending_;
  std::map<FileKey, FileVersion> refused_;    // asked again after a while
  std::map<uint32_t, User> users_;            // by uid
  std::map<uint32_t, std::string> troubles_;  // of users, as their last round told
  std::map<ProcessKey, Seen> seen_;
  std::string refusal_;
  std::map<int64_t, Change> changes_;  // that are not yet made
  int64_t next_change_ = 1;
  int64_t attempts_ = 0;
  int rounds_ = 0;
  bool measuring_ = false;
  std::unique_ptr<exporter::Worker> measurer_;
};

}  // namespace rankscope::probes
