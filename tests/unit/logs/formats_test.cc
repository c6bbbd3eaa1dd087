// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include "detectors/logs/progress/formats.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>

#include "feed_lines.h"

namespace rankscope::logs {
namespace {

bool Claims(const FormatRow& row, std::string_view text) {
  bool anchored = false;
  for (const std::string_view anchor : row.anchors)
    anchored = anchored || text.find(anchor) != std::string_view::npos;
  CleanLine line;
  line.text = line.original = text;
  RecordList out;
  return anchored && row.parse(line, out) && !out.empty();
}

TEST(Formats, RowsAreWellFormed) {
  std::set<std::string_view> names;
  for (const FormatRow& row : Formats()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_FALSE(row.framework.empty()) << row.name;
    EXPECT_FALSE(row.anchors.empty()) << row.name;
    for (const std::string_view anchor : row.anchors) EXPECT_GE(anchor.size(), 3u) << row.name;
  }
}

TEST(Formats, EveryExampleIsClaimedByItsRowOnly) {
  for (const FormatRow& row : Formats()) {
    const bool spans = row.example.find('\n') != std::string_view::npos;
    if (!spans) {
      EXPECT_TRUE(Claims(row, row.example)) << row.name;
    }
    for (const FormatRow& other : Formats()) {
      // The fallback may read what a named dialect claims before it is asked; so may the plain
      // loop and the words of hand-written ones, which stand behind.
      if (other.framework == "pytorch_example" && &other > &row) continue;
      if (other.name == row.name || other.name == "generic" || other.name == "pytorch_loop" ||
          other.name == "metric" || spans) {
        continue;
      }
      EXPECT_FALSE(Claims(other, row.example))
          << other.name << " claims the example of " << row.name;
    }
    const Records records = ReadText(row.example);
    ASSERT_LE(records.rows.size(), 1u) << row.name;
    ASSERT_GE(records.rows.size() + records.marks.size(), 1u) << row.name;
    if (!records.rows.empty()) {
      EXPECT_EQ(records.rows[0].format, row.name);
      EXPECT_TRUE(records.marks.empty()) << row.name;
    } else if (records.marks[0].kind == MarkerKind::kFact) {
      EXPECT_TRUE(row.name.starts_with(records.marks[0].name)) << row.name;
      EXPECT_FALSE(records.marks[0].text.empty()) << row.name;
    } else {
      EXPECT_EQ(records.marks[0].name, row.name);
    }
  }
}

struct Expected {
  std::string_view line;
  std::string_view format, step, loss, grad_norm, learning_rate;
};

TEST(Formats, Records) {
  const Expected cases[] = {
      // Hugging Face Trainer and its descendants
      {"{'loss': 2.3, 'learning_rate': 5e-05, 'epoch': 0.1}", "hf_trainer", "", "2.3", "", "5e-05"},
      {"{'loss': '2.3', 'grad_norm': '1.5', 'learning_rate': '5e-05', 'epoch': '0.1'}",
       "hf_trainer", "", "2.3", "1.5", "5e-05"},
      {"{'loss': 0.0, 'grad_norm': nan, 'learning_rate': 0.0, 'epoch': 1.0}", "hf_trainer", "",
       "0.0", "nan", "0.0"},
      {"{'loss': inf, 'epoch': 1.0}   ", "hf_trainer", "", "inf", "", ""},
      {"{'loss': 0.5, 'learning_rate': 1e-4, 'epoch': 0.08, 'step': 10}", "hf_trainer", "10", "0.5",
       "", "1e-4"},
      {"  3%|#   | 3/100 [00:01<00:32,  1.2s/it]{'loss': 0.5, 'epoch': 0.1}", "hf_trainer", "",
       "0.5", "", ""},
      {"[INFO|2026-02-03 04:05:06] logging.py:157 >> {'loss': 0.5, 'learning_rate': 2.5000e-06, "
       "'epoch': 0.29}",
       "hf_trainer", "", "0.5", "", "2.5000e-06"},
      {"{'loss': 1.02, 'grad_norm': 0.5, 'epoch': 0.5, 'global_step/max_steps': '35/188', "
       "'memory(GiB)': 75.3}",
       "hf_trainer", "35", "1.02", "0.5", ""},
      {"{'loss': 0.0, 'rewards/f, g': [1, 2], 'reward': 1.7, 'kl': 0.0005, 'epoch': 0.3}",
       "hf_trainer", "", "0.0", "", ""},
      {"{\"current_steps\": 10, \"total_steps\": 90, \"loss\": 1.2, \"lr\": 5e-06, \"epoch\": 0.1}",
       "hf_trainer", "10", "1.2", "", "5e-06"},
      // Megatron
      {" [2026-02-03 04:05:06] iteration       71/     100 | consumed samples:         9088 | "
       "elapsed time per iteration "
       "(ms): 536.6 | learning rate: 1.42E-05 | lm loss: 1.818812E+00 | load_balancing_loss: "
       "1.01E+00 | loss scale: 1.0 | "
       "grad norm: 1.300 |",
       "megatron", "71", "1.818812E+00", "1.300", "1.42E-05"},
      {" iteration       10/ 1000 | learning rate: 0.000E+00 | loss scale: 8388608.0 | number of "
       "skipped iterations:  10 |",
       "megatron", "10", "", "", "0.000E+00"},
      {" iteration        1/    10 | elapsed time per iteration (ms): 2.5 | lm-loss: NAN | grad "
       "norm: inf |",
       "megatron", "1", "NAN", "inf", ""},
      {"[default7]: iteration  12/ 99 | elapsed time per iteration (s): 105.22 | lm loss: 2.5 |",
       "megatron", "12", "2.5", "", ""},
      {" samples/sec: 32.4 | iteration       10/  320000 | elapsed time per iteration (ms): 3158.3 "
       "| learning rate: 9.7E-06 "
       "| lm_loss: 1.1E+01 |",
       "megatron", "10", "1.1E+01", "", "9.7E-06"},
      {"7:  [2026-02-03 04:05:06.261551] iteration        1/       4 | consumed samples:           "
       "64 | lm loss: 1.3E+01 |",
       "megatron", "1", "1.3E+01", "", ""},
      // DeepSpeed
      {"[2026-02-03 04:05:06,985] [INFO] [logging.py:69:log_dist] [Rank 0] step=40, skipped=2, "
       "lr=[5e-05, 6e-05], mom=[]",
       "deepspeed", "40", "", "", "5e-05"},
      // nanoGPT and friends
      {"iter 10: loss nan, time 30.5ms, mfu -100.00%", "nanogpt", "10", "nan", "", ""},
      {"step:12/900 train_loss:3.25 train_time:1500ms step_avg:nanms", "modded_nanogpt", "12",
       "3.25", "", ""},
      {"step:12/900 train_time:1500ms step_avg:125.0ms", "modded_nanogpt", "12", "", "", ""},
      {"s:12 trl:3.25 lr:0.000306 norm:0.27", "modded_nanogpt", "12", "3.25", "0.27", "0.000306"},
      {"step    5 | loss: 10.95 | lr 2.0e-06 | norm: 15.1 | dt: 1300.2ms | tok/sec: 4000",
       "pytorch_loop", "5", "10.95", "15.1", "2.0e-06"},
      // torchtitan, NeMo, mmengine, timm
      {"[rank0]:[titan] 2026-02-03 04:05:06,338 - root - INFO - step: 1,200  loss:  3.25  "
       "grad_norm:  0.83  memory:  "
       "9.46GiB(64.99%)  tps: 7,282",
       "torchtitan", "1200", "3.25", "0.83", ""},
      {"Training epoch 0, iteration 12/149 | lr: 3e-05 | global_step: 120 | reduced_train_loss: "
       "1.25 | val_loss: 4.1",
       "nemo", "120", "1.25", "", "3e-05"},
      {"02/03 04:05:06 - mmengine - INFO - Iter(train) [  50/1000]  base_lr: 1e-3 lr: 1e-03  eta: "
       "0:10:00  time: 0.2  "
       "grad_norm: 3.5  loss: 0.75  loss_cls: 0.5",
       "mmengine", "50", "0.75", "3.5", "1e-03"},
      {"Train: 3 [  50/1251 (  4%)]  Loss: 6.9 (6.91)  Time: 1.2s, 700/s  LR: 1.0e-06  Data: 0.8",
       "timm", "50", "6.9", "", "1.0e-06"},
      // Lightning and tqdm
      {"Epoch 0:  97% 1651/1702 [13:00<00:24,  2.11it/s, loss=0.158, v_num=0, train_loss=0.149]",
       "lightning", "1651", "0.158", "", ""},
      {"Epoch 2: 100%|###| 18/18 [00:17<00:00, 4.47s/it, v_num=3, train_loss_step=0.25, "
       "val_loss=0.5]",
       "lightning", "18", "0.25", "", ""},
      {"Epoch 0:   1%| | 795/77225 [9:07:58<878:01:48, 41.36s/it, loss=3.1, v_num=, "
       "reduced_train_loss=3.090, "
       "global_step=794.0]",
       "nemo", "794.0", "3.090", "", ""},
      {"Steps:  10%|# | 100/1000 [01:40<15:00, 1.0it/s, lr=0.0001, step_loss=0.0123]", "tqdm_loop",
       "100", "0.0123", "", "0.0001"},
      // Keras
      {"413/413 [==============================] - 1s 2ms/step - loss: nan", "keras", "", "nan", "",
       ""},
      {" 938/938 \xe2\x94\x81\xe2\x94\x81\xe2\x94\x81 2s 1ms/step - accuracy: 0.87 - loss: 0.4257 "
       "- val_loss: 0.1",
       "keras", "", "0.4257", "", ""},
      {"  4/234 [....] - ETA: 25:09:00 - loss: inf", "keras", "", "inf", "", ""},
      {"74s - loss: 0.4465 - acc: 0.7810", "keras", "", "0.4465", "", ""},
      // The PyTorch examples and hand-written loops
      {"Epoch: [0]  [  10/7329]  eta: 4:30:12  lr: 0.000400  loss: 1.73 (2.01)  loss_cls: 0.5 "
       "(0.6)  time: 0.5  data: 0.01",
       "pytorch_example", "10", "1.73", "", "0.000400"},
      {"Train Epoch: 1 [640/60000 (1%)]\tLoss: 2.300000", "pytorch_example", "640", "2.300000", "",
       ""},
      {"Epoch 3/10, Step 100/500, Loss: 0.5", "pytorch_loop", "100", "0.5", "", ""},
      {"Epoch [1/10], Step [100/500], Loss: 0.5000", "pytorch_loop", "100", "0.5000", "", ""},
      {"[Epoch 1, Step 10] loss=0.5", "pytorch_loop", "10", "0.5", "", ""},
      {"[1,  2000] loss: 2.173", "pytorch_loop", "2000", "2.173", "", ""},
      {"| epoch   1 |   200/ 2983 batches | lr 20.00 | ms/batch 12.5 | loss  7.63 | ppl  2051.2",
       "pytorch_loop", "200", "7.63", "", "20.00"},
      {"step=5 train_loss=1.5 grad norm=0.5 lr=1e-4", "pytorch_loop", "5", "1.5", "0.5", "1e-4"},
      {"INFO:root:step 5, loss: -0.25", "pytorch_loop", "5", "-0.25", "", ""},
      {"[rank1]: 2026-02-03 04:05:06 INFO Step 1,500 | Loss 2.5 | LR 1e-4", "pytorch_loop", "1500",
       "2.5", "", "1e-4"},
      {"\x1b[32mstep 7\x1b[0m loss \x1b[1m3.5\x1b[0m", "pytorch_loop", "7", "3.5", "", ""},
      {"iter 3 loss 1e400", "pytorch_loop", "3", "1e400", "", ""},
      {"iter 0: train loss 4.25", "pytorch_loop", "0", "4.25", "", ""},
  };
  for (const Expected& test : cases) {
    const Records records = ReadText(test.line);
    ASSERT_EQ(records.rows.size(), 1u) << test.line;
    const Row& row = records.rows[0];
    EXPECT_EQ(row.format, test.format) << test.line;
    EXPECT_EQ(row.step, test.step) << test.line;
    EXPECT_EQ(row.loss, test.loss) << test.line;
    EXPECT_EQ(row.grad_norm, test.grad_norm) << test.line;
    EXPECT_EQ(row.learning_rate, test.learning_rate) << test.line;
  }
}

Progress One(std::string_view line) {
  const Records records = ReadText(line);
  EXPECT_EQ(records.rows.size(), 1u) << line;
  return records.rows.empty() ? Progress() : records.rows[0].progress;
}

TEST(Formats, WhatElseARecordSays) {
  EXPECT_DOUBLE_EQ(One("step 5 loss 18.1 lr 0.05 step_time 0.053s").step_seconds, 0.053);
  EXPECT_DOUBLE_EQ(One("iter 10: loss 4.2, time 30ms, mfu 1%").step_seconds, 0.03);
  EXPECT_DOUBLE_EQ(One("step 5 | loss: 1.5 | dt: 1300ms").step_seconds, 1.3);
  EXPECT_DOUBLE_EQ(
      One(" iteration 3/ 9 | elapsed time per iteration (s): 2.5 | lm loss: 1.0 |").step_seconds,
      2.5);
  EXPECT_DOUBLE_EQ(
      One("Epoch 0:  22%|#| 4/18 [00:17<01:02,  4.5s/it, loss=10.1, v_num=3]").step_seconds, 4.5);
  EXPECT_DOUBLE_EQ(
      One("Epoch 0:  22%|#| 4/18 [00:17<01:02,  4.0it/s, loss=10.1, v_num=3]").step_seconds, 0.25);
  const Progress megatron = One(
      " iteration 3/ 9 | learning rate: 1E-5 | loss scale: 512.0 | number of skipped iterations: 2 "
      "| number of nan iterations: 1 |");
  EXPECT_TRUE(megatron.loss_key_missing);
  EXPECT_EQ(megatron.total_steps, 9);
  EXPECT_EQ(megatron.loss_scale, 512);
  EXPECT_EQ(megatron.skipped_iterations, 2);
  EXPECT_EQ(megatron.nan_iterations, 1);
  EXPECT_FALSE(One(" iteration 3/ 9 | lm loss: 1.0 |").loss_key_missing);
  EXPECT_EQ(One("  3%|#| 3/100 [00:01<00:32, 1.2s/it]{'loss': 0.5, 'epoch': 0.1}").total_steps,
            100);
  EXPECT_EQ(One("{'loss': 0.5, 'epoch': 0.1, 'reward': 1.5}").reward, 1.5);
  EXPECT_TRUE(std::isnan(One("{'loss': nan, 'epoch': 0.1}").loss));
  EXPECT_EQ(One("Epoch 3/10, Step 100/500, Loss: 0.5").epoch, 3);
  EXPECT_TRUE(std::isnan(One("Epoch 3/10, Step 100/500, Loss: 0.5").total_steps));
  EXPECT_EQ(One("Step 100/500, Loss: 0.5").total_steps, 500);
  EXPECT_EQ(One("Epoch 1 | iter 4 step 7 | loss train: 2.4, val: n/a | iter time: 41.5 ms").loss,
            2.4);
  // Trainer.log with include_num_input_tokens_seen: the time so far ends nothing.
  EXPECT_EQ(
      One("{'loss': 0.5, 'learning_rate': 1e-05, 'epoch': 0.2, 'num_input_tokens_seen': 8192, "
          "'train_runtime': 12.5, 'train_tokens_per_second': 655.4}")
          .loss,
      0.5);
}

TEST(Formats, Markers) {
  const struct {
    std::string_view line;
    MarkerKind kind;
    std::string_view text;
    double number;
  } cases[] = {
      {"  Total optimization steps = 1,250", MarkerKind::kTrainBegin, "", 1250},
      {"{'train_runtime': 12.5, 'train_steps_per_second': 8.0, 'train_loss': 4.25, 'epoch': 4.0}",
       MarkerKind::kTrainEnd, "", 100},
      {"{'train_runtime': 12.5, 'train_loss': 4.25}", MarkerKind::kTrainEnd, "", kAbsent},
      {"{'eval_loss': 0.5, 'eval_runtime': 6.4, 'epoch': 0.05}", MarkerKind::kEval, "", 0.5},
      {"step 250: train loss 2.4, val loss 2.5", MarkerKind::kEval, "", 2.5},
      {"step:0/900 val_loss:10.8 train_time:4ms step_avg:nanms", MarkerKind::kEval, "", 10.8},
      {"s:250 tel:3.25", MarkerKind::kEval, "", 3.25},
      {" validation loss at iteration 7000 | lm loss value: 7.5E+00 | lm loss PPL: 1.3E+03 |",
       MarkerKind::kEval, "", 7.5},
      {"resumed from checkpoint out/60.pt at step 60", MarkerKind::kLoaded, "out/60.pt", 60},
      {"  Continuing training from global step 500", MarkerKind::kLoaded, "", 500},
      {"  successfully loaded checkpoint from out/m at iteration 500", MarkerKind::kLoaded, "out/m",
       500},
      {"no checkpoint found, starting from scratch", MarkerKind::kNoCheckpoint, "", kAbsent},
      {"    will not load any checkpoints and will start from random", MarkerKind::kNoCheckpoint,
       "", kAbsent},
      {"Saving model checkpoint to out/checkpoint-10", MarkerKind::kSaveBegin, "out/checkpoint-10",
       10},
      {"=> loading checkpoint 'a b.pt'", MarkerKind::kLoadBegin, "a b.pt", kAbsent},
      {"[default] Worker group FAILED. 2/3 attempts left; will restart worker group",
       MarkerKind::kRestart, "", kAbsent},
      {"| distributed init (rank 3): env://", MarkerKind::kRendezvousBegin, "", kAbsent},
  };
  for (const auto& test : cases) {
    const Records records = ReadText(test.line);
    ASSERT_EQ(records.marks.size(), 1u) << test.line;
    EXPECT_TRUE(records.rows.empty()) << test.line;
    EXPECT_EQ(records.marks[0].kind, test.kind) << test.line;
    EXPECT_EQ(records.marks[0].text, test.text) << test.line;
    if (std::isnan(test.number)) {
      EXPECT_TRUE(std::isnan(records.marks[0].number)) << test.line;
    } else {
      EXPECT_EQ(records.marks[0].number, test.number) << test.line;
    }
  }
}

}  // namespace
}  // namespace rankscope::logs
