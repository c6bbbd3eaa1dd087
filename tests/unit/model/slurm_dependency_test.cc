// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/model/slurm_dependency.h"

#include <gtest/gtest.h>

namespace rankscope {
namespace {

using Dependencies = std::vector<SlurmDependency>;

TEST(SlurmDependency, AsItIsWrittenForSbatch) {
  EXPECT_EQ(ReadSlurmDependencies("afterok:123:124,afterany:125"),
            (Dependencies{{"afterok", "123"}, {"afterok", "124"}, {"afterany", "125"}}));
  EXPECT_EQ(ReadSlurmDependencies("afternotok:7?after:8+5:9"),
            (Dependencies{{"afternotok", "7"}, {"after", "8"}, {"after", "9"}}));
  EXPECT_EQ(ReadSlurmDependencies("singleton"), Dependencies{});
  EXPECT_EQ(ReadSlurmDependencies("aftercorr:7,singleton"), (Dependencies{{"aftercorr", "7"}}));
}

TEST(SlurmDependency, AsSlurmPrintsIt) {
  EXPECT_EQ(ReadSlurmDependencies("afterok:123(unfulfilled),afterany:7_3(failed)"),
            (Dependencies{{"afterok", "123"}, {"afterany", "7_3"}}));
  EXPECT_EQ(ReadSlurmDependencies("after:8+5(unfulfilled)?afterok:9_*(unfulfilled)"),
            (Dependencies{{"after", "8"}, {"afterok", "9"}}));
  EXPECT_EQ(ReadSlurmDependencies("(null)"), Dependencies{});
}

TEST(SlurmDependency, ATaskWaitsForItsOwn) {
  for (const char* text : {"aftercorr:7", "aftercorr:7_*(unfulfilled)"})
    EXPECT_EQ(ReadSlurmDependencies(text, "9_3"), (Dependencies{{"aftercorr", "7_3"}})) << text;
  EXPECT_EQ(ReadSlurmDependencies("aftercorr:7_4,afterok:8", "9_3"),
            (Dependencies{{"aftercorr", "7_4"}, {"afterok", "8"}}));
  EXPECT_EQ(ReadSlurmDependencies("aftercorr:7", ""), (Dependencies{{"aftercorr", "7"}}));
}

// A task keeps its name; a whole array and a component of a heterogeneous job are known by the
// number of the whole.
TEST(SlurmDependency, TasksArraysAndComponents) {
  EXPECT_EQ(ReadSlurmDependencies("afterok:7_3:7_4"),
            (Dependencies{{"afterok", "7_3"}, {"afterok", "7_4"}}));
  EXPECT_EQ(ReadSlurmDependencies("afterok:7_*:7"), (Dependencies{{"afterok", "7"}}));
  EXPECT_EQ(ReadSlurmDependencies("afterok:7+1,afternotok:9+0"),
            (Dependencies{{"afterok", "7"}, {"afternotok", "9"}}));
  EXPECT_EQ(ReadSlurmDependencies("after:7_3+5"), (Dependencies{{"after", "7_3"}}));
  for (const char* text : {"afterok:7_", "afterok:_3", "afterok:7_3_1", "afterok:7_-3",
                           "afterok:7_[1-3]", "afterok:7_*3", "afterok:+1"})
    EXPECT_EQ(ReadSlurmDependencies(text), Dependencies{}) << text;
}

TEST(SlurmDependency, EachJobOnceAndNotMoreThanEight) {
  EXPECT_EQ(ReadSlurmDependencies("afterok:1:1,afterany:1"), (Dependencies{{"afterok", "1"}}));
  std::string many = "afterok";
  for (int i = 1; i < 5000; ++i) many += ":" + std::to_string(i);
  EXPECT_EQ(ReadSlurmDependencies(many).size(), 8u);
}

TEST(SlurmDependency, OddTextNamesNobody) {
  for (const char* text : {"", ",", "?", ":", "afterok", "afterok:", "afterok::", "afterok:x",
                           "afterok:1;rm", "afterok:-1", "afterok:99999999999", "afterok:7_x",
                           "AFTEROK:7", "expand:7", "afterok:7 8", "afterok:\xff"}) {
    EXPECT_EQ(ReadSlurmDependencies(text), Dependencies{}) << text;
  }
}

TEST(SlurmDependency, OfASubmitLine) {
  EXPECT_EQ(DependencyOfSubmitLine("sbatch -N 2 --dependency=afterany:12 job.sh"), "afterany:12");
  EXPECT_EQ(DependencyOfSubmitLine("sbatch -d afterok:12:13 job.sh"), "afterok:12:13");
  EXPECT_EQ(DependencyOfSubmitLine("sbatch -dafterok:12 job.sh"), "afterok:12");
  EXPECT_EQ(DependencyOfSubmitLine("sbatch --dependency afternotok:12 job.sh"), "afternotok:12");
  EXPECT_EQ(DependencyOfSubmitLine("sbatch job.sh -d /data --debug"), "");
  EXPECT_EQ(DependencyOfSubmitLine("sbatch -d"), "");
}

TEST(SubmitLine, WordsWithoutQuotes) {
  EXPECT_EQ(SplitSubmitLine("sbatch --wrap='python  train.py'\n--resume \"x\""),
            (std::vector<std::string>{"sbatch", "--wrap=", "python", "train.py", "--resume", "x"}));
  EXPECT_EQ(SplitSubmitLine(" \t"), std::vector<std::string>{});
  EXPECT_LE(SplitSubmitLine(std::string(100'000, ' ') + std::string(4000, 'a')).size(), 1u);
}

}  // namespace
}  // namespace rankscope
