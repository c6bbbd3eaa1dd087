// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The daemon's end of the wrappers' socket: a source of begin, lines and end of each wrapped
// command. Everybody may connect (0666); who it is the kernel says. Loop thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "exporter/event_loop.h"
#include "exporter/owned_fd.h"
#include "exporter/run/run_session.h"
#include "exporter/source.h"

namespace rankscope::run {

class RunListener final : public exporter::Source {
 public:
  // Six descriptors each: with 256 runs 1,536, so the daemon raises its limit of open files.
  static constexpr size_t kMaxRuns = 256;
  // Half of it for one user: a node full of one user's tasks fits, and another user still finds
  // room.
  static constexpr size_t kMaxRunsPerUser = 128;
  static constexpr Duration kBeat = Milliseconds(100);

  struct Counters {
    int64_t accepted = 0;            // connections
    int64_t refused = 0;             // no room
    int64_t malformed = 0;           // messages and connections that were no wrapper's
    int64_t orphaned = 0;            // wrappers that died without a word, as of now
    int64_t without_descriptor = 0;  // connections for which there was no descriptor
  };

  struct Hooks {
    // A wrapper has said its last and waits (a second) for Answer: tick the engine, answer at once.
    std::function<void(const std::string& job_id)> on_end;
    // After a restart that restored the engine: the last Observation::seq of this wrapper's that it
    // holds. Absent: a wrapper's recording is delivered from its beginning. The slot counts the
    // wrappers of one job on this node.
    std::function<int64_t(const std::string& job_id, int slot)> resume_after;
  };

  explicit RunListener(std::string socket_path, Hooks hooks = {});
  ~RunListener() override;

  Status Start(exporter::EventLoop& loop, Sink& sink) override;
  void Stop() override;
  int64_t lost() const override;
  std::vector<Count> counts() const override {
    return {{"connections_without_descriptor", counters_.without_descriptor}};
  }

  // Sends the verdict to the wrappers of this job that wait for it; others do not hear it. `text`
  // may be empty: the wrapper then prints its own.
  void Answer(std::string_view job_id, std::string_view json, std::string_view text = {});

  Counters counters() const;
  size_t runs() const { return sessions_.size(); }

 private:
  void OnConnection();
  void OnBeat();
  void RestIfFull(int error);
  int Admit(const std::string& job_id, uint32_t uid) const;

  std::string socket_path_;
  Hooks hooks_;
  exporter::EventLoop* loop_ = nullptr;
  Sink* sink_ = nullptr;
  OwnedFd socket_;
  exporter::EventLoop::TimerId beat_ = 0;
  bool resting_ = false;  // until the next beat nobody is accepted
  std::vector<std::unique_ptr<RunSession>> sessions_;
  Counters counters_;
  int64_t lost_in_closed_ = 0;
};

}  // namespace rankscope::run
