// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What the stub trainer is told to do: a file of lines, each a setting of the run or something that
// happens to ranks. Throws std::invalid_argument naming the line.
#pragma once

#include <cstdint>
#include <istream>
#include <limits>
#include <string>
#include <vector>

namespace stub_trainer {

enum class Act {
  kSleep,     // ms on the host before each step
  kSave,      // the same, and says that a checkpoint is written
  kEvaluate,  // the same, and says what the validation loss is
  kLeave,     // never comes back from the host
  kSpin,      // the same, on the CPU
  kBlock,     // enters its collectives, and none gets through
  kSlow,      // kernels take this many times as long
  kAllocate,  // bytes more on the card; ends with an error where they are refused, unless `caught`
  kFault,     // CUDA fails with this code from now on
  kExit,      // with this code
  kRaise,     // once the file is there: its text on stderr, and the end with 1
};

struct Happening {
  Act act = Act::kSleep;
  int rank = -1;  // -1: all
  double value = 0;
  int64_t from = 0;
  int64_t until = std::numeric_limits<int64_t>::max();  // the step behind the last
  int64_t every = 1;
  bool caught = false;
  std::string file;

  bool Due(int own_rank, int64_t step) const {
    return (rank < 0 || rank == own_rank) && step >= from && step < until &&
           (step - from) % every == 0;
  }
};

struct Script {
  int64_t ranks = 2;
  int64_t steps = 100;
  int64_t step_ms = 5;  // on the host, of each step
  int64_t launches = 40;
  int64_t graphs = 0;
  int64_t kernel_us = 20;
  int64_t collectives = 2;
  int64_t collective_bytes = 4 << 20;
  int64_t to_device_bytes = 1 << 20;
  int64_t memory_bytes = 1 << 30;
  int64_t print = 1;                 // every so many steps; 0 = never a word
  int64_t late_ms = 0;               // until the libraries are loaded
  int64_t synchronize_launches = 0;  // 1: waits for each, as with CUDA_LAUNCH_BLOCKING
  int64_t watchdog = 1;              // a thread asks the events of collectives, as PyTorch's does
  std::vector<Happening> happenings;
};

Script ReadScript(std::istream& text);

inline constexpr char kUsage[] = R"(stub_trainer SCRIPT

Ranks that train on stub libraries instead of a card. SCRIPT is a file:

  ranks 8                      settings, each with a default: ranks steps step_ms launches graphs
  steps 200                    kernel_us collectives collective_bytes to_device_bytes memory_bytes
  print 0                      print late_ms synchronize_launches watchdog
  rank 2 sleep 500 from 40 until 60
  rank 5 leave at 30           never enters the collectives of step 30; `spin` does so on the CPU
  all block at 30              entered by all, and nobody gets through
  rank 0 save 20000 from 50 every 50
  all evaluate 3000 from 50 every 50
  rank 3 slow 1.2
  rank 1 allocate 96636764160 at 10 caught
  rank 4 fault 700 at 12
  rank 6 exit 3 at 12
  rank 7 raise FILE            once FILE is there: says what it holds on stderr, and ends with 1

Libraries: STUB_GPU_LIBRARIES (a folder), else those of the build. Their own counts go to STUB_GPU_COUNTS.
)";

}  // namespace stub_trainer
