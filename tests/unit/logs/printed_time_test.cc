// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/logs/text/printed_time.h"

#include <gtest/gtest.h>

namespace rankscope::logs {
namespace {

int64_t At(std::string_view line, int32_t year = 2026) {
  return PrintedClock(year).Advance(line);
}

TEST(PrintedClock, ReadsTheFormsOfLoggers) {
  constexpr int64_t kTen = 1'772'445'610'000;  // 2026-03-02 10:00:10
  EXPECT_EQ(At("2026-03-02 10:00:10,018 - INFO - x"), kTen + 18);
  EXPECT_EQ(At("[2026-03-02 10:00:10] n1:7:7 [0] NCCL WARN x"), kTen);
  EXPECT_EQ(At("slurmstepd: error: 2026-03-02T10:00:10.250 x"), kTen + 250);
  EXPECT_EQ(At("[INFO|trainer.py:9] 2026-03-02 10:00:10,500 >> x"), kTen + 500);
  EXPECT_EQ(At("03/02/2026 10:00:10 - INFO - x"), kTen);
  EXPECT_EQ(At("03/02 10:00:10 - mmengine - INFO - x"), kTen);
  EXPECT_EQ(At("E0302 10:00:10.018000 812 api.py:7] x"), kTen + 18);
  EXPECT_EQ(At("[rank0]:[E302 10:00:10.018123456 ProcessGroupNCCL.cpp:1] x"), kTen + 18);
}

TEST(PrintedClock, NearTimesThatAreNone) {
  for (const std::string_view line :
       {"step 5 loss 1.0", "elapsed 10:00:10", "ratio 12:34:56:78", "2026-13-02 10:00:10",
        "2026-03-02 25:00:10", "[00:17<01:02, 4.47s/it]", "", "::::::", "2026-03-02"}) {
    EXPECT_EQ(At(line), 0) << line;
  }
}

TEST(PrintedClock, NeverGoesBackAndDoesNotLeap) {
  PrintedClock clock;
  const int64_t first = clock.Advance("2026-03-02 10:00:10 a");
  EXPECT_EQ(clock.Advance("no time here"), first);
  EXPECT_EQ(clock.Advance("2026-03-02 09:00:10 of a file that was read"), first);
  EXPECT_EQ(clock.Advance("2031-01-01 00:00:00 the certificate expires"), first);
  EXPECT_EQ(clock.Advance("2026-03-02 10:00:11 b"), first + 1000);
  EXPECT_EQ(clock.year(), 2026);
}

}  // namespace
}  // namespace rankscope::logs
