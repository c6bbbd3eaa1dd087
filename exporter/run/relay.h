// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The way of the command's bytes: pipe -> log -> our own stdout or stderr, and a copy to the queue
// of the thread that reads text. One thread per stream, so that a reader who stops on one stream (a
// pager) holds up that stream alone, exactly as a plain pipe would. The queue never holds anybody
// up: what does not fit is counted there.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <latch>
#include <mutex>
#include <string_view>
#include <thread>
#include <utility>

#include "exporter/loop/owned_fd.h"
#include "exporter/run/queue.h"

namespace rankscope::run {

// The log and the queue behind one lock: both get the blocks of the two streams in the same order.
class Tap {
 public:
  // Another log, once, when writing the first has failed with this errno; empty: there is none.
  using Elsewhere = std::function<OwnedFd(int error)>;

  // `log_fd` -1: there is no log.
  Tap(int log_fd, Queue& queue, Elsewhere elsewhere = {})
      : log_fd_(log_fd), queue_(queue), elsewhere_(std::move(elsewhere)) {}

  void Take(int stream, std::string_view bytes);

  // Bytes that are not in the log, and the errno of the first write that failed. The log ends
  // there: what comes later is not appended, so that its offsets stay those of the stream up to the
  // end.
  int64_t lost_bytes() const { return lost_bytes_.load(std::memory_order_relaxed); }
  int log_error() const { return log_error_.load(std::memory_order_relaxed); }

 private:
  size_t Log(std::string_view bytes);

  std::mutex mutex_;
  int log_fd_;
  Queue& queue_;
  Elsewhere elsewhere_;
  OwnedFd other_log_;
  std::atomic<int64_t> lost_bytes_ = 0;
  std::atomic<int> log_error_ = 0;
};

class Relay {
 public:
  struct Hooks {
    // Our reader has gone: everybody else who holds the pipe's read end shall let go of it.
    std::function<void(int stream)> release;
    // Whether they have; until then the stream is drained on, or the command would block where it
    // should get EPIPE.
    std::function<bool(int stream)> released;
    // The stream is at its end, for whatever reason. Last call of the thread.
    std::function<void(int stream)> done;
  };

  // Makes the thread, which waits until `begin` opens. Where there is no room for one more thread,
  // or descriptor, it does not work, and nothing of the stream's is touched.
  Relay(int stream, int out_fd, Tap& tap, Hooks hooks, std::latch& begin);
  ~Relay();
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  bool works() const { return stop_ && thread_.joinable(); }
  // Before `begin` opens: what is copied from. Without it there is nothing to do.
  void Take(OwnedFd in) { in_ = std::move(in); }

  // Stops before the end of the stream, at a block's edge; what the pipe still holds is the
  // guardian's.
  void Stop();

  bool ended() const { return ended_.load(std::memory_order_acquire); }
  // Bytes that our own stdout or stderr did not take (its disk is full); a broken pipe is not
  // counted, the command sees it.
  int64_t unwritten_bytes() const { return unwritten_bytes_.load(std::memory_order_relaxed); }

 private:
  void Run();
  bool WaitReadable();
  void Drain(char* block);

  int stream_;
  OwnedFd in_;
  int out_fd_;
  Tap& tap_;
  Hooks hooks_;
  OwnedFd stop_;
  std::atomic<bool> ended_ = false;
  std::atomic<int64_t> unwritten_bytes_ = 0;
  std::latch& begin_;
  std::thread thread_;
};

}  // namespace rankscope::run
