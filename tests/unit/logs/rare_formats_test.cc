// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Programs that print tables, boxes and names of their own, and what looks like them.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <string_view>

#include "feed_lines.h"

namespace rankscope::logs {
namespace {

struct Expected {
  std::string_view text, format, step, loss;
};

TEST(RareFormats, Records) {
  const Expected cases[] = {
      // darknet, whose batches look like the labels of srun; its first version and its classifier
      {" 96: 1.084791, 1.030988 avg loss, 0.001000 rate, 3.212211 seconds, 6144 images, 9.1 hours "
       "left",
       "darknet", "96", "1.030988"},
      {"1996: 1.08, 1.03 avg, 0.001 rate, 3.2 seconds, 127744 images", "darknet", "1996", "1.03"},
      {"96, 0.012: 1.08, nan avg, 0.001 rate, 3.2 seconds, 6144 images", "darknet", "96", "nan"},
      {"0:  96: 1.08, 1.03 avg loss, 0.001 rate, 3.2 seconds, 6144 images", "darknet", "96",
       "1.03"},
      {"tick 5     kimg 20.0     time 3m 15s       sec/tick 37.5    sec/kimg 9.37", "stylegan", "5",
       ""},
      {"tick 30 kimg 120.0 loss 0.4 time 3m 15s sec/tick 81.2", "stylegan", "30", "0.4"},
      {"2990 (9.97%)        282 K                23.339 ms            1 h, 9 m, 1 s        176 K",
       "nerfstudio", "2990", ""},
      {"DEEPMD INFO    batch     100: trn: rmse = 1.42e+01, rmse_e = 3.00e-01, lr = 1.00e-03",
       "deepmd", "100", "1.42e+01"},
      {"DEEPMD INFO    batch     100 training time 3.71 s, testing time 0.02 s", "deepmd", "100",
       ""},
      {"#  step      rmse_val    rmse_trn    lr\n    100      2.95e+00     2.90e+00     1.0e-03",
       "headed_table", "100", "2.90e+00"},
      {"  Train      #    Epoch      wal       LR       loss_f         loss\n! Train               "
       "1   31.121    0.005     0.991        0.875\n! Validation          1   31.121    0.005     "
       "0.5        0.25",
       "headed_table", "1", "0.875"},
      {"E    #       LOSS TOK2VEC  LOSS NER  ENTS_F  SCORE \n---  ------  ------------  --------  "
       "------  ------\n  0     200          0.00     45.00    0.00    0.00",
       "headed_table", "200", ""},
      {"E    #       LOSS NER  ENTS_F  SCORE \n  3     800       nan    0.00    0.00",
       "headed_table", "800", "nan"},
      {"   --> TIME: 2026-02-03 04:05:06 -- STEP: 25/1000 -- GLOBAL_STEP: 1025\n     | > loss: 2.5 "
       " (2.625)\n     | > step_time: 0.5  (0.5)",
       "coqui", "1025", "2.5"},
      {"   --> TIME: 2026-02-03 04:05:06 -- STEP: 25/1000 -- GLOBAL_STEP: 25\n     | > loss_disc: "
       "2.5  (2.6)\n     | > loss_mel: nan  (nan)\n     | > step_time: 0.5  (0.5)",
       "coqui", "25", "nan"},
      {"+------+\n| Trial name | status  | loc | iter | loss |\n|---+---|\n"
       "| t_00000    | RUNNING | n1  |    3 | 0.5  |",
       "trial_table", "3", "0.5"},
      {"│ Trial name   status    iter   reward │\n├────┤\n│ t_00000      RUNNING      3     21.5 │",
       "trial_table", "3", ""},
      {"│ Training result            │\n├────┤\n│ training_iteration   3 │\n│ loss     0.5 │\n╰──╯",
       "ray_result", "3", "0.5"},
      {"loss: 2.301026  [ 6464/60000]", "quickstart", "6464", "2.301026"},
      {"Loss after 100 iterations: 0.5", "loss_at_step", "100", "0.5"},
      {"Cost after iteration 100: 0.5", "loss_at_step", "100", "0.5"},
      {"Cost after epoch 3: nan", "loss_at_step", "3", "nan"},
      {"Epoch 7, BCE: 0.5, Dice: 0.8", "generic", "7", "0.5"},
      {"epoch 7 | mse 0.25 | mae 0.3 | r2 0.8", "generic", "7", "0.25"},
      {"iteration 7 cost 0.5", "generic", "7", "0.5"},
      {"epoch 7: train_rmse: 0.5", "generic", "7", "0.5"},
      {"epoch 7 ELBO: -31.1", "generic", "7", ""},
      {"epoch 7 ELBO: nan", "generic", "7", "nan"},
      {"epoch 7 loss 0.5 mse 0.25", "generic", "7", "0.5"},
  };
  for (const Expected& expected : cases) {
    const Records records = ReadText(expected.text);
    ASSERT_EQ(records.rows.size(), 1u) << expected.text;
    EXPECT_EQ(records.rows[0].format, expected.format) << expected.text;
    EXPECT_EQ(records.rows[0].step, expected.step) << expected.text;
    EXPECT_EQ(records.rows[0].loss, expected.loss) << expected.text;
  }
}

// Evaluations, benchmarks, settings, listings and downloads.
TEST(RareFormats, NearMisses) {
  for (const std::string_view text : {
           "3: 1.5, 2.5 average of the first runs",
           "96: 1.084791, 1.030988 avg, 12 samples",
           "tick 5 of the clock",
           "tick labels 5, kimg unknown",
           "120 (9.97%)  of 1203 files  23.339 ms",
           "12 (40.0%)   12.5 MB   3.1 MB/s   9 s",
           "model.safetensors 2990 (9.97%)   282 K   23.339 ms   9 m, 1 s",
           "DEEPMD INFO    batch     100: val: rmse = 1.42e+01, rmse_e = 3.00e-01",
           "DEEPMD INFO    batch size 100",
           "# Epoch batch         loss       loss_f\n      1     1         1.02         1.02",
           "#  size   time   loss\n  8   0.5   0.1",
           "E    #       NAME  SIZE\n  0     200          12     45",
           "--> STEP: 3\n     | > avg_loss: 0.5 (+0.00)",
           "| Trial name | status  | loc | lr | momentum |\n| t_00000 | RUNNING | n1 | 0.1 | 0.9 |",
           "| Trial name | status  | iter | loss |\n| t_00000 | PENDING |  | |",
           "| Model | status | iter | loss |\n| a | RUNNING | 3 | 0.5 |",
           "│ Training result │\n│ training_iteration   3 │\n│ done  True │\n╰──╯",
           "loss: 2.301026  [see the manual]",
           "Test cost after epoch 3: 0.5",
           "Cost after the discount: 5",
           "Loss after 100 iterations of warm-up was not measured",
           "Validation RMSE after epoch 7: 0.5",
           "epoch 7: test MSE 0.5",
           "epoch 7 val_rmse: 0.5",
           "objective mse, step size 3",
           "request 7 cost $0.25",
       }) {
    EXPECT_TRUE(ReadText(text).rows.empty()) << text;
  }
}

// The status of several trials is that of several models, and a trial's is printed many times.
TEST(RareFormats, OneTrialCountsAndEachResultOnce) {
  std::string text;
  for (int i = 0; i < 6; ++i) {
    const std::string iteration = std::to_string(1 + i / 2);
    text += "| Trial name | status | iter | loss |\n|----+----|\n| t_0 | RUNNING | " + iteration +
            " | 0.5 |\n| t_1 | RUNNING | " + iteration + " | 9.5 |\n+----+\n";
  }
  const Records records = ReadText(text);
  ASSERT_EQ(records.rows.size(), 3u);
  for (const Row& row : records.rows) EXPECT_EQ(row.loss, "0.5");
}

// Under a launcher of the node a task of srun is a node, and its number no rank.
TEST(RareFormats, TasksOfNodeLaunchersAreNoRanks) {
  constexpr std::string_view kOom = "srun: error: n2: task 1: Out Of Memory\n";
  const Records plain = ReadText(kOom);
  ASSERT_EQ(plain.incidents.size(), 1u);
  EXPECT_EQ(plain.incidents[0].rank, 1);
  const Records nodes =
      ReadText("+ srun torchrun --nnodes 2 --nproc_per_node 8 t.py\n" + std::string(kOom));
  ASSERT_EQ(nodes.incidents.size(), 1u);
  EXPECT_EQ(nodes.incidents[0].rank, -1);
}

}  // namespace
}  // namespace rankscope::logs
