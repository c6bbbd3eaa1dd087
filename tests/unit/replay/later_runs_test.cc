// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Several runs in one file: the last one is judged. And errors that a run survives.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>

#include "detectors/document/verdict_json.h"
#include "exporter/replay/log_file.h"
#include "tests/unit/replay/support.h"

namespace rankscope::replay {
namespace {

using ::rankscope::testing::TempDir;

// A record each 20 steps of 0.41 s.
std::string Steps(int from, int to) {
  std::string text;
  for (int step = from; step < to; step += 20) {
    const double loss = 3.3 + 7.6 * std::exp(-step / 500.0) + 0.05 * std::sin(step * 1.7);
    char line[120];
    std::snprintf(line, sizeof line, "step %d | loss %.5f | lr 3.0e-04 | norm 0.50 | dt 411.0ms\n",
                  step, loss);
    text += line;
  }
  return text;
}

std::string Raised(const std::string& error, const std::string& code = "main()", int line = 120,
                   const std::string& function = "<module>") {
  return "Traceback (most recent call last):\n  File \"train.py\", line " + std::to_string(line) +
         ", in " + function + "\n    " + code + "\n" + error + "\n";
}

std::string Ended(const std::string& why, const std::string& at = "12:00:05") {
  return "slurmstepd: error: *** JOB 19 ON n1 CANCELLED AT 2024-11-11T" + at + " " + why + "***\n";
}

const std::string kPreempted = Ended("DUE TO PREEMPTION ");
const std::string kNodeFailure = Ended("DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS ");
const std::string kTimeLimit = Ended("DUE TO TIME LIMIT ");
const std::string kCancelled = Ended("", "18:00:05");
const std::string kReadError =
    Raised("tarfile.ReadError: unexpected end of data", "s = tarfile.open(f)", 120, "__next__");
const std::string kUncaught = Raised("ValueError: a row is empty");
const std::string kNoMemory = Raised(
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total "
    "capacity of 39.39 GiB of which 1.09 GiB is free.");
const std::string kNoModule =
    Raised("ModuleNotFoundError: No module named 'apex'", "import apex", 4);
const std::string kInterrupted = Raised("KeyboardInterrupt", "loss.backward()", 90);

std::string CodeOf(const std::string& text) {
  TempDir dir;
  dir.Write("a.log", text);
  const auto verdict = JudgeLog(dir / "a.log", std::nullopt);
  EXPECT_TRUE(verdict);
  return verdict ? verdict->code() : std::string();
}

struct Case {
  const char* what;
  std::string text;
  const char* code;
};

void Check(const std::vector<Case>& cases) {
  for (const Case& each : cases) EXPECT_EQ(CodeOf(each.text), each.code) << each.what;
}

TEST(LaterRuns, TheLastRunDecidesAfterAnActOfTheScheduler) {
  const std::string loaded = "=> loaded checkpoint out/ckpt.pt (step 900)\n";
  Check({
      {"cancelled", Steps(0, 1000) + kPreempted + Steps(900, 3000) + kCancelled, "X20"},
      {"raised", Steps(0, 1000) + kNodeFailure + loaded + Steps(900, 3000) + kReadError, "X1"},
      {"goes on without a step twice", Steps(0, 1000) + kPreempted + Steps(1000, 3000) + kReadError,
       "X1"},
      {"goes on, and says no end", Steps(0, 1000) + kPreempted + Steps(1000, 3000), "G1"},
      {"after a time limit", Steps(0, 1000) + kTimeLimit + loaded + Steps(900, 3000) + kCancelled,
       "X20"},
  });
}

TEST(LaterRuns, WhatAProgramDoesWhenItIsToldToEndIsNoRun) {
  Check({
      {"nothing", Steps(0, 1000) + kPreempted + "Loading\n", "F2"},
      {"two records", Steps(0, 1000) + kPreempted + Steps(1000, 1040), "F2"},
      {"a save in the time of grace",
       Steps(0, 1000) + kPreempted + Steps(1000, 1080) + "checkpoint saved\n", "F2"},
      {"a long save", Steps(0, 1000) + kTimeLimit + Steps(1000, 1400), "F3"},
      {"the peer is a record behind", Steps(0, 1000) + kPreempted + Steps(960, 1000), "F2"},
      {"twice", Steps(0, 1000) + kPreempted + Steps(900, 3000) + kPreempted, "F2"},
  });
}

TEST(LaterRuns, TheActBeforeIsAnEarlierAttempt) {
  TempDir dir;
  dir.Write("a.log", Steps(0, 1000) + kPreempted + Steps(900, 3000) + kCancelled);
  const auto verdict = JudgeLog(dir / "a.log", std::nullopt);
  ASSERT_TRUE(verdict);
  ASSERT_EQ(verdict->attempts_size(), 1);
  EXPECT_EQ(verdict->attempts(0).code(), "F2");
  EXPECT_EQ(VerdictToJson(*verdict).find("whether the job has run again"), std::string::npos);
}

TEST(LaterRuns, AStartThatFailedIsNotTheLast) {
  Check({
      {"another error behind the records", kNoMemory + Steps(0, 1000) + kReadError, "X1"},
      {"a shell starts it again",
       kNoMemory + "nohup: ignoring input\n" + Steps(0, 1000) + kCancelled, "X20"},
      {"it could not be loaded", kNoModule + Steps(0, 1000), "G1"},
      {"it could not be loaded, and was cancelled later", kNoModule + Steps(0, 1000) + kCancelled,
       "X20"},
      {"the next one cannot be loaded", Steps(0, 1000) + kNoMemory + kNoModule, "A1"},
  });
}

TEST(LaterRuns, RecordsThatABufferHeldBackAreNoRun) {
  const std::string late =
      Raised("ModuleNotFoundError: No module named 'onnx'", "import onnx", 104);
  const std::string inside =
      Raised("ModuleNotFoundError: No module named 'onnx'", "import onnx", 12, "export");
  EXPECT_EQ(CodeOf(kNoMemory + Steps(0, 1000)), "B1");
  EXPECT_EQ(CodeOf(kNoMemory), "B1");
  EXPECT_EQ(CodeOf(late + Steps(0, 1000)), "X1");
  EXPECT_EQ(CodeOf(inside + Steps(0, 1000)), "X1");
  EXPECT_EQ(CodeOf("[rank3]: " + Raised("ValueError: no") + Steps(0, 60) + "[rank0]: " +
                   Raised("torch.distributed.DistBackendError: NCCL error, remote process exited")),
            "X1")
      << "a peer's records, and its own end";
}

TEST(LaterRuns, AnErrorThatIsPassedOverEndsNothing) {
  const std::string skipped = "[ERROR] skipping shard-0.tar\n" + kReadError;
  Check({
      {"one record behind it", Steps(0, 1000) + skipped + Steps(1000, 1020) + kTimeLimit, "F3"},
      {"four records behind it", Steps(0, 1000) + kReadError + Steps(1000, 1080) + kTimeLimit,
       "F3"},
      {"cancelled", Steps(0, 1000) + skipped + Steps(1000, 1040) + kCancelled, "X20"},
      {"done", Steps(0, 1000) + kReadError + Steps(1000, 1080) + "Done.\n", "G1"},
  });
}

TEST(LaterRuns, AnErrorThatNothingFollowsIsTheEnd) {
  const std::string skipped = "[ERROR] skipping shard-0.tar\n" + kReadError;
  const std::string no_more = "[ERROR] retrying failed, giving up\n" + kReadError;
  Check({
      {"a limit behind it", Steps(0, 1000) + kReadError + kTimeLimit, "X1"},
      {"no record behind its words", Steps(0, 1000) + skipped, "X1"},
      {"a limit, and records that were held back",
       Steps(0, 1000) + kUncaught + Steps(1000, 1080) + kTimeLimit, "X1"},
      {"it gives up", Steps(0, 1000) + no_more + Steps(1000, 1020) + kCancelled, "X1"},
      {"a peer's record", Steps(0, 1000) + kReadError + Steps(1000, 1020) + kCancelled, "X1"},
  });
}

TEST(LaterRuns, AnInterruptEndsOneRun) {
  Check({
      {"it begins again", Steps(0, 1000) + "^C" + kInterrupted + Steps(0, 3000), "G1"},
      {"in the background",
       Steps(0, 1000) + kInterrupted + "nohup: ignoring input\nLoading\n" + Steps(0, 3000) +
           "Done.\n",
       "G1"},
      {"it does not", Steps(0, 1000) + "^C" + kInterrupted, "X20"},
      {"a peer goes on", Steps(0, 1000) + "^C" + kInterrupted + Steps(1000, 1020), "X20"},
  });
}

}  // namespace
}  // namespace rankscope::replay
