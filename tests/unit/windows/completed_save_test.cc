// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Names of checkpoints, and which attempt's is further.
#include "detectors/windows/completed_save.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "tests/unit/windows/fed_job.h"

namespace rankscope::windows {
namespace {

TEST(StepOfCheckpointName, BehindAWordForAStep) {
  EXPECT_EQ(StepOfCheckpointName("/scratch/run7/step_200.pt"), 200);
  EXPECT_EQ(StepOfCheckpointName("out/checkpoint-400/model.safetensors"), 400);
  EXPECT_EQ(StepOfCheckpointName("out/checkpoint-400/00001.bin"), 400);
  EXPECT_EQ(StepOfCheckpointName("out/iter_0000500/mp_rank_00/model_optim_rng.pt"), 500);
  EXPECT_EQ(StepOfCheckpointName("out/global_step9/mp_rank_00_model_states.pt"), 9);
  EXPECT_EQ(StepOfCheckpointName("epoch=3-step=400.ckpt"), 400);
}

TEST(StepOfCheckpointName, OtherNumbersAreNone) {
  for (const char* name :
       {"", "last.pt", "mp_rank_00_model_states.pt", "model-00001-of-00002.safetensors",
        "checkpoint_1_400.pt", "epoch_3.pt", "run7/model.bin", "stepwise_3.pt", "step", "step_",
        "step_99999999999999999999.pt", "checkpoint-2026-02-03.pt", "\xff\xff"}) {
    EXPECT_TRUE(std::isnan(StepOfCheckpointName(name))) << name;
  }
}

TEST(CompareSaves, BySteps) {
  const CompletedSave none, early{true, 200, "a"}, late{true, 400, "a"}, nameless{true, NAN, "b"};
  EXPECT_EQ(CompareSaves(none, early), Advance::kFurther);
  EXPECT_EQ(CompareSaves(early, late), Advance::kFurther);
  EXPECT_EQ(CompareSaves(late, late), Advance::kNoFurther);
  EXPECT_EQ(CompareSaves(late, early), Advance::kNoFurther);
  EXPECT_EQ(CompareSaves(late, none), Advance::kNoFurther);
  EXPECT_EQ(CompareSaves(late, nameless), Advance::kUnknown);
  EXPECT_EQ(CompareSaves(nameless, late), Advance::kUnknown);
}

class CompletedSaveTest : public JobWindowTest {};

TEST_F(CompletedSaveTest, ASaveThatWasOnlyBegunIsNone) {
  Say(1, "saving checkpoint at iteration     200 to /scratch/llm8\n");
  EXPECT_FALSE(NewestCompletedSave(job_.now(), At(2)).present);
  Say(3, "  successfully saved checkpoint at iteration     200 to /scratch/llm8\n");
  const CompletedSave save = NewestCompletedSave(job_.now(), At(4));
  EXPECT_TRUE(save.present);
  EXPECT_EQ(save.step, 200);
}

TEST_F(CompletedSaveTest, AnAttemptThatIsOverKeepsIt) {
  Say(1, "saved checkpoint /scratch/run7/step_200.pt\n");
  Say(2, kRestart);
  ASSERT_EQ(job_.earlier().size(), 1u);
  EXPECT_EQ(job_.earlier().back().completed.step, 200);
  EXPECT_FALSE(NewestCompletedSave(job_.now(), At(3)).present);
}

}  // namespace
}  // namespace rankscope::windows
