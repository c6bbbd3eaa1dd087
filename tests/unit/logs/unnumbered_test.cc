// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Programs that print epochs, rounds, shares or samples where others print steps.
#include <gtest/gtest.h>

#include <string_view>

#include "feed_lines.h"

namespace rankscope::logs {
namespace {

struct Expected {
  std::string_view text, format, step, loss, grad_norm, learning_rate;
};

TEST(Unnumbered, Records) {
  const Expected cases[] = {
      // MXNet: Module.fit's Speedometer, of three versions; metrics that are no loss
      {"INFO:root:Epoch[3] Batch [20]\tSpeed: 1234.50 samples/sec\taccuracy=0.500000\t"
       "cross-entropy=0.750000",
       "mxnet", "20", "0.750000", "", ""},
      {"2026-02-03 04:05:06,789 Epoch[3] Batch [20-40]\tSpeed: 1234.50 samples/sec\tloss=0.625",
       "mxnet", "40", "0.625", "", ""},
      {"INFO:root:Epoch[0] Batch [20]\tSpeed: 1234.50 samples/sec\tTrain-accuracy=0.500000",
       "mxnet", "20", "", "", ""},
      // Boosted trees: rounds; a metric that rises is no loss
      {"[12]\ttrain-rmse:0.5\teval-rmse:0.625", "boosting", "12", "0.5", "", ""},
      {"[04:05:06] [12]\ttrain-mlogloss:0.25\ttest-mlogloss:0.5", "boosting", "12", "0.25", "", ""},
      {"[12]\ttrain-rmse:0.5+0.01\ttest-rmse:0.625+0.02", "boosting", "12", "0.5", "", ""},
      {"[12]\ttrain-auc:0.75\teval-auc:0.5", "boosting", "12", "", "", ""},
      {"[100]\ttraining's l2: 0.5\tvalid_1's l2: 0.625", "boosting", "100", "0.5", "", ""},
      {"[100]\tvalid_0's binary_logloss: 0.5", "boosting", "100", "", "", ""},
      {"12:\tlearn: 0.5000000\ttest: 0.6250000\tbest: 0.6250000 (12)\ttotal: 600ms\tremaining: "
       "4.4s",
       "catboost", "12", "", "", ""},
      // Ray Tune's result of an iteration; what is indented more is of an evaluation
      {"Result for PPO_CartPole-v1_1a2b3_00000:\n  date: 2026-02-03_04-05-06\n  "
       "episode_reward_mean: 21.5\n  evaluation:\n    loss: 9.5\n  loss: 6.25\n  "
       "training_iteration: 3\n  trial_id: 1a2b3_00000\n",
       "rllib", "3", "6.25", "", ""},
      // rsl_rl: a heading, values below it; no reward before an episode has ended
      {"###\n\n      Learning iteration 12/1500      \n\n  Computation: 95673 steps/s (collection: "
       "0.6s, learning 0.2s)\n   Value function loss: 0.125\n   Mean reward: 19.25\n---\n   "
       "Iteration time: 0.82s\n",
       "rsl_rl", "12", "", "", ""},
      {"fps step: 44938 fps step and policy inference: 43526 fps total: 38962 epoch: 36/3000 "
       "frames: 1146880",
       "rl_games", "36", "", "", ""},
      // DeepXDE: the parts of a loss
      {"Step      Train loss              Test loss               Test metric\n"
       "2000      [3.25e-02, 1.25e-04]    [3.5e-02, 1.5e-04]      []  ",
       "headed_table", "2000", "[3.25e-02 1.25e-04]", "", ""},
      {"epoch: 3 step: 1875, loss is 0.0625", "mindspore", "1875", "0.0625", "", ""},
      {"2026-02-03 04:05:06 INFO     Training average loss at step 100: 0.5", "loss_at_step", "100",
       "0.5", "", ""},
      {"Training loss (for one batch) at step 200: 0.75", "loss_at_step", "200", "0.75", "", ""},
      {"Loss at epoch 3 = nan", "loss_at_step", "3", "nan", "", ""},
      {"[2026-02-03 04:05:06] Ep. 1 : Up. 1,500 : Sen. 256,000 : Cost 8.71 * 5,112,001 : Time "
       "61.21s : 81233.11 words/s : gNorm 0.7112",
       "marian", "1500", "8.71", "0.7112", ""},
      // No step: a share, tokens, samples
      {"training 12.0% | loss 0.5", "generic", "", "0.5", "", ""},
      {"tokens: 6.50M | loss: 0.5 | tok/s: 52312", "generic", "", "0.5", "", ""},
      {"12800 samples seen, loss = 0.5, lr = 1e-3", "generic", "", "0.5", "", "1e-3"},
      {"progress: 0.020 loss: 0.5", "generic", "", "0.5", "", ""},
  };
  for (const Expected& test : cases) {
    const Records records = ReadText(test.text);
    ASSERT_FALSE(records.rows.empty()) << test.text;
    const Row& row = records.rows.back();
    EXPECT_EQ(row.format, test.format) << test.text;
    EXPECT_EQ(row.step, test.step) << test.text;
    EXPECT_EQ(row.loss, test.loss) << test.text;
    EXPECT_EQ(row.grad_norm, test.grad_norm) << test.text;
    EXPECT_EQ(row.learning_rate, test.learning_rate) << test.text;
  }
}

TEST(Unnumbered, NoRecord) {
  for (const std::string_view line : {
           // no round, and no position
           "[12] training started",
           "[04:05:06] train-rmse: see below",
           "12: learn: more below, total: 3",
           "accuracy 92.0% | loss 0.35",
           "Epoch[3] Batch [20]: see below",
           "Training average positive_sample_loss at step 100: 0.5",
           "Validation loss at step 100: 0.5",
           "test_loss at step 100: 0.5",
           "stopped for a loss at step 100",
           "epoch: 3 step: 1875, loss is large",
           "fps step and policy inference: 43526 epoch: many frames: 1",
       }) {
    EXPECT_TRUE(ReadText(line).rows.empty()) << line;
  }
}

TEST(Unnumbered, WhatANumberCounts) {
  struct Counted {
    std::string_view text;
    StepUnit unit;
  };
  for (const Counted& test : {
           Counted{"Epoch 3 - train loss: 0.5", StepUnit::kEpochs},
           Counted{"step 3 loss 0.5", StepUnit::kSteps},
           Counted{"Epoch: [0][  10/5005]\tTime  0.5 ( 0.6)\tLoss 6.9 (6.9)", StepUnit::kSteps},
           Counted{"Train Epoch: 1 [25600/60000 (43%)]\tLoss: 0.5", StepUnit::kSamples},
           Counted{"[12]\ttrain-rmse:0.5", StepUnit::kRounds},
           Counted{"Loss at epoch 3: 0.5", StepUnit::kEpochs},
           Counted{"epoch     train_loss\n0         0.825", StepUnit::kEpochs},
       }) {
    const Records records = ReadText(test.text);
    ASSERT_FALSE(records.rows.empty()) << test.text;
    EXPECT_EQ(records.rows.back().progress.step_unit, test.unit) << test.text;
  }
}

}  // namespace
}  // namespace rankscope::logs
