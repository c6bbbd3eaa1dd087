// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What stands before a program's own line changes nothing of what is read in it.
#include "detectors/logs/progress/own_line.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "feed_lines.h"

namespace rankscope::logs {
namespace {

constexpr std::string_view kPrefixes[] = {
    "10.0.0.12: ",
    "gpu012: ",
    "gpu012 | ",
    "llm-train-0 pytorch ",
    "trainer/0 ",
    "i.pretrain/0 [default0]:",
    "[pod/llm-train-0/pytorch] ",
    "2026-02-03T04:05:06+0000 gpu-node-07 python3[12345]: ",
    "Feb 03 04:05:06 gpu-node-07 python3[12345]: ",
    "Feb 03 04:05:06 ",
    "Tue Feb  3 04:05:06 2026 ",
    "1748736000.123 ",
    "04:05:06 [INFO] ",
    "[2026-02-03 04:05:06] ",
    "[2026-02-03 04:05:06,123][__main__][INFO] - ",
    "[2026-02-03 04:05:06 swin_tiny] (main.py 246): INFO ",
    "[02/03 04:05:06] ppdet.engine INFO: ",
    "[02/03/26 04:05:06] INFO     ",
    "2026-02-03 04:05:06,123 - trainer - INFO - ",
    "2026-02-03 04:05:06.123 | INFO     | __main__:train:212 - ",
    "02/03/2026 04:05:06 - INFO - __main__ - ",
    "I0203 04:05:06.123456 140412345678 train.py:212] ",
    "I20260203 04:05:06 12345 dinov2 helpers.py:103] ",
    "INFO:root:",
    "[INFO] ",
    "Feb 03 04:05:06 [rank0]: [INFO] ",
};

std::string Told(const Records& records) {
  std::string told;
  for (const Row& row : records.rows)
    told += row.step + "/" + row.loss + "/" + row.learning_rate + " ";
  return told;
}

// `text` with `prefix` before each of its lines.
std::string Prefixed(std::string_view prefix, std::string_view text) {
  std::string lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n') + 1, text.size());
    const size_t size = end == 0 ? text.size() : end;
    lines += std::string(prefix) + std::string(text.substr(0, size));
    text.remove_prefix(size);
  }
  return lines;
}

TEST(OwnLine, APrefixChangesNoRecord) {
  for (const std::string_view text : {
           "Epoch: [0][  40/625]\tTime  0.5 ( 0.6)\tData  0.1 ( 0.1)\tLoss 6.5e+00 (6.9e+00)\n",
           "Train: [0/300][10/1251]\teta 0:12:34 lr 0.000001\t wd 0.0500\ttime 0.4512 "
           "(0.5612)\tloss "
           "6.8887 (6.9087)\tgrad_norm 1.3771 (1.8123)\n",
           "step:3/900 train_loss:8.4 train_time:310ms step_avg:103.3ms\n",
           "s:12 trl:3.45 lr:0.0003 norm:0.27\n",
           "[1,  2000] loss: 2.173\n",
           "[step=12/900,epoch=0]\n    train/CrossEntropyLoss=2.375\n    optim/LR=0.001\nend\n",
           "step\ttrain_loss\tlr\n10\t2.5\t0.001\n20\t2.25\t0.001\n",
           "|  train/            |          |\n| time/              |          |\n|    "
           "total_timesteps | 2048     |\n| train/             |          |\n|    loss            "
           "| "
           "6.25     |\n-----------------\n",
           "TRAIN | it 100 | loss 3.9\n",
           "iter 10: loss 4.125, time 31.5ms, mfu 1.25%\n",
           "{'loss': 2.31, 'grad_norm': 1.25, 'learning_rate': 5e-05, 'epoch': 0.01}\n",
       }) {
    const std::string bare = Told(ReadText(text));
    for (const std::string_view prefix : kPrefixes) {
      const std::string lines = Prefixed(prefix, text);
      const Records records = ReadText(lines);
      EXPECT_EQ(Told(records), bare) << lines;
    }
  }
}

TEST(OwnLine, AnEvaluationStaysOneBehindAPrefix) {
  for (const std::string_view text : {
           "EVAL | it 100 | loss 3.9",
           "VAL | step 100 | loss 3.9",
           "Valid | step 100 | loss 3.9",
           "TEST | it 100 | loss nan",
           "eval | step 10 | loss 2.5",
           "validation: step 10 loss 2.5",
           "step 250: train loss 3.0, val loss 3.1",
       }) {
    for (const std::string_view prefix : kPrefixes) {
      const std::string line = std::string(prefix) + std::string(text);
      EXPECT_TRUE(ReadText(line).rows.empty()) << line;
    }
  }
}

TEST(OwnLine, WhatARecordMayBeginWithStays) {
  for (const std::string_view line : {
           "step5: loss 2.1",
           "Iteration 10: loss 2.3",
           "epoch/0 step 10",
           "E1 | loss 2.1",
           "[teacher] step 10 loss 2.1",
           "train | step 10 | loss 2.1",
           "eval-job-0 pytorch step 10 loss 2.1",
           "llm-train-0 eval step 10 loss 2.1",
           "2026-02-03 04:05:06,5,2.1",
           "12/10/600 loss 2.1",
           "    train/CrossEntropyLoss=2.375",
           "| loss | 0.5 |",
           "[10/600] loss 2.1",
           "[1,  2000] loss: 2.173",
       }) {
    EXPECT_EQ(OwnLine(line), line);
  }
}

TEST(OwnLine, OnlyWhatStandsBeforeItGoes) {
  const struct {
    std::string_view line;
    std::string_view own;
  } cases[] = {
      {"[INFO] Train: [0/300][10/1251]", "Train: [0/300][10/1251]"},
      {"[INFO] | loss | 0.5 |", "| loss | 0.5 |"},
      {"2026-02-03 04:05:06 | INFO | a.b:c:1 - | loss | 0.5 |", "| loss | 0.5 |"},
      {"Feb 03 04:05:06     train/Loss=2.5", "    train/Loss=2.5"},
      {"[INFO] EVAL | it 100", "EVAL | it 100"},
      {"[INFO] [10/600] loss 2.1", "[10/600] loss 2.1"},
      {"INFO lr: 0.1 step 10", "lr: 0.1 step 10"},
      {"2026-02-03 04:05:06 evaluator: step 10", "step 10"},
      {"INFO acc: 0.5 step 10", "acc: 0.5 step 10"},
      {"10.0.0.12: packet loss: 3", "packet loss: 3"},
  };
  for (const auto& test : cases) EXPECT_EQ(OwnLine(test.line), test.own) << test.line;
}

}  // namespace
}  // namespace rankscope::logs
