// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/loop/command.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <csignal>
#include <fstream>

#include "tests/unit/agent/temporary_directory.h"

namespace rankscope::exporter {
namespace {

using End = CommandOutcome::End;

CommandOutcome Shell(std::string text, Duration deadline = Seconds(20), size_t most = 1 << 20) {
  return RunCommand({{"/bin/sh", "-c", std::move(text)}, {"GREETING=hello"}, deadline, most});
}

TEST(Command, OutputAndComplaintApart) {
  const CommandOutcome outcome = Shell("echo $GREETING; echo oh >&2; cat");
  EXPECT_EQ(outcome.end, End::kDone);
  EXPECT_EQ(outcome.output, "hello\n");
  EXPECT_EQ(outcome.complaint, "oh\n");
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_GT(outcome.took.ns, 0);
}

TEST(Command, NothingOfTheDaemonsEnvironment) {
  setenv("A_SECRET", "s3cret", 1);
  EXPECT_EQ(Shell("echo \"[$A_SECRET]\"").output, "[]\n");
}

TEST(Command, FailureKeepsWhatWasSaid) {
  const CommandOutcome outcome = Shell("echo part; echo why >&2; exit 3");
  EXPECT_EQ(outcome.end, End::kFailed);
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_EQ(outcome.output, "part\n");
  EXPECT_EQ(outcome.complaint, "why\n");
  EXPECT_EQ(Shell("kill -9 $$").exit_code, 128 + 9);
}

TEST(Command, DeadlineEndsItAndItsChildren) {
  TemporaryDirectory folder;
  const std::string file = folder.path() + "/pid";
  const CommandOutcome outcome =
      Shell("sleep 100 & echo $! > " + file + "; wait", Milliseconds(600));
  EXPECT_EQ(outcome.end, End::kLate);
  pid_t child = 0;
  std::ifstream(file) >> child;
  ASSERT_GT(child, 0);
  // Killed with its group; whoever inherits it reaps it.
  for (int i = 0; i < 500 && kill(child, 0) == 0; ++i) {
    std::ifstream stat("/proc/" + std::to_string(child) + "/stat");
    std::string pid, name, state;
    stat >> pid >> name >> state;
    if (state == "Z") break;
    usleep(10'000);
  }
  std::ifstream stat("/proc/" + std::to_string(child) + "/stat");
  std::string pid, name, state = "gone";
  stat >> pid >> name >> state;
  EXPECT_TRUE(state == "gone" || state == "Z") << state;
}

TEST(Command, OneThatClosesItsOutputAndGoesOn) {
  EXPECT_EQ(Shell("exec >&- 2>&-; sleep 100", Milliseconds(300)).end, End::kLate);
}

TEST(Command, TooMuchIsAnErrorAndNotAPart) {
  EXPECT_EQ(Shell("yes", Seconds(20), 10'000).end, End::kTooLong);
  EXPECT_EQ(Shell("head -c 10000 /dev/zero", Seconds(20), 10'000).end, End::kDone);
}

TEST(Command, LongComplaintsAreCutAndDoNotBlock) {
  const CommandOutcome outcome = Shell("head -c 1000000 /dev/zero >&2; echo done");
  EXPECT_EQ(outcome.output, "done\n");
  EXPECT_LE(outcome.complaint.size(), 400u);
  EXPECT_TRUE(Shell("seq 1000000 >&2; echo why >&2").complaint.ends_with("\nwhy\n"));
}

TEST(Command, OneThatIsNotThere) {
  const CommandOutcome outcome = RunCommand({{"/nonexistent/scontrol"}, {}});
  EXPECT_EQ(outcome.end, End::kNotStarted);
  EXPECT_NE(outcome.complaint.find("/nonexistent/scontrol"), std::string::npos);
  EXPECT_EQ(RunCommand({}).end, End::kNotStarted);
}

}  // namespace
}  // namespace rankscope::exporter
