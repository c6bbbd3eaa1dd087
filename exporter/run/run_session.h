// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// One wrapper as the daemon sees it: a stranger on a socket with a recording to follow. What it
// sends is bounded, checked and never trusted beyond its own job. When it dies without a word, its
// command's output is kept flowing and read on. Loop thread only.
#pragma once

#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "detectors/logs/assembler.h"
#include "detectors/model/observation.h"
#include "detectors/model/result.h"
#include "detectors/model/sink.h"
#include "exporter/event_loop.h"
#include "exporter/owned_fd.h"
#include "exporter/replay/follower.h"
#include "exporter/run/child.h"
#include "exporter/run/protocol.h"

namespace rankscope::run {

class RunSession {
 public:
  enum class State : uint8_t {
    kGreeting,   // connected, no Hello yet
    kFollowing,  // the wrapper lives
    kEnded,      // it said so and waits for the verdict
    kOrphaned,   // it died; the guardian, or we, read on
    kClosed,     // nothing left to do
  };

  // A wrapper says Hello at once.
  static constexpr Duration kGreetingPatience = Seconds(5);
  // It waits a second for the verdict; the rest is for a stopped one.
  static constexpr Duration kEndedPatience = Seconds(30);

  struct Callbacks {
    // Whether this job id may be used by this user; the slot tells several wrappers of one job
    // apart. Negative: no.
    std::function<int(const std::string& job_id, uint32_t uid)> admit;
    // Observations of this wrapper up to this sequence number have been delivered before, by an
    // earlier daemon.
    std::function<int64_t(const std::string& job_id, int slot)> resume_after;
    std::function<void(const std::string& job_id)> on_end;
    std::function<void()> on_malformed;
  };

  RunSession(OwnedFd socket, uint32_t uid, exporter::EventLoop& loop, Sink& sink,
             Callbacks callbacks);
  ~RunSession();
  RunSession(const RunSession&) = delete;
  RunSession& operator=(const RunSession&) = delete;

  State state() const { return state_; }
  const std::string& job_id() const { return job_id_; }
  uint32_t uid() const { return uid_; }
  int slot() const { return slot_; }
  // Observations that the wrapper has recorded and we could not read, and messages that were none.
  int64_t lost() const { return follower_ ? follower_->gaps() : 0; }

  // Ten times a second: reads what the recording has gained, ends what has waited too long.
  void OnBeat();
  // Sends the verdict and is done.
  void Answer(std::string_view json, std::string_view text);

 private:
  void OnSocket();
  void OnPacket(Packet& packet);
  bool Greet(Packet& packet);
  void Follow();
  void FollowToEnd();
  void Pass(const Observation& observation);
  void PassLine(const Observation& observation);
  void Emit(Observation observation);
  void EmitMark(RunMark::What what);
  void Release(int stream);
  void Orphan();
  void TakeOver();
  void ReadLogTail();
  void ReadStream(int stream);
  void FeedLog(std::string_view bytes);
  void CloseOrphan();
  void Close();

  OwnedFd socket_;
  uint32_t uid_;
  exporter::EventLoop& loop_;
  Sink& sink_;
  Callbacks callbacks_;
  State state_ = State::kGreeting;
  Timestamp since_;  // in this state

  std::string job_id_;
  int slot_ = 0;
  ProcessKey root_;
  OwnedFd log_;
  OwnedFd life_;
  std::array<OwnedFd, kStreams> streams_;
  std::unique_ptr<replay::Follower> follower_;
  bool behind_ = false;  // the recording may hold more than was read

  std::array<int64_t, kStreams> recorded_{};  // where the recorded text of each stream ends
  logs::LineAssembler orphan_lines_;
  int64_t log_offset_ = 0;  // of the log, up to which its text was read
  bool draining_ = false;   // the guardian is gone too
};

}  // namespace rankscope::run
