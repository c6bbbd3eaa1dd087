// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Words of a card that fails are denied where the log of the only kernel that could know was read
// without a gap and says nothing, and nowhere else: what was not seen denies nothing.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/engine/driver.h"

namespace rankscope::engine {
namespace {

using namespace rankscope::testing;  // NOLINT: the tests' own vocabulary

constexpr int32_t kUnknown = 0;
const std::vector<std::string> kPython = {"/usr/bin/python3", "train.py"};
const std::vector<std::string> kScript = {"bash", "train.sh"};

SourceState Kmsg(Availability state, int64_t lost = 0) {
  SourceState told;
  told.source = 4;
  told.name = "kmsg";
  told.state = state;
  told.lost = lost;
  told.lost_untold = lost;
  return told;
}

void Start(Tape& tape, double second, ProcessKey key, const std::vector<std::string>& argv) {
  ProcessStart start;
  start.key = key;
  start.parent = key.pid == 100 ? ProcessKey{50, 1} : ProcessKey{100, 1};
  start.comm = argv[0].substr(argv[0].rfind('/') + 1);
  start.argv = argv;
  start.job_id = "j1";
  start.complete = true;
  tape.Add(second, std::move(start));
}

// Trains, says at `end` that its card fails, and fails; the kernel's log is read from the start.
Tape Failing(const std::vector<std::string>& argv, int32_t world_size, double end = 32,
             double kmsg_since = 0) {
  Tape tape;
  tape.Add(kmsg_since, Kmsg(Availability::kUp));
  tape.Begin(0.1, argv, world_size, {100, 1});
  Start(tape, 0.2, {100, 1}, argv);
  tape.Train(1, 1, static_cast<int>(2 * end) - 4, 0.5);
  tape.Say(end,
           "Traceback (most recent call last):\n"
           "  File \"/home/lena/vision/train.py\", line 107, in train\n"
           "    loss.backward()\n"
           "torch.AcceleratorError: CUDA error: uncorrectable ECC error encountered",
           2);
  tape.Exit(end + 1, {100, 1}, 1 << 8);
  tape.End(end + 1, 1 << 8);
  tape.Closed(end + 1);
  return tape;
}

bool IsDenied(Tape tape, double until = 60) {
  tape.Finish(until);
  const proto::Verdict verdict = JudgeTape(tape);
  if (verdict.code() == "B2") {
    EXPECT_LE(verdict.ground(), proto::GROUND_ONE_SOURCE);
  }
  return verdict.code() != "B2";
}

TEST(KernelLogDenial, HoldsWhereAllRanksAreHere) {
  EXPECT_TRUE(IsDenied(Failing(kScript, 1)));
  EXPECT_TRUE(IsDenied(Failing(kPython, 1)));
  EXPECT_TRUE(IsDenied(Failing(kPython, kUnknown))) << "one program, and no number of ranks";
}

TEST(KernelLogDenial, WhereTheRanksAreIsNotKnown) {
  EXPECT_FALSE(IsDenied(Failing(kScript, kUnknown))) << "the script may start them anywhere";
  EXPECT_FALSE(IsDenied(Failing({"srun", "python3", "train.py"}, kUnknown)));
  EXPECT_FALSE(IsDenied(Failing({"python3", "-m", "torch.distributed.run"}, kUnknown)));
  EXPECT_FALSE(IsDenied(Failing(kPython, 2))) << "one of two is seen";
  for (const char* relay : {"ssh", "srun", "raylet"}) {
    Tape tape = Failing(kPython, kUnknown);
    Start(tape, 3, {101, 2}, {relay, "n2", "python3 train.py"});
    EXPECT_FALSE(IsDenied(std::move(tape))) << relay;
  }
  Tape helpers = Failing(kPython, kUnknown);
  Start(helpers, 3, {101, 2}, {"/usr/bin/nvidia-smi", "-L"});
  Start(helpers, 4, {102, 2}, {"/usr/bin/python3", "-c", "from multiprocessing.spawn import x"});
  EXPECT_TRUE(IsDenied(std::move(helpers))) << "its own helpers print nothing of other nodes";
}

TEST(KernelLogDenial, RecordsThatWereLostMayHaveBeenTheDrivers) {
  for (const double told : {20.0, 31.0, 32.5}) {
    Tape tape = Failing(kPython, 1);
    tape.Add(told, Kmsg(Availability::kUp, 3));
    EXPECT_FALSE(IsDenied(std::move(tape))) << told;
  }
}

TEST(KernelLogDenial, ALossOfAnotherTimeChangesNothing) {
  Tape after = Failing(kPython, 1);
  after.Add(50, Kmsg(Availability::kUp, 3));
  EXPECT_TRUE(IsDenied(std::move(after))) << "the log was read until long behind the words";
  Tape before = Failing(kPython, 1, 150);
  before.Add(20, Kmsg(Availability::kUp, 3));
  EXPECT_TRUE(IsDenied(std::move(before), 180)) << "more than a minute before the words";
  Tape again = Failing(kPython, 1, 150);
  again.Add(20, Kmsg(Availability::kUp, 3));
  again.Add(149, Kmsg(Availability::kUp, 9));
  EXPECT_FALSE(IsDenied(std::move(again), 180));
}

TEST(KernelLogDenial, WhatNobodyReadIsNotSilent) {
  EXPECT_FALSE(IsDenied(Failing(kPython, 1, 32, 20))) << "it came up after the job";
  Tape down = Failing(kPython, 1);
  down.Add(31.5, Kmsg(Availability::kDown));
  EXPECT_FALSE(IsDenied(std::move(down)));
  Tape later = Failing(kPython, 1);
  later.Add(45, Kmsg(Availability::kDown));
  EXPECT_TRUE(IsDenied(std::move(later))) << "what was silent then stays so";
  Tape away = Failing(kPython, 1);
  Epoch epoch{1'750'000'000'000'000'000, 1000, "boot-1"};
  epoch.away_since = AtSecond(25);
  away.Add(30, epoch);
  away.Add(30.1, Kmsg(Availability::kUp));
  EXPECT_FALSE(IsDenied(std::move(away)));
}

}  // namespace
}  // namespace rankscope::engine
