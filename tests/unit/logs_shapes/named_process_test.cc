// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Launchers of MPI that name a process in one line and say in the next how it ended.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string_view>
#include <variant>
#include <vector>

#include "detectors/logs/reader.h"
#include "tests/unit/logs_shapes/feed.h"

namespace rankscope::logs {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

std::vector<Incident> Read(std::string_view text, bool restart = false) {
  Reader reader;
  std::vector<Incident> incidents;
  for (const CleanLine& clean : Lines(text)) {
    LogLine line;
    line.text = clean.text;
    line.offset = clean.offset;
    for (const Record& record : reader.Feed(line, Timestamp())) {
      if (const auto* incident = std::get_if<Incident>(&record)) incidents.push_back(*incident);
    }
    if (!restart) continue;
    Reader restored;
    EXPECT_TRUE(restored.Restore(reader.Save()));
    reader = std::move(restored);
  }
  return incidents;
}

constexpr std::string_view kHydra =
    "=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n"
    "=   RANK 6 PID 33190 RUNNING AT r25u09n02\n"
    "=   KILLED BY SIGNAL: 11 (Segmentation fault)\n";

TEST(NamedProcess, HydraNamesTheRankThatASignalEnded) {
  for (const bool restart : {false, true}) {
    const auto got = Read(kHydra, restart);
    ASSERT_THAT(got, SizeIs(1));
    EXPECT_EQ(got[0].shape, "hydra_exit");
    EXPECT_EQ(got[0].rank, 6);
    EXPECT_EQ(got[0].pid, 33190);
    EXPECT_EQ(got[0].signal, 11);
    EXPECT_EQ(Field(got[0], "node"), "r25u09n02");
  }
}

TEST(NamedProcess, PrteBreaksItsSentence) {
  const auto got = Read(
      "prterun noticed that process rank 3 with PID 4112 on node c4 exited on\n"
      "signal 9 (Killed).\n");
  ASSERT_THAT(got, SizeIs(1));
  EXPECT_EQ(got[0].rank, 3);
  EXPECT_EQ(got[0].signal, 9);
  EXPECT_EQ(Field(got[0], "node"), "c4");
}

TEST(NamedProcess, ALaterProcessIsNotTheNamedOne) {
  const std::string text = "=   RANK 6 PID 33190 RUNNING AT r25u09n02\n" + std::string(500, '-') +
                           "\n=   KILLED BY SIGNAL: 9 (Killed)\n";
  const auto got = Read(text);
  ASSERT_THAT(got, SizeIs(1));
  EXPECT_EQ(got[0].rank, -1);
}

TEST(NamedProcess, ATableOfRanksNamesNobody) {
  EXPECT_THAT(Read("=   RANK 6 OF 8 IS READY\n=   RANK TABLE\n"), IsEmpty());
}

// Its number looks like the task that srun puts before a line.
TEST(NamedProcess, HorovodsMissingRankBehindMpirunsPrefix) {
  const auto got = Read(
      "[1,0]<stderr>:Missing ranks:\n"
      "[1,0]<stderr>:5: [Adam_Allreduce/HorovodAllreduce_grads_14_0, "
      "Adam_Allreduce/HorovodAllreduce_grads_15_0 ...]\n");
  ASSERT_THAT(got, SizeIs(1));
  EXPECT_EQ(got[0].shape, "horovod_stall");
  EXPECT_EQ(Field(got[0], "missing_ranks"), "5");
}

TEST(NamedProcess, ATracedNameOfHorovodIsNoStall) {
  EXPECT_THAT(Read("[1,0]<stderr>:node HorovodAllreduce_grads_14_0 placed on GPU:0\n"), IsEmpty());
}

}  // namespace
}  // namespace rankscope::logs
