// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Slurm's spellings of values, and what looks like them.
#include "exporter/slurm/values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>
#include <string>

namespace rankscope::exporter::slurm {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Times without a zone are the local zone's.
class Times : public testing::Test {
 protected:
  Times() {
    setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
    tzset();
  }
  ~Times() override {
    unsetenv("TZ");
    tzset();
  }
};

TEST(Values, KnowsTheWordsForNothing) {
  for (const char* word : {"", "  ", "(null)", "None", "N/A", "n/a", "None assigned", "Unknown"}) {
    EXPECT_EQ(Said(word), "") << word;
  }
  EXPECT_EQ(Said(" n[1-2] "), "n[1-2]");
  EXPECT_EQ(Said("Nonesuch"), "Nonesuch");
  EXPECT_EQ(Said("Unknown user"), "Unknown user");
}

TEST(Values, ReadsDurations) {
  EXPECT_EQ(ReadDuration("1-02:03:04"), 93784);
  EXPECT_EQ(ReadDuration("00:00:00"), 0);
  EXPECT_EQ(ReadDuration("02:03:04"), 7384);
  EXPECT_EQ(ReadDuration("02:03"), 123);
  EXPECT_EQ(ReadDuration("2-00"), 172800);
  EXPECT_EQ(ReadDuration("2-01:30"), 178200);
  EXPECT_EQ(ReadDuration("365-00:00:00"), 31536000);
  EXPECT_EQ(ReadDuration("00:01.250"), 1);
}

TEST(Values, KnowsWhatIsNoDuration) {
  for (const char* text :
       {"", "UNLIMITED", "INVALID", "Partition_Limit", "N/A", "90", "-1:00", "1:2:3:4", "1--2",
        "1-", "a:b", "1:-2", "999999999-00:00:00", "00:", ":", "1-2-3:00"}) {
    EXPECT_EQ(ReadDuration(text), std::nullopt) << text;
  }
}

TEST_F(Times, ReadsSecondsAndTheLocalCalendar) {
  EXPECT_EQ(ReadTime("1795442400"), 1795442400);
  EXPECT_EQ(ReadTime("2026-11-23T14:00:00"), 1795438800);  // 13:00 of UTC
  EXPECT_EQ(ReadTime("2026-07-01T14:00:00"), 1782907200);  // in summer 12:00
}

TEST_F(Times, KnowsWhatIsNoTime) {
  for (const char* text :
       {"", "0", "-1", "Unknown", "None", "N/A", "(null)", "2026-11-23", "2026-11-23 14:00:00",
        "2026-13-01T00:00:00", "2026-11-23T25:00:00", "2026-1-23T14:00:000", "14:00:00",
        "18446744073709551615", "9223372036854775807", "1795442400s"}) {
    EXPECT_EQ(ReadTime(text), 0) << text;
  }
}

TEST(Values, ReadsExits) {
  EXPECT_EQ(ReadExit("0:0"), (ExitStatus{0, 0}));
  EXPECT_EQ(ReadExit("1:0"), (ExitStatus{1, 0}));
  EXPECT_EQ(ReadExit("0:9"), (ExitStatus{0, 9}));
  EXPECT_EQ(ReadExit("0:125"), (ExitStatus{0, 125}));
  for (const char* text : {"", "1", "1:", ":9", "a:b", "-1:0", "1:9:0", "1 :9"}) {
    EXPECT_EQ(ReadExit(text), std::nullopt) << text;
  }
  EXPECT_EQ(ExitOfWaitStatus(256), (ExitStatus{1, 0}));
  EXPECT_EQ(ExitOfWaitStatus(9), (ExitStatus{0, 9}));
  EXPECT_EQ(ExitOfWaitStatus(0x8b), (ExitStatus{0, 11}));  // with a core
  EXPECT_EQ(ExitOfWaitStatus(0xfffffffe), std::nullopt);
  EXPECT_EQ(ExitOfWaitStatus(-1), std::nullopt);
}

TEST(Values, ReadsMemory) {
  constexpr int64_t kMiB = 1024 * 1024;
  EXPECT_EQ(ReadMemory("8000M"), 8000 * kMiB);
  EXPECT_EQ(ReadMemory("8000"), 8000 * kMiB);
  EXPECT_EQ(ReadMemory("1.5G"), 1536 * kMiB);
  EXPECT_EQ(ReadMemory("2T"), 2048 * 1024 * kMiB);
  EXPECT_EQ(ReadMemory("512K"), kMiB / 2);
  EXPECT_EQ(ReadMemory("4000Mn"), 4000 * kMiB);
  EXPECT_EQ(ReadMemory("4Gc"), 4096 * kMiB);
  for (const char* text : {"", "M", "N/A", "-1", "8000MB", "1e3", "nan", "inf", "G8", "n", "0x10",
                           "99999999999999999999P"}) {
    EXPECT_EQ(ReadMemory(text), std::nullopt) << text;
  }
}

TEST(Values, ReadsCounts) {
  EXPECT_EQ(ReadCount("4"), 4);
  EXPECT_EQ(ReadCount("4-8"), 4);
  EXPECT_EQ(ReadCount("2K"), 2048);
  for (const char* text : {"", "N/A", "-4", "four", "*"}) {
    EXPECT_EQ(ReadCount(text), std::nullopt) << text;
  }
}

TEST(Values, CountsGpusOfTres) {
  EXPECT_EQ(GpusOfTres("cpu=4,mem=8G,node=2,billing=4,gres/gpu=2,gres/gpu:a100=2"), 2);
  EXPECT_EQ(GpusOfTres("cpu=4,gres/gpu:a100=2,gres/gpu:h200=4"), 6);
  EXPECT_EQ(GpusOfTres("cpu=4,mem=8G"), 0);
  EXPECT_EQ(GpusOfTres("gres/gpumem=80G,gres/gpuutil=10"), 0);
  EXPECT_EQ(GpusOfTres(""), std::nullopt);
  EXPECT_EQ(GpusOfTres("(null)"), std::nullopt);
  EXPECT_EQ(GpusOfTres("gres/gpu=many"), 0);
}

TEST(Values, CountsGpusOfGres) {
  EXPECT_EQ(GpusOfGres("gpu:2(IDX:0-1)"), 2);
  EXPECT_EQ(GpusOfGres("gpu:2(IDX:0,3),nic:1"), 2);
  EXPECT_EQ(GpusOfGres("gpu:a100:4(S:0-1)"), 4);
  EXPECT_EQ(GpusOfGres("gpu:a100:4(S:0-1),gpu:h200:2(S:0)"), 6);
  EXPECT_EQ(GpusOfGres("gres:gpu:2"), 2);
  EXPECT_EQ(GpusOfGres("gres/gpu:8"), 8);
  EXPECT_EQ(GpusOfGres("gpu"), 1);
  EXPECT_EQ(GpusOfGres("gpu:a100"), 1);
  EXPECT_EQ(GpusOfGres("gpu:0"), 0);
  EXPECT_EQ(GpusOfGres("nic:2,gpumem:4"), 0);
  EXPECT_EQ(GpusOfGres("(null)"), std::nullopt);
}

TEST(Values, TellsTheStateOfAJobFromItsFlags) {
  EXPECT_EQ(ReadJobState("RUNNING").base, "RUNNING");
  const StateWords cancelled = ReadJobState("CANCELLED by 1000");
  EXPECT_EQ(cancelled.base, "CANCELLED");
  EXPECT_EQ(cancelled.by, "1000");
  EXPECT_THAT(cancelled.flags, IsEmpty());
  const StateWords completing = ReadJobState("COMPLETING");
  EXPECT_EQ(completing.base, "");
  EXPECT_THAT(completing.flags, ElementsAre("COMPLETING"));
  EXPECT_EQ(ReadJobState("CANCELLED+").base, "CANCELLED");
  const StateWords both = JobStateOf({"running", "Completing", "RUNNING"});
  EXPECT_EQ(both.base, "RUNNING");
  EXPECT_THAT(both.flags, ElementsAre("COMPLETING"));
  EXPECT_EQ(ReadJobState("").base, "");
  EXPECT_EQ(ReadJobState("RUNNINGS").base, "");
}

TEST(Values, TellsTheStateOfANodeFromItsFlags) {
  EXPECT_EQ(ReadNodeState("IDLE").base, "IDLE");
  const StateWords drained = ReadNodeState("DOWN*+DRAIN");
  EXPECT_EQ(drained.base, "DOWN");
  EXPECT_THAT(drained.flags, ElementsAre("NOT_RESPONDING", "DRAIN"));
  EXPECT_THAT(ReadNodeState("MIXED+DRAIN+NOT_RESPONDING").flags,
              ElementsAre("DRAIN", "NOT_RESPONDING"));
  EXPECT_THAT(ReadNodeState("idle~$").flags, ElementsAre("MAINTENANCE", "POWERED_DOWN"));
  EXPECT_EQ(ReadNodeState("allocated").base, "ALLOCATED");
  EXPECT_EQ(ReadNodeState("***").base, "");
  const StateWords draining = ReadNodeState("DRAINING");
  EXPECT_EQ(draining.base, "");
  EXPECT_THAT(draining.flags, ElementsAre("DRAINING"));
}

TEST(Values, KnowsWhichStatesAreEnds) {
  for (const char* state : {"COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL", "PREEMPTED",
                            "BOOT_FAIL", "DEADLINE", "OUT_OF_MEMORY"}) {
    EXPECT_TRUE(IsEndState(state)) << state;
  }
  for (const char* state : {"", "PENDING", "RUNNING", "SUSPENDED", "COMPLETING", "REQUEUED"}) {
    EXPECT_FALSE(IsEndState(state)) << state;
  }
}

}  // namespace
}  // namespace rankscope::exporter::slurm
