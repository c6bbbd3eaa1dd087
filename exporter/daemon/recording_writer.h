// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// One job's recording as the thread of the disk sees it. The loop hands over whole frames and never
// waits; a directory that cannot be opened or written is tried again, and what was lost meanwhile
// is counted. Made on the loop thread, used on the disk's, read on both.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "detectors/model/observation.h"
#include "detectors/recording/recording.h"
#include "exporter/replay/recorder.h"

namespace rankscope::exporter {

// Frames on their way from the loop to the disk.
struct RecordedFrames {
  struct Frame {
    Timestamp t;
    uint32_t bytes = 0;
    bool fact = false;
  };
  std::string bytes;
  std::vector<Frame> frames;
  int64_t lost = 0;        // observations that did not find room before these
  int64_t lost_facts = 0;  // of them

  bool empty() const { return frames.empty() && lost == 0; }
  // What they take while they wait.
  size_t held() const { return bytes.size() + frames.size() * sizeof(Frame); }
  // Observations that nobody keeps are lost; the next frames say so.
  void Add(const Observation& observation);
  // Says of the next ones that these were lost.
  void Drop();
};

// What all recordings have written since the start. Any thread.
struct RecordingTotals {
  std::atomic<int64_t> bytes = 0;
  std::atomic<int64_t> errors = 0;
  std::atomic<int64_t> lost = 0;
};

class RecordingWriter {
 public:
  RecordingWriter(std::string directory, recording::Header header, int64_t job_bytes,
                  std::shared_ptr<RecordingTotals> totals);

  // On the disk's thread, in this order.

  // Goes on with the recording that is there; one that is finished belonged to an earlier job of
  // this name and is put aside. `preamble` begins a new one.
  void Open(RecordedFrames preamble);
  // To the kernel, so that a reader finds them when the daemon is killed.
  void Append(const RecordedFrames& frames);
  void SetBudget(int64_t job_bytes);
  // Its job has ended: keeps no file open, and opens them for what still comes.
  void Rest();
  // The mark that its verdict is on the disk; it names the owner.
  void MarkFinished(std::optional<uint32_t> uid);
  // There is a next attempt.
  void GoOn();

  // Any thread.

  const std::string& directory() const { return directory_; }
  // Whether what is on the disk replays to what was judged.
  bool exact() const;
  // Why it cannot be written now; empty when it can.
  std::string trouble() const;

  // The content of a mark, and the owner that it names.
  static std::string MarkOf(std::optional<uint32_t> uid);
  static std::optional<uint32_t> OwnerIn(const std::string& mark);

 private:
  bool TryOpen(Timestamp now);
  bool Wake();
  void Fail(const std::string& what);
  void Note();

  const std::string directory_;
  const recording::Header header_;
  const std::shared_ptr<RecordingTotals> totals_;
  replay::RecorderBudgets budgets_;
  RecordedFrames preamble_;
  std::unique_ptr<replay::Recorder> recorder_;  // null: it could not be opened
  std::optional<Timestamp> tried_;              // to open it
  bool rests_ = false;
  int64_t lost_before_ = 0;  // it could be opened
  replay::Recorder::Counters noted_;

  mutable std::mutex mutex_;
  bool exact_ = true;
  std::string trouble_;
};

// To the disk, by path and from any thread: whoever writes goes on meanwhile. False: not all of it.
bool SyncRecording(const std::string& directory);

// The budgets of a recording that may take so much room.
replay::RecorderBudgets BudgetsOf(int64_t job_bytes);

}  // namespace rankscope::exporter
