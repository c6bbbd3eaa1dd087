// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// A small process of ours beside the command. It tells which signals were addressed to everybody
// (signal_vote.h), and it holds the read ends of the command's pipes: when the wrapper is gone,
// killed or finished before the last grandchild, it goes on copying to the same places and to the
// log, so that nobody dies of SIGPIPE who would have lived without us. Main thread; started before
// any other thread exists.
#pragma once

#include <sys/types.h>

#include <vector>

#include "detectors/model/result.h"
#include "exporter/loop/owned_fd.h"
#include "exporter/run/child.h"

namespace rankscope::run {

// The name of the guardian's process in ps and top.
inline constexpr char kGuardianName[] = "rankscope-guard";

class Guardian {
 public:
  // `life_fd` stays open in the guardian too: its other end hangs up when wrapper and guardian are
  // both gone.
  static Result<Guardian> Start(const StreamPipes& pipes, int log_fd, int life_fd);

  Guardian(Guardian&&) = default;
  Guardian& operator=(Guardian&&) = default;

  // Readable when the guardian has something to say; -1 when there is none.
  int fd() const { return gone_ ? -1 : control_.get(); }

  // Signals that the guardian received from a process; does not block.
  std::vector<int> ReadSignals();
  // The same, but first waits (a second at most) until the guardian has looked: what was sent to it
  // before has been said.
  std::vector<int> AskSignals();

  // It lets go of a stream that our own reader has closed, so that the command sees the broken
  // pipe. Any thread.
  void CloseStream(int stream);

  // Ends it, when the streams are at their end; Reap afterwards waits for that.
  void Dismiss();
  void Reap();
  // Leaves it behind with the streams that are still open; it ends with the last writer.
  void LeaveBehind();

 private:
  Guardian(pid_t pid, OwnedFd control) : pid_(pid), control_(std::move(control)) {}

  pid_t pid_ = -1;
  OwnedFd control_;    // stays open to the end: CloseStream may come from any thread
  bool gone_ = false;  // it died before us
};

}  // namespace rankscope::run
