// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The checkpoints that an attempt writes, as files: a save is all that its ranks write without a
// pause, so one of thousands of shards is one. When the newest whole one began and ended, how large
// it is, how often they come, what of the file system is left, and a file that its writer left
// behind unfinished. Bounded. Single writer.
#pragma once

#include <cstdint>
#include <limits>
#include <set>
#include <string>

#include "detectors/model/observation.h"
#include "detectors/windows/series/ring.h"
#include "detectors/windows/trackers/speaker.h"

namespace rankscope::windows {

// All files of one save.
struct SaveSeen {
  Timestamp begin, end;
  int64_t files = 0;
  int64_t bytes = 0;
  int64_t incomplete = 0;  // files
  std::string name;        // of the largest file
  int64_t largest = -1;    // bytes
  double free_bytes = -1;  // of the file system when it ended; -1 = not known

  bool present() const { return files > 0; }
  bool whole() const { return files > 0 && incomplete == 0; }
  double seconds() const { return (end - begin).seconds(); }
  template <class A>
  void Fields(A& a) {
    a(begin, end, files, bytes, incomplete, name, largest, free_bytes);
  }
};

// A file that was being written when its writer ended.
struct TornFile {
  Timestamp t;
  int32_t rank = -1;
  int64_t bytes = -1;
  std::string name;

  bool present() const { return bytes >= 0; }
  template <class A>
  void Fields(A& a) {
    a(t, rank, bytes, name);
  }
};

class CheckpointTracker {
 public:
  // Ranks write at once or one after the other; nothing for so long is the time between two saves.
  static constexpr double kPauseSeconds = 2;
  static constexpr size_t kIntervals = 16;

  void OnEvent(const Event& event, const Speaker& speaker, Timestamp t);
  void OnSamples(const SampleBatch& batch, const Speaker& speaker, Timestamp t);

  int64_t saves() const { return saves_; }
  const SaveSeen& newest() const { return newest_; }  // may be under way
  // That is over, and of which all files are complete.
  const SaveSeen& newest_whole(Timestamp now) const;
  const SaveSeen& before() const { return before_; }  // the save before the newest
  bool under_way(Timestamp now) const;
  double IntervalSeconds() const;  // median from begin to begin; NaN below two saves
  double free_bytes() const { return free_bytes_; }  // -1 = not known
  // What the file system loses from save to save, old ones that are deleted taken off; NaN below
  // three saves.
  double LossPerInterval() const;
  const TornFile& torn() const { return torn_; }

  template <class A>
  void Fields(A& a) {
    a(saves_, newest_, whole_, before_, intervals_, losses_, free_bytes_, torn_);
  }

 private:
  int64_t saves_ = 0;
  SaveSeen newest_, whole_, before_;
  Ring<double, kIntervals> intervals_;
  Ring<double, kIntervals> losses_;
  double free_bytes_ = -1;
  TornFile torn_;
};

}  // namespace rankscope::windows
