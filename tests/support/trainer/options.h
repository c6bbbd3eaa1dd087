// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The command line of sample_trainer, shared by the launcher and its ranks (which are started with
// the same arguments).
#pragma once

#include <string>

namespace sample_trainer {

enum class FaultKind {
  kNone,
  kException,    // prints an error and exits 1
  kSegv,         // dereferences a null pointer
  kKill,         // SIGKILLs itself
  kHang,         // stops before the all-reduce, for good
  kSleep,        // every step from `step` on takes `ms` longer
  kExit,         // exits with `code`, saying nothing
  kNan,          // a learning rate so large that the loss becomes NaN
  kPlateau,      // a learning rate that makes the loss rise and stay high
  kMissingFile,  // the data file does not exist
  kOneStep,      // a step budget of one
  kNoProgress,   // trains, and prints no line per step
};

struct Fault {
  FaultKind kind = FaultKind::kNone;
  int rank = -1;  // -1 = the last one
  int step = 30;
  int ms = 200;
  int code = 3;
};

struct Options {
  int ranks = 2;
  int steps = 200;
  int step_ms = 100;    // a step takes at least this long, as it would with a larger model
  int log_every = 5;    // steps
  int save_every = 50;  // steps; 0 = never
  int warmup = 0;       // steps of a linear warm-up of the learning rate
  int timeout_s = 600;  // of every wait for another rank
  float lr = 0.01f;
  float clip = 0;  // largest norm of the gradient; 0 = no limit
  std::string checkpoint = "checkpoint.bin";
  std::string resume;  // a checkpoint to start from
  std::string data;    // text file of samples; empty = synthetic data
  Fault fault;
};

inline constexpr char kUsage[] =
    "usage: sample_trainer [OPTION...]\n"
    "Trains a small classifier in several processes, as a launcher and its ranks.\n"
    "  --ranks N --steps N --step-ms N --log-every N --save-every N --warmup N --timeout S\n"
    "  --lr X --clip X --checkpoint PATH --resume PATH --data PATH\n"
    "  --fault KIND[:KEY=VALUE,...]   makes a failure; keys: rank, step, ms, code; kinds:\n"
    "      exception segv kill hang sleep exit nan plateau missing_file one_step no_progress\n";

// Throws std::invalid_argument with a sentence for the user.
Options ParseOptions(int argc, char** argv);

}  // namespace sample_trainer
