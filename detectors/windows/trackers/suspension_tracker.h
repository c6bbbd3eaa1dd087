// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// When the job was suspended on this node: by its scheduler, its container's runtime or its user,
// all of it at once. Told by the freezer of the processes' cgroups, and by their state where
// signals do it. One rank alone that is stopped suspends nothing; it holds up the others.
// Time that passes meanwhile is no silence. Bounded: kMostProcesses of 40 bytes. Single writer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>

#include "detectors/model/observation.h"
#include "detectors/windows/trackers/speaker.h"

namespace rankscope::windows {

enum class SuspendedBy : uint8_t { kNobody, kFreezer, kSignal };

struct Suspension {
  Timestamp begin, end;
  uint8_t by = 0;  // SuspendedBy
  int32_t processes = 0;

  template <class A>
  void Fields(A& a) {
    a(begin, end, by, processes);
  }
};

class SuspensionTracker {
 public:
  static constexpr size_t kMostProcesses = 4096;  // as many as the node's table of processes holds
  static constexpr size_t kMostSpans = 32;        // of more, the newest; their sum keeps all

  void OnSamples(const SampleBatch& batch, const Speaker& speaker, Timestamp t);
  void OnEvent(const Event& event, Timestamp t);
  void OnProcessGone(const ProcessKey& key, Timestamp t);

  // Whether anybody tells of the states of its processes.
  bool known() const { return last_.ns != 0; }
  bool Suspended(Timestamp now) const;
  // Of the one that goes on; meaningful while Suspended.
  const Suspension& current() const { return current_; }
  // Those that are over, oldest first.
  const std::deque<Suspension>& past() const { return past_; }
  int64_t times() const { return times_; }  // that are over
  // How much of the time between the two it was suspended.
  Duration Within(Timestamp from, Timestamp to) const;
  Duration Total(Timestamp now) const;

  template <class A>
  void Fields(A& a) {
    a(processes_, current_, past_, times_, total_, last_);
    while (past_.size() > kMostSpans) past_.pop_front();  // restored from damaged bytes
  }

 private:
  struct Process {
    bool ranked = false;
    bool frozen = false;
    bool stopped = false;
    bool traced = false;  // by a debugger: a stop of its own
    Timestamp since;      // frozen or stopped

    template <class A>
    void Fields(A& a) {
      a(ranked, frozen, stopped, traced, since);
    }
  };
  struct Count {
    int32_t all = 0, ranks = 0;
    Timestamp since;  // the last of them
  };

  Count CountThose(bool Process::*which) const;
  void Judge(Timestamp t);
  void End(Timestamp t);
  Timestamp KnownUntil(Timestamp now) const;

  std::map<ProcessKey, Process> processes_;
  Suspension current_;
  std::deque<Suspension> past_;
  int64_t times_ = 0;
  Duration total_;
  Timestamp last_;
};

}  // namespace rankscope::windows
