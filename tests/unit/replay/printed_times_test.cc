// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What the dates in a log say of its end.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "exporter/replay/log_file.h"
#include "tests/unit/replay/support.h"

namespace rankscope::replay {
namespace {

using ::rankscope::testing::TempDir;

// Sixty records, one every nine seconds, the last at 09:08:51.
std::string EndedAt(const std::string& time, const std::string& why) {
  std::string text;
  for (int i = 0; i < 60; ++i) {
    char line[80];
    std::snprintf(line, sizeof line, "2026-03-04 09:%02d:%02d step %d loss %.4f\n", i * 9 / 60,
                  i * 9 % 60, i, 3.0 / (1 + i));
    text += line;
  }
  return text + "slurmstepd: error: *** JOB 12 ON n1 CANCELLED AT 2026-03-04T" + time + why +
         " ***\n";
}

TEST(PrintedTimes, TellAHangFromASlowRun) {
  struct Case {
    const char* time;
    const char* why;
    const char* code;
    const char* sub;
  };
  const Case cases[] = {
      {"17:41:20", " DUE TO TIME LIMIT", "F3", "stalled"},
      {"09:09:10", " DUE TO TIME LIMIT", "F3", "slow"},
      // The scheduler dates by whole seconds, and by its own clock.
      {"09:08:50", " DUE TO TIME LIMIT", "F3", "slow"},
      {"09:07:50", " DUE TO TIME LIMIT", "F3", "unknown"},
      // The clocks of a container and its node may be hours apart
      {"17:08:55", " DUE TO TIME LIMIT", "F3", "unknown"},
      {"08:09:10", " DUE TO TIME LIMIT", "F3", "unknown"},
      {"17:41:20", "", "X20", "cancelled"},
  };
  TempDir dir;
  for (const Case& one : cases) {
    dir.Write("a.log", EndedAt(one.time, one.why));
    const auto verdict = JudgeLog(dir / "a.log", std::nullopt);
    ASSERT_TRUE(verdict);
    EXPECT_EQ(verdict->code(), one.code) << one.time;
    EXPECT_EQ(verdict->sub(), one.sub) << one.time;
  }
  const auto cancelled = JudgeLog(dir / "a.log", std::nullopt);
  ASSERT_TRUE(cancelled);
  bool said = false;
  for (const auto& evidence : cancelled->shows())
    said = said || evidence.text().find("no training record for") != std::string::npos;
  EXPECT_TRUE(said);
}

}  // namespace
}  // namespace rankscope::replay
