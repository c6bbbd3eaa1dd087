// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// A communicator of the stub libnccl: ranks of one host meet in shared memory and count there which
// collective each of them has reached on its stream. A collective is through when all have reached
// it. Objects live until the process ends; events may ask for them at any time.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace stub_gpu {

inline constexpr int kMaxRanks = 64;
inline constexpr int kMaxSplits = 16;

// In shared memory; zero-filled is its first state.
struct Meeting {
  std::atomic<int32_t> joined;
  std::atomic<int32_t> left;
  std::atomic<uint64_t> reached[kMaxRanks];
  std::atomic<int64_t> colour_and_key[kMaxSplits][kMaxRanks];  // 0: has not said yet
};

class Communicator {
 public:
  // Waits until all have joined or somebody aborts. The name is shared by the ranks.
  Communicator(const std::string& name, int rank, int ranks);

  bool Valid() const { return meeting_ != nullptr; }
  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  // The next collective, counted from 1.
  uint64_t Next() { return ++sequence_; }
  // Its kernel runs on this rank's card: number `sequence` has been reached.
  void Reach(uint64_t sequence);
  bool Complete(uint64_t sequence) const;
  // A part of this one with all ranks of the same colour, in order of key; null for a colour below
  // 0. Waits for all ranks.
  Communicator* Split(int colour, int key);

 private:
  std::string name_;
  int rank_;
  int ranks_;
  int splits_ = 0;
  Meeting* meeting_ = nullptr;
  std::atomic<uint64_t> sequence_{0};
};

}  // namespace stub_gpu
