// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The wrapper's end of the socket. Never blocks, never fails: a daemon that is away is asked again
// each second, and the wrapper judges by itself meanwhile. Observer thread only; Holds may be asked
// from any.
#pragma once

#include <array>
#include <atomic>
#include <optional>
#include <string>

#include "detectors/model/ids.h"
#include "detectors/model/time.h"
#include "exporter/loop/owned_fd.h"
#include "exporter/run/child.h"
#include "exporter/run/consumer.h"

namespace rankscope::run {

class DaemonLink {
 public:
  struct Passed {
    std::string job_id;
    ProcessKey root;
    int recording_fd = -1;  // borrowed, a folder
    int log_fd = -1;        // borrowed
    OwnedFd life_read;
    std::array<OwnedFd, kStreams> streams;  // copies of the pipes' read ends
  };
  static constexpr Duration kRetry = Seconds(1);
  static constexpr Duration kWakeInterval = Milliseconds(100);
  static constexpr Duration kAnswerPatience = Seconds(1);

  DaemonLink(std::string socket_path, Passed passed);

  bool connected() const { return static_cast<bool>(socket_); }
  // Whether this stream's pipe is still held here or by the daemon.
  bool Holds(int stream) const { return holds_[static_cast<size_t>(stream)].load(); }

  // Connects when it is time, hears what the daemon says, passes a wake-up on.
  void Poll(Timestamp now);
  // The recording has grown.
  void NewData() { wake_pending_ = true; }
  // When Poll is next needed; nullopt: at the next tick.
  std::optional<Timestamp> next_due() const;

  void Release(int stream);

  // Says that all is recorded and waits for the daemon's verdict, one second at most. Asks once
  // more for a daemon that was away.
  std::optional<Judgement> End();

 private:
  void Connect();
  void Hear();
  void Disconnect();

  std::string socket_path_;
  Passed passed_;
  OwnedFd socket_;
  std::array<std::atomic<bool>, kStreams> holds_{};
  std::array<bool, kStreams> daemon_holds_{};
  Timestamp next_try_;
  Timestamp next_wake_;
  bool wake_pending_ = false;
  std::optional<Judgement> answer_;
};

}  // namespace rankscope::run
