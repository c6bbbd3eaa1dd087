// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// A process group over TCP on loopback, a star with rank 0 in the middle: enough to all-reduce
// gradients. One object per rank, one thread. Every error is a std::runtime_error that names the
// peer.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace sample_trainer {

class ProcessGroup {
 public:
  // Blocks until all ranks have met. Rank 0 accepts on `listen_fd` (its own, already listening);
  // the others connect to address:port. Each later wait lasts at most `timeout_s`.
  ProcessGroup(int rank, int world_size, const std::string& address, int port, int listen_fd,
               int timeout_s);
  ~ProcessGroup();
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  // Replaces `values` by their mean over all ranks; the same bits on every rank.
  void AllReduceMean(std::span<float> values);

 private:
  void Send(int peer, std::span<const float> values);
  void Receive(int peer, std::span<float> values);

  int rank_;
  int world_size_;
  std::vector<int> sockets_;  // by peer; rank 0 has one per rank, the others only sockets_[0]
};

}  // namespace sample_trainer
