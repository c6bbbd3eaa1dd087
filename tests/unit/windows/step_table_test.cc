// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/windows/step_table.h"

#include <gtest/gtest.h>

#include <string>

namespace rankscope::windows {
namespace {

Timestamp At(double second) {
  return {static_cast<int64_t>((100 + second) * 1e9)};
}

class StepTableTest : public testing::Test {
 protected:
  static attribution::ProcessInfo Rank(int32_t pid, const char* step, int32_t world = 1) {
    attribution::ProcessInfo process;
    process.key = {pid, pid};
    process.step_id = step;
    process.role = attribution::ProcessRole::kRank;
    process.rank = 0;
    process.world_size = world;
    return process;
  }
  void Start(int32_t pid, const char* step, double second, const char* program = "",
             int32_t world = 1) {
    steps_.OnRankStart(Rank(pid, step, world), At(second));
    steps_.OnProgram(Rank(pid, step, world), program);
  }
  void Exit(int32_t pid, const char* step, double second, int32_t wait_status, bool known = true) {
    attribution::ProcessInfo process = Rank(pid, step);
    process.status_known = known;
    process.wait_status = wait_status;
    steps_.OnRankExit(process, At(second));
  }
  void Train(int32_t pid, double second) { steps_.OnProgress({pid, pid}, At(second)); }
  bool Tell(const char* step, const char* field, const std::string& value, double second = 0) {
    SchedulerFact fact;
    fact.step_id = step;
    fact.field = field;
    fact.value = value;
    fact.origin = "sacct";
    fact.wall_ns = second > 0 ? At(second).ns + 1 : 0;
    return steps_.OnFact(fact, {At(60), 1});
  }
  std::string Finished() const {
    const StepSeen* const step = steps_.FinishedTraining();
    return step == nullptr ? "" : step->id;
  }
  StepTable steps_;
};

TEST_F(StepTableTest, ATrainingThatEndedWellIsFinishedWhateverALaterStepDoes) {
  Start(1, "0", 1, "train.py");
  Train(1, 2);
  EXPECT_EQ(Finished(), "");  // it runs
  Exit(1, "0", 10, 0);
  EXPECT_EQ(Finished(), "0");
  Start(2, "1", 11, "eval.py");
  Exit(2, "1", 12, 1 << 8);
  EXPECT_EQ(Finished(), "0");
  ASSERT_NE(steps_.FailedAfter(*steps_.FinishedTraining()), nullptr);
  EXPECT_EQ(steps_.FailedAfter(*steps_.FinishedTraining())->id, "1");
  EXPECT_EQ(steps_.FailedAfter(*steps_.FinishedTraining())->exit_code(), 1);
}

TEST_F(StepTableTest, ASecondTrainingIsTheOneThatCounts) {
  Start(1, "0", 1, "train.py");
  Train(1, 2);
  Exit(1, "0", 10, 0);
  Start(2, "1", 11, "train.py");
  EXPECT_EQ(Finished(), "") << "the same program, before it has printed anything";
  Train(2, 12);
  Exit(2, "1", 13, 1 << 8);
  EXPECT_EQ(Finished(), "");
  ASSERT_NE(steps_.FailedTraining(), nullptr);
  EXPECT_EQ(steps_.FailedTraining()->id, "1");
}

TEST_F(StepTableTest, ATrainingThatFailedAndWasTriedAgainIsNotHeldAgainstTheJob) {
  Start(1, "0", 1, "train.py");
  Train(1, 2);
  Exit(1, "0", 10, 1 << 8);
  ASSERT_NE(steps_.FailedTraining(), nullptr);
  Start(2, "1", 11, "train.py");
  Exit(2, "1", 20, 0);
  EXPECT_EQ(steps_.FailedTraining(), nullptr);
}

TEST_F(StepTableTest, OfRanksThatAreElsewhereOnlyTheRecordTells) {
  Start(1, "0", 1, "train.py", 8);
  Train(1, 2);
  Exit(1, "0", 10, 0);
  EXPECT_EQ(Finished(), "");
  EXPECT_FALSE(Tell("0", "exit", "0:0"));
  EXPECT_TRUE(Tell("0", "state", "COMPLETED", 11));
  EXPECT_EQ(Finished(), "0");
}

TEST_F(StepTableTest, TheRecordOutranksTheRanksThatAreHere) {
  Start(1, "0", 1);
  Train(1, 2);
  Exit(1, "0", 10, 0);
  Tell("0", "exit", "0:125");
  Tell("0", "state", "OUT_OF_MEMORY", 11);
  EXPECT_EQ(Finished(), "");
  EXPECT_EQ(steps_.FailedTraining()->exit_code(), 253);
}

TEST_F(StepTableTest, AnEndThatNobodySawIsNoGoodOne) {
  Start(1, "0", 1);
  Train(1, 2);
  Exit(1, "0", 10, 0, false);
  EXPECT_EQ(Finished(), "");
  EXPECT_EQ(steps_.FailedTraining(), nullptr);
}

TEST_F(StepTableTest, TextOfAFileIsThatOfTheStepThatRan) {
  Start(1, "0", 1, "train.py");
  steps_.OnProgress({}, At(5));
  Exit(1, "0", 10, 0);
  Start(2, "1", 10.1, "eval.py");
  steps_.OnProgress({}, At(10.6));  // read late
  ASSERT_NE(steps_.Training(), nullptr);
  EXPECT_EQ(steps_.Training()->id, "0");
  EXPECT_EQ(steps_.Training()->progress, 2);
  steps_.OnProgress({}, At(14));
  EXPECT_EQ(steps_.Training()->id, "1");
}

TEST_F(StepTableTest, TheScriptsRecordIsNotThatOfTheTrainingInIt) {
  Start(1, "batch", 1, "train.py");
  Train(1, 2);
  Exit(1, "batch", 10, 0);
  Tell("batch", "state", "FAILED", 12);
  EXPECT_EQ(Finished(), "batch");
}

TEST_F(StepTableTest, NamesAreAStrangersAndTheirNumberIsBounded) {
  Tell("0", "name", std::string("a\nb=") + std::string(1000, 'x'));
  EXPECT_EQ(steps_.all()[0].name.substr(0, 4), "a b=");
  EXPECT_LE(steps_.all()[0].name.size(), StepTable::kTextCap);
  Start(1, "0", 1);
  Train(1, 2);
  for (int step = 1; step < 500; ++step)
    Tell(std::to_string(step).c_str(), "state", "COMPLETED", 3);
  EXPECT_EQ(steps_.all().size(), StepTable::kMaxSteps);
  EXPECT_EQ(steps_.Training()->id, "0") << "which trained";
  EXPECT_FALSE(Tell("extern", "state", "COMPLETED"));
}

// Slurm counts the steps of each run from 0.
TEST_F(StepTableTest, ARecordOfAnEarlierRunIsNoneOfThisOne) {
  for (const bool told_first : {true, false}) {
    steps_.Clear();
    if (!told_first) Start(1, "0", 20);
    Tell("0", "exit", "1:0", 10);
    Tell("0", "state", "FAILED", 10);
    if (told_first) Start(1, "0", 20);
    Train(1, 22);
    Exit(1, "0", 30, 0);
    EXPECT_EQ(steps_.FailedTraining(), nullptr) << told_first;
    EXPECT_EQ(Finished(), "0") << told_first;
    Tell("0", "exit", "1:0", 30);
    EXPECT_TRUE(Tell("0", "state", "FAILED", 30));
    EXPECT_NE(steps_.FailedTraining(), nullptr);
  }
}

TEST_F(StepTableTest, AnAnswerThatWasOvertakenChangesNothing) {
  EXPECT_FALSE(Tell("0", "state", "RUNNING"));
  EXPECT_TRUE(Tell("0", "state", "FAILED"));
  EXPECT_FALSE(Tell("0", "state", "RUNNING"));
  EXPECT_FALSE(Tell("0", "state", "FAILED"));
  EXPECT_EQ(steps_.all()[0].state, "FAILED");
}

}  // namespace
}  // namespace rankscope::windows
