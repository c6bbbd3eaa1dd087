// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The main thread's part while the command runs: its end, and the signals that are meant for it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "detectors/model/time.h"
#include "exporter/loop/owned_fd.h"
#include "exporter/run/child.h"
#include "exporter/run/guardian.h"
#include "exporter/run/queue.h"
#include "exporter/run/signal_vote.h"

namespace rankscope::run {

// A stream of ours that is a terminal, and the command's that stands for it.
struct TerminalPair {
  int terminal = -1;
  OwnedFd master;
};

class Supervisor {
 public:
  // `signal_fd` reads all signals; `done_fd` counts the streams that have ended.
  Supervisor(const Child& child, std::optional<Guardian>& guardian, Queue& queue,
             std::vector<TerminalPair> terminals, int signal_fd, int done_fd, int streams,
             Duration drain);

  // Until the command has ended and its streams have, or the drain time is over. Returns the wait
  // status. The command stays a zombie.
  int Run(const std::string& exec_error);

 private:
  void Wait();
  void ReadGuardian();
  void ReadSignals();
  void FromKernel(int signo);
  void Resize();
  void PassOnDue();
  void PassOn(int signo);
  void StopOurselves(int signo);
  void Reap();
  void ReadDone();

  const Child& child_;
  std::optional<Guardian>& guardian_;
  Queue& queue_;
  std::vector<TerminalPair> terminals_;
  int signal_fd_;
  int done_fd_;
  int streams_left_;
  Duration drain_;
  SignalVote vote_;
  std::string exec_error_;
  bool exited_ = false;
  bool give_up_ = false;
  int wait_status_ = 0;
  Timestamp drain_until_;
};

}  // namespace rankscope::run
