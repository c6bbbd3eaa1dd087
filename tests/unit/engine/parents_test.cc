// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What is left of a job, and who asks for it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "tests/unit/engine/driver.h"

namespace rankscope::engine {
namespace {

using namespace rankscope::testing;  // NOLINT: the tests' own vocabulary
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr ProcessKey kTask{401, 11};

// A rank of job 77 with these variables beside its own.
Tape With(std::vector<KeyValue> more, const char* node_id = "0") {
  Tape tape("77");
  std::vector<KeyValue> env = {{"SLURM_JOB_ID", "77"},
                               {"SLURM_STEP_ID", "0"},
                               {"SLURM_NODEID", node_id},
                               {"RANK", "0"},
                               {"WORLD_SIZE", "1"}};
  env.insert(env.end(), more.begin(), more.end());
  tape.Start(0.5, kTask, {1, 1}, env, {"python", "/home/ada/train.py", "--token", "x"});
  return tape;
}

std::vector<std::string> Asked(const Tape& tape) {
  Engine engine({}, "n1");
  std::vector<std::string> asked;
  for (size_t i = 0; i < tape.size(); ++i) {
    if (!std::holds_alternative<Tick>(tape[i].kind)) {
      engine.Accept(tape[i]);
      continue;
    }
    for (const Request& request : engine.Tick(tape[i].t).requests) {
      if (request.what != Request::What::kJobSummary) continue;
      EXPECT_EQ(request.job_id, "77");
      EXPECT_GT(request.deadline, tape[i].t);
      asked.push_back(request.other);
    }
  }
  return asked;
}

TEST(Parents, AreAskedForOnce) {
  Tape tape = With({{"SLURM_JOB_DEPENDENCY", "afterany:70:71"}});
  tape.Train(1, 1, 20, 0.5);
  tape.State(5, "dependency", "afterok:72");  // whoever names somebody first stays
  tape.Finish(20);
  EXPECT_THAT(Asked(tape), ElementsAre("70", "71"));
}

TEST(Parents, AsSlurmAndItsSubmitLineNameThem) {
  for (const auto& [field, value] : {std::pair{"dependency", "afterok:70(unfulfilled)"},
                                     std::pair{"submit_line", "sbatch -d afterok:70 job.sh"}}) {
    Tape tape = With({});
    tape.Train(1, 1, 20, 0.5);
    SchedulerRecord record;
    record.job_id = "77";
    ASSERT_TRUE(SetField(record, field, value));
    tape.Add(5, record);
    tape.Finish(20);
    EXPECT_THAT(Asked(tape), ElementsAre("70")) << field;
  }
}

TEST(Parents, TasksAreAskedForByNameAndComponentsByTheWhole) {
  for (const auto& [dependency, asked] :
       {std::pair{"afterok:70_3", "70_3"}, std::pair{"afterok:70_*", "70"},
        std::pair{"afternotok:70+1", "70"}, std::pair{"after:70_3+5", "70_3"}}) {
    Tape tape = With({{"SLURM_JOB_DEPENDENCY", dependency}});
    tape.Train(1, 1, 20, 0.5);
    tape.Finish(20);
    EXPECT_THAT(Asked(tape), ElementsAre(asked)) << dependency;
  }
}

TEST(Parents, ATaskThatWaitsForItsLikeAsksForThatOne) {
  Tape tape = With({{"SLURM_JOB_DEPENDENCY", "aftercorr:70"},
                    {"SLURM_ARRAY_JOB_ID", "76"},
                    {"SLURM_ARRAY_TASK_ID", "3"}});
  tape.Train(1, 1, 20, 0.5);
  tape.Finish(20);
  EXPECT_THAT(Asked(tape), ElementsAre("70_3"));
}

// A run of job 77 that begins at the beginning, after this was told of the job that it waited for.
proto::Verdict After(const std::string& dependency, const std::string& told) {
  Tape tape = With({{"SLURM_JOB_DEPENDENCY", dependency}});
  tape.State(0.8, "parent_summary", told);
  tape.Train(1, 1, 60, 0.2);
  tape.Exit(14, kTask, 0);
  tape.Finish(30);
  Engine engine({}, "n1");
  Play(tape, engine, 0, tape.size());
  return VerdictOf(engine, "77");
}

TEST(Parents, ATaskThatFailedIsARerunsParent) {
  const std::string left =
      "try:0 prog:other.py step:1:400 records:80 saves:1 ckpt:/s/step_400.pt:1:400 .";
  EXPECT_EQ(After("afternotok:70_3", "70_3 rs1 job:75 task:70_3 " + left).code(), "E2");
  EXPECT_EQ(After("afternotok:70_3", "70_3 rs1 job:75 " + left).code(), "E2")
      << "an older daemon does not tell the task";
  EXPECT_EQ(After("afternotok:70+1", "70 rs1 job:70 " + left).code(), "E2");
  EXPECT_NE(After("afternotok:70_3", "70_3 rs1 job:75 task:70_4 " + left).code(), "E2")
      << "another task's";
  EXPECT_NE(After("afternotok:70_*", "70 rs1 job:70 task:70_9 " + left).code(), "E2")
      << "one of many, and which is chance";
}

TEST(Parents, AJobThatIsBegunAnewAsksForItself) {
  Tape tape = With({{"SLURM_RESTART_COUNT", "1"}});
  tape.Train(1, 1, 20, 0.5);
  tape.Finish(20);
  EXPECT_THAT(Asked(tape), ElementsAre("77"));
}

TEST(Parents, NobodyAsksWithoutReasonOrOnAnotherNode) {
  Tape none = With({});
  none.Train(1, 1, 20, 0.5);
  none.Finish(20);
  EXPECT_THAT(Asked(none), IsEmpty());
  Tape second = With({{"SLURM_JOB_DEPENDENCY", "afterany:70"}}, "1");
  second.Train(1, 1, 20, 0.5);
  second.Finish(20);
  EXPECT_THAT(Asked(second), IsEmpty());
}

std::optional<JobSummary> Left(const Tape& tape) {
  Engine engine({}, "n1");
  Play(tape, engine, 0, tape.size());
  return engine.Summarize("77", AtSecond(40));
}

TEST(Summary, TellsHowFarItCame) {
  Tape tape = With({{"SLURM_RESTART_COUNT", "2"}});
  tape.Train(1, 5, 60, 0.2);
  tape.Say(13, "saved checkpoint /scratch/run7/step_60.pt");
  tape.Exit(14, kTask, 9);
  tape.Finish(20);
  const auto left = Left(tape);
  ASSERT_TRUE(left);
  EXPECT_EQ(left->job_id, "77");
  EXPECT_EQ(left->restarts, 2);
  EXPECT_EQ(left->code, "A2");
  EXPECT_EQ(left->node, "n1");
  EXPECT_EQ(left->program, "train.py");
  EXPECT_EQ(left->records, 56);
  EXPECT_EQ(left->first_step, 5);
  EXPECT_EQ(left->last_step, 60);
  EXPECT_GT(left->first_loss, left->last_loss);
  EXPECT_GT(left->loss_mad, 0);
  EXPECT_FALSE(left->finished);
  ASSERT_EQ(left->checkpoints.size(), 1u);
  EXPECT_EQ(left->checkpoints[0].path, "/scratch/run7/step_60.pt");
  EXPECT_EQ(left->end_wall_seconds, (AtSecond(14).ns + 1'750'000'000'000'000'000) / 1'000'000'000);
}

// An attempt that crashes at once does not hide what the one before it left.
TEST(Summary, IsOfAllAttempts) {
  Tape tape = With({});
  tape.Train(1, 5, 60, 0.1);
  tape.Say(7, "saved checkpoint /scratch/run7/step_60.pt");
  tape.Say(8, "[default] Worker group FAILED. 8/9 attempts left; will restart worker group", 2);
  tape.Exit(14, kTask, 256);
  tape.Finish(20);
  const auto left = Left(tape);
  ASSERT_TRUE(left);
  EXPECT_EQ(left->last_step, 60);
  ASSERT_EQ(left->checkpoints.size(), 1u);
}

// Nor what it had come to on another node before it was begun anew here.
TEST(Summary, IsOfRunsElsewhereToo) {
  Tape tape = With({{"SLURM_RESTART_COUNT", "1"}});
  tape.State(2, "parent_summary",
             "77 rs1 job:77 try:0 step:5:400 records:80 saves:1 ckpt:/s/step_400.pt:1:400 .");
  tape.Exit(14, kTask, 256);
  tape.Finish(20);
  const auto left = Left(tape);
  ASSERT_TRUE(left);
  EXPECT_EQ(left->last_step, 400);
  EXPECT_EQ(left->restarts, 1);
}

TEST(Summary, NamesTheTaskOfAnArray) {
  Tape tape = With({{"SLURM_ARRAY_JOB_ID", "70"}, {"SLURM_ARRAY_TASK_ID", "3"}});
  tape.Train(1, 1, 20, 0.1);
  tape.Exit(14, kTask, 0);
  tape.Finish(20);
  const auto left = Left(tape);
  ASSERT_TRUE(left);
  EXPECT_EQ(left->job_id, "77");
  EXPECT_EQ(left->array_task, "70_3");
  EXPECT_EQ(ReadJobSummary(JobSummaryToText(*left))->array_task, "70_3");
}

TEST(Summary, MasksSecretsInPaths) {
  Tape tape = With({});
  tape.Train(1, 1, 20, 0.1);
  tape.Say(7, "saved checkpoint /s/hf_abcdefghijklmnopqrstuvwxyz0123456789/step_60.pt");
  tape.Exit(14, kTask, 0);
  tape.Finish(20);
  const auto left = Left(tape);
  ASSERT_TRUE(left);
  EXPECT_EQ(JobSummaryToText(*left).find("hf_abcdefghij"), std::string::npos);
}

// A fact of any bytes costs nothing but itself, and the state comes back whole.
TEST(Parents, HostileFactsAreBounded) {
  Tape tape = With({{"SLURM_JOB_DEPENDENCY", "afterany:70"}});
  tape.Train(1, 1, 20, 0.5);
  for (const std::string& value :
       {std::string(), std::string("70"), std::string("70 "), "70 " + std::string(2 << 20, 'x'),
        std::string("70 rs1 job:71 step:1:2 ."), std::string("\xff\n= unknown"),
        std::string("70 rs1 job:70 ckpt:") + std::string(3000, '~') + " ."})
    tape.State(5, "parent_summary", value);
  for (int i = 0; i < 100; ++i) tape.State(6, "parent_summary", std::to_string(i) + " unknown");
  tape.Finish(20);
  Engine engine({}, "n1");
  Play(tape, engine, 0, tape.size());
  const std::string state = engine.Save();
  EXPECT_LT(state.size(), 200'000u);
  Engine restored({}, "n1");
  ASSERT_TRUE(restored.Restore(state));
  EXPECT_EQ(AnswersOf(restored), AnswersOf(engine));
}

}  // namespace
}  // namespace rankscope::engine
