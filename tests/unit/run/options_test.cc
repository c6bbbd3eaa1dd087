// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/run/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "exporter/run/protocol.h"

namespace rankscope::run {
namespace {

using testing::HasSubstr;

class Words {
 public:
  Words(std::initializer_list<const char*> words) {
    for (const char* word : words) pointers_.push_back(const_cast<char*>(word));
    pointers_.push_back(nullptr);
  }
  char* const* get() const { return pointers_.data(); }

 private:
  std::vector<char*> pointers_;
};

Result<Arguments> Parse(const Words& argv, const Words& environment = {}) {
  return ParseArguments(argv.get(), environment.get(), 1000, 0xabcd);
}

TEST(Options, Defaults) {
  const Words argv{"run", "--", "python", "--dir"};
  const auto parsed = Parse(argv);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->options.job_id, "run-1000-0000abcd");
  EXPECT_EQ(parsed->options.run_directory, "rankscope-runs/run-1000-0000abcd");
  EXPECT_EQ(parsed->options.socket_path, kDefaultSocket);
  EXPECT_EQ(parsed->options.drain, Seconds(2));
  EXPECT_STREQ(parsed->options.argv[0], "python");
  EXPECT_STREQ(parsed->options.argv[1], "--dir");
}

TEST(Options, FlagsWinOverEnvironmentAndEndAtTheCommand) {
  const Words argv{"run", "--dir=/d", "--job-id", "j.1",   "--socket",
                   "",    "--drain",  "1.5m",     "train", "--drain"};
  const auto parsed =
      Parse(argv, {"SLURM_JOB_ID=7", "RANKSCOPE_RUN_DIR=/e", "RANKSCOPE_SOCKET=/s"});
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->options.run_directory, "/d");
  EXPECT_EQ(parsed->options.job_id, "j.1");
  EXPECT_EQ(parsed->options.socket_path, "");
  EXPECT_EQ(parsed->options.drain, Seconds(90));
  EXPECT_STREQ(parsed->options.argv[1], "--drain");
}

TEST(Options, EnvironmentNamesJobFolderAndSocket) {
  const auto parsed = Parse({"run", "x"}, {"SLURM_JOB_ID=8841", "RANKSCOPE_SOCKET=/s"});
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->options.job_id, "8841");
  EXPECT_EQ(parsed->options.socket_path, "/s");
  const auto odd = Parse({"run", "x"}, {"SLURM_JOB_ID=../x"});
  ASSERT_TRUE(odd);
  EXPECT_EQ(odd->options.job_id, "run-1000-0000abcd");
}

TEST(Options, MistakesNameTheFlagAndTheValue) {
  EXPECT_THAT(Parse({"run"}).error(), HasSubstr("no command"));
  EXPECT_THAT(Parse({"run", "--dri", "x"}).error(), HasSubstr("--dri"));
  EXPECT_THAT(Parse({"run", "--drain", "soon", "x"}).error(), HasSubstr("'soon'"));
  EXPECT_THAT(Parse({"run", "--dir"}).error(), HasSubstr("--dir needs"));
  EXPECT_FALSE(Parse({"run", "--job-id", "a/b", "x"}));
  EXPECT_FALSE(Parse({"run", "--verdict=loud", "x"}));
}

TEST(Options, ArtifactsHaveABudget) {
  const auto parsed = Parse(
      {"run", "--artifacts", "out/**", "--artifacts=*.log", "--artifacts-size", "2MiB", "true"});
  ASSERT_TRUE(parsed);
  EXPECT_THAT(parsed->options.artifacts.patterns, testing::ElementsAre("out/**", "*.log"));
  EXPECT_EQ(parsed->options.artifacts.budget, 2 << 20);
  for (const char* size : {"", "1", "2GiB", "-1MiB", "1MB", "99999999999999999999", "4096GiB"})
    EXPECT_FALSE(Parse({"run", "--artifacts-size", size, "true"})) << size;
}

TEST(Options, Durations) {
  EXPECT_EQ(ParseDuration("500ms"), Seconds(0.5));
  EXPECT_EQ(ParseDuration("3"), Seconds(3));
  EXPECT_FALSE(ParseDuration("-1s"));
  EXPECT_FALSE(ParseDuration("1h"));
  EXPECT_FALSE(ParseDuration("nan"));
  EXPECT_FALSE(ParseDuration(""));
}

TEST(Options, JobIds) {
  EXPECT_TRUE(IsJobId("8841_3.batch-x"));
  EXPECT_FALSE(IsJobId(""));
  EXPECT_FALSE(IsJobId(".."));
  EXPECT_FALSE(IsJobId("a b"));
  EXPECT_FALSE(IsJobId(std::string(128, 'a')));
}

}  // namespace
}  // namespace rankscope::run
