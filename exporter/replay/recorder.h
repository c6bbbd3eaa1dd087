// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The recorder: a sink that keeps what passes the door in a directory of bounded size (see
// segments.h for its files). It stands before the engine: each observation is given first to the
// recorder and then to the engine, so that the state at the head of a segment is the engine's after
// all observations before it. Nothing here throws, waits or fails its caller; what could not be
// kept is counted. One thread. A process that may run under `ulimit -f` should ignore SIGXFSZ.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>

#include "detectors/model/observation.h"
#include "detectors/model/result.h"
#include "detectors/model/sink.h"
#include "detectors/recording/recording.h"
#include "exporter/loop/owned_fd.h"
#include "exporter/replay/lane.h"

namespace rankscope::replay {

// 64 MiB per job: 4 x 8 bulk, 8 facts, 24 progress.
struct RecorderBudgets {
  int64_t segment_bytes = 8 << 20;
  size_t segments = 4;
  int64_t facts_bytes = 8 << 20;
  int64_t progress_bytes = 24 << 20;
  size_t buffer_bytes = 64 << 10;
};

struct RecorderHooks {
  // Whether a line of a segment that goes away is worth keeping; null = none is.
  std::function<bool(std::string_view line)> keep_line;
  // The engine's state now; null = segments begin without one.
  std::function<EngineState()> state;
};

class Recorder final : public Sink {
 public:
  // Keeps a duplicate of `directory_fd`.
  Recorder(int directory_fd, recording::Header header, RecorderHooks hooks = {},
           RecorderBudgets budgets = {});
  ~Recorder() override;

  // Begins the first segment, or goes on behind the segments that are there. An error means that
  // nothing can be written now; the recorder then tries again by itself.
  Status Open();

  void Accept(const Observation& observation) override;

  // For who encodes elsewhere: facts have a lane of their own.
  static bool IsFact(const Observation& observation);
  // One whole frame of recording::AppendObservation.
  void AcceptFrame(Timestamp t, std::string_view frame, bool fact);
  // Observations that did not come this far, `facts` of them facts: the recording says so.
  void Skip(int64_t observations, int64_t facts);

  // What there is too much goes at once.
  void SetBudgets(RecorderBudgets budgets);

  // Hands everything to the kernel; Sync, to the disk.
  void Flush();
  void Sync();

  // Closes every file, the directory too: of a job that has ended hardly anything comes. Until Wake
  // opens them again, at where they end, all that comes is lost. `directory_fd` is duplicated.
  void Rest();
  void Wake(int directory_fd);
  bool resting() const { return !directory_; }

  struct Counters {
    int64_t bytes = 0;          // appended to all files
    int64_t errors = 0;         // system calls that failed
    int64_t observations = 0;   // accepted
    int64_t lost = 0;           // observations that no bulk segment has
    int64_t facts_dropped = 0;  // past the budget of facts.rec, or not written
    int64_t progress_dropped = 0;
    int last_error = 0;   // errno
    bool broken = false;  // writing fails now; tried again from time to time
  };
  Counters counters() const;
  // Whether everything accepted is in the files, or in the state that a later segment begins with.
  bool exact() const { return uncovered_ == 0 && facts_dropped_ == 0; }

 private:
  bool StartSegment();
  std::string SegmentHead(int64_t number);
  void Lose(int64_t observations);
  void Break(Timestamp now);
  void Retire(int64_t number);
  size_t SegmentsBesideANewOne() const;
  void RetireOld(size_t most);
  void MakeRoom(Timestamp now);
  void AppendFact(std::string_view frame);
  void KeepLine(const Observation& observation);
  bool OpenLane(Lane& lane, const char* name);

  OwnedFd directory_;
  const recording::Header header_;
  const RecorderHooks hooks_;
  RecorderBudgets budgets_;

  Lane bulk_;
  Lane facts_;
  Lane progress_;
  std::deque<int64_t> segments_;  // on disk, oldest first; the last is being written unless broken_
  int64_t next_number_ = 1;
  bool broken_ = false;
  Timestamp broken_since_;
  int64_t broken_bytes_ = 0;  // not written since
  int64_t unflushed_ = 0;     // observations in the bulk buffer
  Timestamp now_;
  std::string scratch_;

  int64_t bytes_ = 0;
  int64_t other_errors_ = 0;
  int other_last_error_ = 0;
  int64_t observations_ = 0;
  int64_t lost_ = 0;
  int64_t uncovered_ = 0;  // lost, and in no engine state that a later segment begins with
  int64_t facts_dropped_ = 0;
  int64_t progress_dropped_ = 0;
};

}  // namespace rankscope::replay
