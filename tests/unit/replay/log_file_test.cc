// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/replay/log_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "detectors/document/verdict_json.h"
#include "tests/unit/replay/support.h"

namespace rankscope::replay {
namespace {

using ::rankscope::testing::TempDir;
using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

Result<proto::Verdict> Judge(const std::string& file, std::optional<int> exit_code = std::nullopt) {
  return JudgeLog(file, exit_code);
}

constexpr std::string_view kFailing =
    "loading\r\n"
    "Traceback (most recent call last):\n"
    "  File \"/home/u/train.py\", line 3, in <module>\n"
    "    import nothing_of_that_name\n"
    "ModuleNotFoundError: No module named 'nothing_of_that_name'\n";

TEST(JudgeLogs, CitesBytesOfTheFile) {
  TempDir dir;
  for (const size_t before : {size_t{0}, size_t{1000}, size_t{3} << 20}) {
    // Long enough for a line to lie across two blocks that are read.
    std::string text;
    while (text.size() < before) text += "padding " + std::to_string(text.size()) + "\n";
    text += kFailing;
    dir.Write("a.log", text);
    const auto verdict = Judge(dir / "a.log", 1);
    ASSERT_TRUE(verdict);
    EXPECT_EQ(verdict->exception_type(), "ModuleNotFoundError");
    int cited = 0;
    for (const auto& evidence : verdict->shows()) {
      if (!evidence.cite().has_log()) continue;
      const auto& log = evidence.cite().log();
      EXPECT_EQ(log.stream(), dir / "a.log");
      EXPECT_EQ(text.substr(static_cast<size_t>(log.offset()), log.line().size()), log.line());
      ++cited;
    }
    EXPECT_GT(cited, 0);
  }
}

TEST(JudgeLogs, SecretsAreMaskedBeforeAnythingSeesThem) {
  TempDir dir;
  dir.Write("a.log",
            "Traceback (most recent call last):\n  File \"t.py\", line 3, in <module>\n    main()\n"
            "ValueError: bad token hf_abcdefghijklmnopqrstuvwxyzABCDEFGH\n");
  const auto verdict = Judge(dir / "a.log", 1);
  ASSERT_TRUE(verdict);
  EXPECT_THAT(VerdictToJson(*verdict), Not(HasSubstr("hf_abcdefghijklmnop")));
  EXPECT_THAT(VerdictToJson(*verdict), HasSubstr("****"));
}

TEST(JudgeLogs, KnowsTheExitCodeOnlyWhereItIsTold) {
  TempDir dir;
  dir.Write("a.log", kFailing);
  EXPECT_FALSE(Judge(dir / "a.log")->exit_known());
  EXPECT_TRUE(Judge(dir / "a.log", 1)->exit_known());
  EXPECT_EQ(Judge(dir / "a.log", 7)->exit_code(), 7);
}

TEST(JudgeLogs, EmptyAndBinaryFilesGetAnHonestAnswer) {
  TempDir dir;
  dir.Write("empty", "");
  std::string binary;
  for (int i = 0; i < 200'000; ++i) binary.push_back(static_cast<char>((i * 7919) >> 3));
  dir.Write("binary", binary);
  dir.Write("endless", std::string(5 << 20, 'x'));
  for (const char* name : {"empty", "binary", "endless"}) {
    for (const std::optional<int> exit_code :
         {std::optional<int>(), std::optional<int>(0), std::optional<int>(1)}) {
      const auto verdict = Judge(dir / name, exit_code);
      ASSERT_TRUE(verdict) << name;
      EXPECT_THAT(verdict->code(), AnyOf("U0", "G1")) << name;
      EXPECT_EQ(verdict->code() == "G1" ? verdict->sub() : "unverifiable", "unverifiable") << name;
      EXPECT_TRUE(exit_code != 1 || verdict->code() == "U0") << name;
    }
  }
}

TEST(JudgeLogs, WhatCannotBeReadIsSaid) {
  TempDir dir;
  EXPECT_THAT(Judge(dir / "missing").error(), HasSubstr("No such file"));
  EXPECT_THAT(Judge(dir.path()).error(), HasSubstr("is a directory"));
  dir.Write("a.log", kFailing);
  const std::string files[] = {dir / "a.log", dir / "missing"};
  const auto judged = JudgeJobLogs(files, std::nullopt);
  ASSERT_TRUE(judged);
  EXPECT_THAT(judged->unreadable, HasSubstr("missing: No such file"));
  EXPECT_EQ(judged->verdict.exception_type(), "ModuleNotFoundError");
  EXPECT_THAT(JudgeJobLogs(std::span(files).last(1), std::nullopt).error(), HasSubstr("missing"));
}

TEST(JudgeLogs, SeveralFilesAreOneJob) {
  TempDir dir;
  dir.Write("rank_0.log", "waiting for others\n");
  dir.Write("rank_1.log", kFailing);
  const std::string files[] = {dir / "rank_0.log", dir / "rank_1.log"};
  const auto judged = JudgeJobLogs(files, 1);
  ASSERT_TRUE(judged);
  const proto::Verdict* verdict = &judged->verdict;
  EXPECT_EQ(verdict->exception_type(), "ModuleNotFoundError");
  ASSERT_GT(verdict->shows_size(), 0);
  bool cited = false;
  for (const auto& evidence : verdict->shows())
    cited = cited || evidence.cite().log().stream() == files[1];
  EXPECT_TRUE(cited);
}

TEST(LogFilesOf, FindsFilesBelowDirectoriesInTheOrderOfTheirNumbers) {
  TempDir dir;
  for (const char* name : {"rank_10.log", "rank_2.log", "rank_1.log", "rank_02b.log"})
    dir.Write(name, "");
  std::filesystem::create_directories(dir / "attempt_0/0");
  dir.Write("attempt_0/0/stderr.log", "");
  const std::string paths[] = {"-", dir.path(), "as/given"};
  const auto files = LogFilesOf(paths);
  ASSERT_TRUE(files);
  EXPECT_THAT(*files, ElementsAre("-", dir / "attempt_0/0/stderr.log", dir / "rank_1.log",
                                  dir / "rank_2.log", dir / "rank_02b.log", dir / "rank_10.log",
                                  "as/given"));
}

TEST(LogFilesOf, AnEmptyDirectoryIsAnError) {
  TempDir dir;
  const std::string paths[] = {dir.path()};
  EXPECT_FALSE(LogFilesOf(paths));
}

}  // namespace
}  // namespace rankscope::replay
