// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// From the threads that copy to the one that reads text. Bounded: the copying threads never wait
// for it, blocks that do not fit are counted and the next one says how many bytes went before. Any
// thread pushes, one takes.
#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>

#include "detectors/model/time.h"
#include "exporter/run/child.h"

namespace rankscope::run {

struct QueueItem {
  enum class Kind : uint8_t {
    kBytes,     // a block of a stream, after `lost_before` bytes that are not here
    kClosed,    // the stream is at its end
    kRelease,   // our reader of this stream has gone
    kExited,    // the command has ended: wait_status, error
    kLogMoved,  // the log goes on elsewhere, as `error` says
    kFinish,    // nothing more comes
  };
  Kind kind = Kind::kBytes;
  int stream = 0;
  Timestamp t;
  std::string bytes;
  int64_t lost_before = 0;
  int wait_status = 0;
  std::string error;
};

class Queue {
 public:
  // Half a second of a stream at 32 MB/s, which is far above what any training prints; 16 MiB of
  // memory at worst.
  static constexpr size_t kMaxBytes = 16 << 20;
  // Small blocks (a line each) cost more than their bytes: about 120 B of bookkeeping, 8 MiB at
  // worst.
  static constexpr size_t kMaxBlocks = 64 * 1024;

  // What does not fit pushes out the oldest block of the stream that fills the queue more: how a
  // run ends is in its last bytes, and a flood on one stream leaves the other's alone.
  void PushBytes(int stream, std::string_view bytes, Timestamp t);
  void Push(QueueItem item);  // not bytes; always fits

  // Waits until there is something or `deadline` (monotonic) has come, and takes everything.
  std::deque<QueueItem> TakeUntil(Timestamp deadline);

 private:
  void DropOldest();

  std::mutex mutex_;
  std::condition_variable filled_;
  std::deque<QueueItem> items_;
  std::array<size_t, kStreams> bytes_{};
  size_t blocks_ = 0;
  std::array<int64_t, kStreams> lost_{};
};

}  // namespace rankscope::run
