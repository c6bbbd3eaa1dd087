// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include "detectors/logs/text/prefix.h"

#include <gtest/gtest.h>

#include <string>

namespace rankscope::logs {
namespace {

TEST(Prefix, LaunchersAreTakenOffAndNameTheRank) {
  const struct {
    std::string_view line;
    std::string_view text;
    int32_t rank;
    bool local;
  } cases[] = {{"3: step 5", "step 5", 3, false},
               {" 12: step 5", "step 5", 12, false},
               {"[default3]:step 5", "step 5", 3, true},
               {"[default3]: step 5", "step 5", 3, true},
               {"[rank7]: step 5", "step 5", 7, false},
               {"[rank7]:[E socket.cpp:12] x", "[E socket.cpp:12] x", 7, false},
               {"[1,3]<stderr>:step 5", "step 5", 3, false},
               {"stderr: step 5", "step 5", -1, false},
               {"stdout: step 5", "step 5", -1, false},
               {"(Worker pid=12, ip=10.0.0.4) step 5", "step 5", -1, false},
               {"(main pid=12) step 5", "step 5", -1, false},
               {"node12: step 5", "step 5", -1, false},
               {"1: stderr: [rank5]: step 5", "step 5", 5, false},
               {"2: [default0]: step 5", "step 5", 2, false},
               {"4:", "", 4, false},
               {"0:   File \"x.py\", line 3", "  File \"x.py\", line 3", 0, false}};
  for (const auto& test : cases) {
    const Unprefixed got = StripLauncherPrefixes(test.line);
    EXPECT_EQ(got.text, test.text) << test.line;
    EXPECT_EQ(got.rank, test.rank) << test.line;
    EXPECT_EQ(got.local_rank, test.local) << test.line;
  }
}

TEST(Prefix, WhatShipsLinesIsTakenOff) {
  const struct {
    std::string_view line;
    int32_t rank;
  } cases[] = {
      {"2026-02-03T04:05:06.789012345Z   loss", -1},
      {"2026-02-03T04:05:06+01:00   loss", -1},
      {"2026-02-03T04:05:06.789012345Z stderr F   loss", -1},
      {"[pod/trainer-0/pytorch]   loss", -1},
      {"[2026-02-03T04:05:06.789012Z] 1a2b3c4d [rank=3] ||   loss", 3},
      {"trainer-1  |   loss", -1},
      {"my_job_12    |   loss", -1},
      {"Feb 03 04:05:06 node7 python3[4123]:   loss", -1},
      {"Feb  3 04:05:06 node7 torchrun[4123]:   loss", -1},
      {"[1,mpirank:3,algo-1]<stderr>:  loss", 3},
      {"[trainer3]:   loss", 3},
  };
  for (const auto& test : cases) {
    const Unprefixed got = StripLauncherPrefixes(test.line);
    EXPECT_EQ(got.text, "  loss") << test.line;
    EXPECT_EQ(got.rank, test.rank) << test.line;
  }
}

TEST(Prefix, BareStampsAreTakenOff) {
  const struct {
    std::string_view line;
    std::string_view text;
    int32_t rank;
  } cases[] = {
      {"Jun 12 10:00:01 [rank3]: RuntimeError: x", "RuntimeError: x", 3},
      {"Jun  2 10:00:01 12: Traceback (most recent call last):",
       "Traceback (most recent call last):", 12},
      {"Jun 12 10:00:01   File \"a.py\", line 3", "  File \"a.py\", line 3", -1},
      {"Jun 12 10:00:01 train.py: error: x", "train.py: error: x", -1},
      {"Jun 12 10:00:01 step 5: loss 3", "step 5: loss 3", -1},
      {"2025-06-12 10:00:01.123\t[rank3]: x", "x", 3},
      {"2025-06-12T10:00:01Z\t  x", "  x", -1},
      {"2025-06-12 10:00:01\tloss 0.25", "loss 0.25", -1},
      // What daemons say, the rows of a table, a logger's own time
      {"Jun 12 10:00:01 node7 kernel: NVRM: Xid", "Jun 12 10:00:01 node7 kernel: NVRM: Xid", -1},
      {"Jun 12 10:00:01 node7 slurmd[81]: x", "Jun 12 10:00:01 node7 slurmd[81]: x", -1},
      {"2025-06-12 10:00:01\t5\t0.25", "2025-06-12 10:00:01\t5\t0.25", -1},
      {"2025-06-12 10:00:01\t0.25", "2025-06-12 10:00:01\t0.25", -1},
      {"2025-06-12 10:00:01.123 [rank3]: x", "2025-06-12 10:00:01.123 [rank3]: x", -1},
  };
  for (const auto& test : cases) {
    const Unprefixed got = StripLauncherPrefixes(test.line);
    EXPECT_EQ(got.text, test.text) << test.line;
    EXPECT_EQ(got.rank, test.rank) << test.line;
  }
}

TEST(Prefix, RecordsOfDockerAreUnwrapped) {
  std::string buffer;
  EXPECT_EQ(
      UnwrapDockerLine(R"({"log":"  \"a\"\t\u001b[1mb\\\n","stream":"stdout","time":"x"})", buffer),
      "  \"a\"\t\x1b[1mb\\");
  EXPECT_EQ(UnwrapDockerLine(R"({"log":"\u2501\u00e9\ud83d\ude80\ud83dx\n"})", buffer),
            "\u2501\u00e9\U0001f680?x");
  for (const std::string_view line :
       {R"({"log":"cut off)", R"({"log":"bad \u00)", R"({"loss": 0.5, "log": "x"})", ""}) {
    EXPECT_EQ(UnwrapDockerLine(line, buffer), line);
  }
}

TEST(Prefix, ProgramsOwnWordsStay) {
  for (const std::string_view line : {"",
                                      ":",
                                      "12:30:01 step 5",
                                      "step5: loss 3",
                                      "epoch3: loss",
                                      "[default] starting",
                                      "[rank]: x",
                                      "[1, 2000] loss: 3",
                                      "[3]: x",
                                      "(a) b",
                                      "(pid=3) x",
                                      "1234567890: x",
                                      "loss: 3",
                                      "stderr:x",
                                      "[default3] x",
                                      "iter 3: loss",
                                      "2026-02-03T04:05:06 loss: 3",
                                      "[2026-02-03T04:05:06.789] error: x",
                                      "resnet-50 | loss",
                                      "step-12 loss | 3",
                                      "[worker3]: x",
                                      "Feb 03 04:05:06 node7 slurmd[4123]: x",
                                      "Feb 03 04:05:06 node7 kernel: x",
                                      "[pod/trainer",
                                      "May 12 steps"}) {
    const Unprefixed got = StripLauncherPrefixes(line);
    EXPECT_EQ(got.text, line);
    EXPECT_EQ(got.rank, -1) << line;
  }
}

TEST(Prefix, LoggersAreTakenOff) {
  for (const std::string_view line :
       {"2026-02-03 04:05:06,789 - INFO - trainer - step 5",
        "[2026-02-03 04:05:06,789] [INFO] [a.py:12:f] step 5",
        "[INFO|trainer.py:398] 2026-02-03 04:05:06,789 >> step 5", "INFO:root:step 5",
        "04:05:06 step 5", "I0203 04:05:06.789012 1234 a.py:56] step 5",
        "02/03/2026 04:05:06 - INFO - __main__ -   step 5",
        "2026-02-03 04:05:06 | INFO | root | step 5", "[2026-02-03 04:05:06] step 5", "INFO step 5",
        "  step 5", "[04:05:06] INFO step 5", "2026-02-03T04:05:06.789Z INFO step 5"}) {
    EXPECT_EQ(StripLoggerPrefix(line), "step 5") << line;
  }
}

TEST(Prefix, NoLoggerNoChange) {
  for (const std::string_view line :
       {"step 5", "[Epoch 1, Step 10] loss=0.5", "[1,  2000] loss: 2.1", "Epoch 3/10", "- x",
        "5 6 7", "12-34"}) {
    EXPECT_EQ(StripLoggerPrefix(line), line);
  }
}

TEST(Prefix, AnsiGoes) {
  std::string buffer;
  EXPECT_EQ(StripAnsi("\x1b[34m\x1b[1mLOGS\x1b[0m - x", buffer), "LOGS - x");
  EXPECT_EQ(StripAnsi("a\x1b[2K\x1b[1;31mb\x1b[K", buffer), "ab");
  EXPECT_EQ(StripAnsi("\x1b]0;title\x07text", buffer), "text");
  EXPECT_EQ(StripAnsi("\x1b]8;;http://x\x1b\\link", buffer), "link");
  EXPECT_EQ(StripAnsi("plain", buffer), "plain");
  // Cut off or nonsense: nothing else is lost.
  EXPECT_EQ(StripAnsi("x\x1b", buffer), "x");
  EXPECT_EQ(StripAnsi("x\x1b[", buffer), "x");
  EXPECT_EQ(StripAnsi("x\x1b[12;", buffer), "x");
  EXPECT_EQ(StripAnsi("\x1b\x1b\x1b[mx", buffer), "x");
  EXPECT_EQ(StripAnsi("\x1b]never ends", buffer), "]never ends");
  EXPECT_EQ(StripAnsi("\x1b[\xff\xfez", buffer), "\xff\xfez");
}

TEST(Prefix, BarsBeforeARecord) {
  const BehindBar one = StripBar("  0%|          | 1/300 [00:01<00:02,  1.2s/it]{'loss'");
  EXPECT_EQ(one.text, "{'loss'");
  EXPECT_EQ(one.position, 1);
  EXPECT_EQ(one.total, 300);
  EXPECT_EQ(StripBar(" 1%|x| 1/9 [0<1] 2%|x| 2/9 [0<1]   {'a'").text, "   {'a'");
  EXPECT_EQ(StripBar(" 1%|x| 1/9 [00:00").text, " 1%|x| 1/9 [00:00");
  EXPECT_EQ(StripBar("no bar").text, "no bar");
  EXPECT_EQ(StripBar("%|| [").text, "%|| [");
}

}  // namespace
}  // namespace rankscope::logs
