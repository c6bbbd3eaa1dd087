// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Losses and rewards in a program's own words, and what only looks like one.
#include <gtest/gtest.h>

#include <cmath>
#include <string_view>

#include "feed_lines.h"

namespace rankscope::logs {
namespace {

struct Expected {
  std::string_view line;
  std::string_view name;
  double value;
};

TEST(Metric, NameAndValueOfWhatNoDialectReads) {
  const Expected cases[] = {
      {"Train Loss: 0.25, Train Acc: 0.5", "Train Loss", 0.25},
      {"2026-02-03 04:05:06,789 - INFO - Train Loss: 0.25, Train Acc: 0.5", "Train Loss", 0.25},
      {"min_loss:0.75, max_f1:0.5", "min_loss", 0.75},
      {"Epoch 95 [Avg. Loss, Loss]: [6.25, 6.125], 0", "Loss", 6.25},
      {"| mean loss  |   0.5 |", "mean loss", 0.5},
      {"[it 900] EpRew=19.5 EpCost=71.0 | Vr=0.025", "EpRew", 19.5},
      {"PiLoss=0.5 Track=0.25", "PiLoss", 0.5},
      {"global step=640, episodic return=177.5", "episodic return", 177.5},
      {"rewards: tensor([-1., -1., 0.], device='cuda:0')", "rewards", -1},
      {"Losses: tensor(1.5, grad_fn=<AddBackward0>)", "Losses", 1.5},
      {"Train Perplexity: 12.5 | Val Perplexity: 13.5", "Train Perplexity", 12.5},
      {"ppl = 8.5", "ppl", 8.5},
      {"[0/25][100/782] Loss_D: 0.5 Loss_G: 2.25 D(x): 0.75", "Loss_D", 0.5},
  };
  for (const Expected& expected : cases) {
    const Records records = ReadText(expected.line);
    EXPECT_TRUE(records.rows.empty()) << expected.line;
    ASSERT_EQ(records.marks.size(), 1u) << expected.line;
    EXPECT_EQ(records.marks[0].kind, MarkerKind::kMetric) << expected.line;
    EXPECT_EQ(records.marks[0].text, expected.name) << expected.line;
    EXPECT_DOUBLE_EQ(records.marks[0].number, expected.value) << expected.line;
  }
  EXPECT_TRUE(std::isnan(ReadText("Train Loss: nan").marks.at(0).number));
}

TEST(Metric, TensorsWithTheirGraphHaveTheirNames) {
  const Records records = ReadText(
      "{'total': tensor(nan, device='cuda:0', grad_fn=<AddBackward0>), 'auc': tensor(0.5), "
      "'kl': tensor(55.5, grad_fn=<MulBackward0>)} tensor(-inf, grad_fn=<NegBackward0>)");
  ASSERT_EQ(records.marks.size(), 3u);
  for (const auto& mark : records.marks) EXPECT_EQ(mark.name, kGraphMetric);
  EXPECT_EQ(records.marks[0].text, "total");
  EXPECT_TRUE(std::isnan(records.marks[0].number));
  EXPECT_EQ(records.marks[1].text, "kl");
  EXPECT_EQ(records.marks[2].text, "");
  EXPECT_TRUE(std::isinf(records.marks[2].number));
}

TEST(Metric, OtherNumbersBesideTheWordsAreNone) {
  for (const std::string_view line : {
           "3 packets transmitted, 3 received, 0% packet loss, time 2003ms",
           "packet loss: 20%",
           "    return 0",
           "return 5.5  # seconds",
           "Loading the reward model 7b",
           "loss_weight: 0.5",
           "rewrite 3 files",
           "brew 4.1",
           "apply 5 rules",
           "CrossEntropyLoss()",
           "ossification 5",
       }) {
    EXPECT_TRUE(ReadText(line).marks.empty()) << line;
  }
}

}  // namespace
}  // namespace rankscope::logs
