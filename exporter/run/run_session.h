// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// One wrapper as the daemon sees it: a stranger on a socket with a recording to follow. What it
// sends is bounded, checked and never trusted beyond its own job. When it dies without a word, its
// command's output is kept flowing and read on. Loop thread only, where no descriptor of the user's
// is touched: his own thread reads what he has handed over (run_files.h), a batch at a time, and
// the listener says when the next may be read and how much of it may be delivered.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "detectors/model/observation.h"
#include "detectors/model/result.h"
#include "detectors/model/sink.h"
#include "exporter/loop/event_loop.h"
#include "exporter/loop/owned_fd.h"
#include "exporter/run/child.h"
#include "exporter/run/peer.h"
#include "exporter/run/protocol.h"
#include "exporter/run/run_files.h"

namespace rankscope::run {

class RunSession {
 public:
  enum class State : uint8_t {
    kGreeting,   // connected, no Hello yet
    kChecking,   // what came with it is looked at
    kFollowing,  // the wrapper lives
    kEnding,     // it said that it has ended; the rest of its recording is read
    kEnded,      // it waits for the verdict
    kLosing,     // it died; the rest of its recording is read
    kOrphaned,   // the guardian, or we, read on
    kClosed,     // nothing left to do
  };

  // A wrapper says Hello at once.
  static constexpr Duration kGreetingPatience = Seconds(5);
  // It waits a second for the verdict; the rest is for a stopped one, and for files that are slow.
  static constexpr Duration kEndedPatience = Seconds(30);
  // Of one read of the user's files. He may hang for longer, and is said to.
  static constexpr Duration kReadPatience = Seconds(2);
  // What is read of a recording after its end: a recorder keeps at most its budget of 32 MiB.
  static constexpr int kMostLastReads = 64 * 1024 * 1024 / RunFiles::kBatchBytes;

  static constexpr int kLater = -2;

  using Job = std::function<std::function<void()>()>;

  struct Callbacks {
    // Whether this peer may speak for the job; the slot tells several wrappers of one job apart.
    // Negative: no; kLater: it is asked again with the next beat.
    std::function<int(const std::string& job_id, const Peer& peer)> admit;
    // Observations of this wrapper up to this sequence number have been delivered before, by an
    // earlier daemon.
    std::function<int64_t(const std::string& job_id, int slot)> resume_after;
    // Runs `job` on the user's thread; false: it cannot be now. `on_late`: it takes long.
    std::function<bool(Job job, std::function<void()> on_late)> submit;
    // Gives descriptors and files to the user's thread to be closed there.
    std::function<void(std::vector<OwnedFd> fds, RunFiles* files)> dispose;
    // Another wrapper of the same job has not told its end, or that its streams are closed: it is
    // not this one that tells the job's.
    std::function<bool(const RunSession& self, bool RunSession::*told)> has_company;
    // The exit status of the job's command: the first of its wrappers' that is a failure.
    std::function<int32_t(const std::string& job_id, int32_t wait_status, bool last)> settle_status;
    std::function<void()> on_ready;  // there is something to do for Deliver or WantsRead
    std::function<void(const std::string& job_id)> on_end;
    std::function<void()> on_malformed;
    std::function<void()> on_fds_lost;  // there was no descriptor for what a packet carried
    std::function<void()> on_refused;   // the user's thread has no room
    std::function<void(bool late)> on_late;
  };

  RunSession(OwnedFd socket, Peer peer, exporter::EventLoop& loop, Sink& sink, Callbacks callbacks);
  ~RunSession();
  RunSession(const RunSession&) = delete;
  RunSession& operator=(const RunSession&) = delete;

  State state() const { return state_; }
  const std::string& job_id() const { return job_id_; }
  const Peer& peer() const { return peer_; }
  uint32_t uid() const { return peer_.uid; }
  int slot() const { return slot_; }
  // Whether it may still tell how its job goes on: its wrapper lives, or what it left is read.
  bool speaks() const;
  bool end_told = false;
  bool closed_told = false;
  // Times that observations which the wrapper has recorded could not be read.
  int64_t gaps() const { return gaps_; }
  int64_t foreign() const { return foreign_; }

  // What the socket holds already.
  void Hear() { OnSocket(); }
  // Ten times a second: ends what has waited too long, looks again at what may have grown.
  void OnBeat();

  bool WantsRead() const;
  bool reads() const { return reading_ || !batch_.heard.empty(); }
  void Read();
  bool HasBatch() const { return !batch_.heard.empty(); }
  // Passes on at most `most` observations, and at most so many bytes of text and one more.
  void Deliver(size_t most, size_t most_bytes);

  // Sends the verdict and is done.
  void Answer(std::string_view json, std::string_view text, bool notifies);
  // Somebody has shown that the job is his.
  void Evict() { Close(); }

 private:
  void OnSocket();
  void OnPacket(Packet& packet);
  bool Greet(Packet& packet);
  void OnChecked(bool good);
  void TryToBegin();
  void OnPacketFollowing(uint8_t type, const Packet& packet);
  void OnWrapperGone();
  void BeginLastReads(State state);
  void OnBatch(Batch batch);
  void AfterBatch();
  void Orphan();
  void Release(size_t stream);
  void LetGo(size_t stream);
  void TakeOver();
  void EmitOwn(Observation observation);
  void Emit(Observation observation);
  void EmitExit(const RunMark& end);
  void EmitMark(RunMark::What what);
  void DropSocket();
  void Close();

  OwnedFd socket_;
  Peer peer_;
  exporter::EventLoop& loop_;
  Sink& sink_;
  Callbacks callbacks_;
  State state_ = State::kGreeting;
  Timestamp since_;  // in this state

  std::string job_id_;
  int slot_ = -1;
  ProcessKey root_;
  RunFiles* files_ = nullptr;  // given away by dispose: deleted on the user's thread
  OwnedFd life_;
  std::array<OwnedFd, kStreams> streams_;

  bool reading_ = false;  // the user's thread is at it
  bool late_ = false;     // and takes long
  bool behind_ = false;   // there may be more than was read
  int last_reads_ = 0;    // since the end
  struct Delivery {
    std::deque<Heard> heard;
    bool more = false;
    bool closed = false;
  };
  Delivery batch_;
  bool batch_open_ = false;  // its end has not been acted on
  bool take_over_ = false;   // the guardian is gone: the pipes are next
  bool draining_ = false;
  // Also while what came with Hello is looked at:
  bool end_said_ = false;
  bool gone_ = false;
  bool asks_ = false;  // it waits to be admitted
  std::array<bool, kStreams> released_{};
  int64_t gaps_ = 0;
  int64_t foreign_ = 0;
  std::shared_ptr<int> alive_ = std::make_shared<int>();  // for results that come after our end
};

}  // namespace rankscope::run
