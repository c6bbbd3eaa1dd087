// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Of one attempt: what the job's threads do when they do not run: wait classes, and snapshots of a
// standstill. Bounded: kMost processes of about 2 KiB. Single writer.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <string>

#include "detectors/model/observation.h"
#include "detectors/model/wait_class.h"
#include "detectors/windows/trackers/speaker.h"

namespace rankscope::windows {

// What a process did between two samples, in seconds.
struct WaitSecond {
  float span = 0;
  float running = 0;  // of all its threads
  float silent = 0;   // the same, without a wait
  float main_running = 0;
  float main_runnable = 0;
  uint8_t main = 0;  // WaitClass of the main thread at its end

  template <class A>
  void Fields(A& a) {
    a(span, running, silent, main_running, main_runnable, main);
  }
};

// All threads of a process at one moment of a standstill; the texts speak of the thread that tells
// most, its main thread as a rule.
struct ThreadSnapshot {
  Timestamp t;  // 0 = none was taken
  std::string wchan;
  std::string syscall;
  std::string fd;      // what kind of file the call is about
  std::string stack;   // of the kernel, innermost first, joined by ';'
  std::string python;  // module:function, innermost first, joined by ';'
  std::string holder;  // who holds the file lock that it waits for: "name (pid N)"
  int64_t threads = 0;
  int64_t tid = 0;

  bool present() const { return t.ns != 0; }
  template <class A>
  void Fields(A& a) {
    a(t, wchan, syscall, fd, stack, python, holder, threads, tid);
  }
};

struct ProcessWaits {
  static constexpr size_t kSeconds = 64;

  int32_t rank = -1;    // its own, or that of the rank which started it
  bool worker = false;  // it is no rank itself
  std::string comm;
  ProcessKey process;
  Timestamp first, last;  // of its samples
  Timestamp ran;          // the newest sample in whose second a thread of it ran
  bool has_run = false;   // noticeably, since it is watched
  uint8_t main = 0;       // WaitClass
  double main_wait_seconds = 0;
  double oldest_wait_seconds = 0;
  int32_t uninterruptible = 0;
  // Running totals as last told; NaN before the first.
  static constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  double running = kNone, silent = kNone, main_running = kNone, main_runnable = kNone;
  uint32_t written = 0;
  std::array<WaitSecond, kSeconds> seconds{};
  Timestamp stopped_since;  // 0 = it is not
  std::string tracer;       // who traces it, where it is stopped for that
  Timestamp frozen_since;   // by the freezer of its cgroup; 0 = it is not
  // Of its main thread on a CPU: the total at the newest training record, and the mean from one
  // record to the next.
  double main_at_record = kNone, main_per_record = kNone;
  int64_t records = 0;  // that the mean is of
  // Who sent it the newest signal to stop; pid 0 = not seen.
  std::string stopper;
  int32_t stopper_pid = 0;
  int64_t stopper_uid = 0;
  ThreadSnapshot snapshot;  // the newest

  // The newest samples, newest first: i < count().
  size_t count() const { return written < kSeconds ? written : kSeconds; }
  const WaitSecond& newest(size_t i) const { return seconds[(written - 1 - i) % kSeconds]; }

  template <class A>
  void Fields(A& a) {
    a(rank, worker, comm, process, first, last, ran, has_run, main, main_wait_seconds,
      oldest_wait_seconds, uninterruptible, running, silent, main_running, main_runnable, written,
      seconds, stopped_since, tracer, snapshot, frozen_since, main_at_record, main_per_record,
      records, stopper, stopper_pid, stopper_uid);
  }
};

class WaitTracker {
 public:
  static constexpr size_t kMost = 4096;
  static constexpr size_t kTextCap = 512;

  void OnEvent(const Event& event, const Speaker& speaker, Timestamp t);
  void OnSamples(const SampleBatch& batch, const Speaker& speaker, Timestamp t);
  // The training has printed a record.
  void OnRecord();
  // Somebody has sent a signal that stops its target.
  void OnStopSignal(const SignalSent& signal);

  const std::map<ProcessKey, ProcessWaits>& processes() const { return processes_; }

  template <class A>
  void Fields(A& a) {
    a(processes_);
  }

 private:
  ProcessWaits* FindOrAdd(const Speaker& speaker, Timestamp t);

  std::map<ProcessKey, ProcessWaits> processes_;
};

}  // namespace rankscope::windows
