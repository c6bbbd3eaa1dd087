// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Lines that people's own loops print: bars, numbers without a word before them, tables, values in
// a wrapper; and what is so alike that it must not be read.
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "feed_lines.h"

namespace rankscope::logs {
namespace {

struct Form {
  std::string_view text;  // the record is its last
  std::string_view told;  // step/loss/gradient norm/learning rate
};

std::string Told(const Row& row) {
  return row.step + "/" + row.loss + "/" + row.grad_norm + "/" + row.learning_rate;
}

void ExpectRead(std::span<const Form> forms) {
  for (const Form& form : forms) {
    const Records records = ReadText(form.text);
    EXPECT_EQ(records.rows.empty() ? "nothing" : Told(records.rows.back()), form.told) << form.text;
  }
}

void ExpectNothing(std::span<const std::string_view> texts) {
  for (const std::string_view text : texts) {
    const Records records = ReadText(text);
    EXPECT_EQ(records.rows.empty() ? "nothing" : Told(records.rows.back()), "nothing") << text;
  }
}

TEST(LoopForms, StepOfABarIsInTheBar) {
  ExpectRead(std::vector<Form>{
      {"loss: 0.125:   5%|5         | 35/700 [00:10<03:00,  3.50it/s]", "35/0.125//"},
      {"Epoch 3 Loss 2.125:  5%|5    | 5/100 [00:10<03:00,  3.50it/s]", "5/2.125//"},
      {"Epoch 0:  5%|5    | 5/2000 [00:10<03:00,  3.50it/s, Loss=2.125]", "5/2.125//"},
      {"Epoch 1:  7%|7    | 2/28 [00:04<00:57,  2.22s/it, Batch_Loss=0.5]", "2/0.5//"},
      {"Train epoch [1/1]:  5%|5    | 5/100 [00:10<03:00,  3.50it/s, gpt_loss=2.125, lr=1e-5]",
       "5/2.125//1e-5"},
      {"train:  5%|5    | 5/100 [00:10<03:00,  3.50it/s, loss/train/total=2.125]", "5/2.125//"},
      {"train:  5%|5    | 5/100 [00:10<03:00,  3.50it/s, loss=tensor(2.125, device='cuda:0')]",
       "5/2.125//"},
      {"Progress on:train 90it/10.0kit rate:3.2s/it remaining:8:45:10 elapsed:04:48 "
       "postfix:loss=9.06",
       "90/9.06//"},
      {"Progress on:train 1.02kit/10.0kit rate:3.2s/it remaining:8:45:10 elapsed:04:48 "
       "postfix:loss=9.06",
       "/9.06//"}});
  // What another printer wrote behind a bar is its own.
  const Records records = ReadText(
      "  1%|1  | 10/1218 [00:50<1:40:40,  5.01s/it]{'loss': 1.5, 'learning_rate': 2e-05, "
      "'epoch': 0.02}\n");
  ASSERT_EQ(records.rows.size(), 1u);
  EXPECT_EQ(records.rows[0].format, "hf_trainer");
}

TEST(LoopForms, BarsThatTrainNothing) {
  ExpectNothing(std::vector<std::string_view>{
      "Validating:  5%|5    | 5/100 [00:10<03:00,  3.50it/s, loss=2.125]",
      "val loss: 1.25:  5%|5    | 5/100 [00:10<03:00,  3.50it/s]",
      "Quantizing layers:  5%|5    | 5/100 [00:10<03:00,  3.50it/s, loss=2.125]",
      "Generating:  5%|5    | 5/100 [00:10<03:00,  3.50it/s, loss=2.125]",
      "Progress on:eval 90it/10.0kit rate:3.2s/it remaining:8:45:10 elapsed:04:48 postfix:loss=9",
      "accuracy: 0.5, loss: 0.75 ||:  5%|5    | 5/50 [00:10<03:00,  3.50it/s]"});
}

TEST(LoopForms, NumbersWithoutAWord) {
  ExpectRead(std::vector<Form>{
      {"[10/600] loss 2.125", "10/2.125//"},
      {"[ 10 / 600 ] loss 2.125 lr 1e-4", "10/2.125//1e-4"},
      {"1/60, train_loss: 0.625", "1/0.625//"},
      {"[01/40] train_loss: 0.625 valid_loss: 0.75", "01/0.625//"},
      {"10 | loss 9.125 | lr 1.5e-4 | 340.5ms", "10/9.125//1.5e-4"},
      {"48,050 loss=2.125 lr=1e-4", "48050/2.125//1e-4"},
      {"train (2/30) accuracy: 0.81 | loss: 5.125 | lr: 0.001", "2/5.125//0.001"},
      {"Training  [    20/125000]  eta: 2 days, 3:04:05  lr: 0.001 (0.001)  total_loss: 12.5 "
       "(12.75)",
       "20/12.5//0.001"},
      {"TRAIN Batch 0/400 loss 119.25 loss_att 95.5 lr 0.00000400 rank 0",
       "400/119.25//0.00000400"},
      {"[05/06 10:00:39 fastreid.utils.events]:  eta: 1:02:03  epoch/iter: 0/599  total_loss: "
       "5.125  time: 0.3  lr: 3.50e-04  max_mem: 8123M",
       "599/5.125//3.50e-04"},
      {"Step... (500 | Loss: 8.125, Learning Rate: 2e-06)", "500/8.125//2e-06"},
      {"step:1K smpl:38K ep:121 epch:3.04 loss:1.125 grdn:32.5 lr:1.0e-05", "/1.125//1.0e-05"},
      {"step 0.2K/100K  loss 8.625  lr 1.0e-4", "/8.625//1.0e-4"},
      {"epoch 0.15 | loss 5.125 | lr 3e-4", "/5.125//3e-4"},
      {"[  2.5%] loss=4.125 (ema 4.5) lr=3e-4", "/4.125//3e-4"},
      {"Epoch 3/24\n----------\ntrain Loss: 0.5625 Acc: 0.7123", "/0.5625//"}});
}

TEST(LoopForms, NumbersThatAreNoSteps) {
  ExpectNothing(std::vector<std::string_view>{
      "3: loss: 2.125",  // srun -l: the rank
      "[3] worker: loss of 2.5", "[2025] step loss 2.5", "[10/600] packet loss: 2.5",
      "10/600 tests passed, loss of data: 2", "10/600 files, packet_loss: 2.5",
      "valid (2/30) accuracy: 0.81 | loss: 5.125 | lr: 0.001",
      "Test:  [  10/2500]  eta: 0:10:00  loss: 2.125 (3.0)",
      "Validation  [  10/2500]  eta: 0:10:00  loss: 2.125 (3.0)", "val Loss: 0.625 Acc: 0.7",
      "Best train Loss: 0.625 Acc: 0.7", "best epoch 0.5 loss 2.5",
      "step 5, loss: tensor([1.25, 3.5])", "step 5, loss(val): 0.5"});
}

TEST(LoopForms, ValuesInAWrapper) {
  ExpectRead(std::vector<Form>{
      {"step 5, Loss: tensor(8.75, device='cuda:0', grad_fn=<NllLossBackward0>)", "5/8.75//"},
      {"step 5 loss: np.float64(2.125) lr: 1e-4", "5/2.125//1e-4"},
      {"[Train][Epoch 1/120][Iter: 30/5005]lr(PiecewiseDecay): 0.1, loss: 4.875", "30/4.875//0.1"},
      {"step 5 lr[0]=3.0e-04 loss 2.5", "5/2.5//3.0e-04"},
      // The unit in the bracket: the value is scaled.
      {"step:5 - train/loss:1.125 - train/lr(1e-3):0.005", "5/1.125//"},
      {"step 10 312 ms loss 2.125", "10/2.125//"},
      {"step: 10 mem: 41.20 GB loss: 2.125", "10/2.125//"},
      {"DLLL {\"timestamp\": \"1588759920.5\", \"type\": \"LOG\", \"step\": [0, 17], \"data\": "
       "{\"loss\": "
       "2.125}}",
       "17/2.125//"}});
}

TEST(LoopForms, Tables) {
  ExpectRead(std::vector<Form>{
      {"+------+------+\n| step | loss |\n+======+======+\n|   10 | 2.5  |\n+------+------+\n|   "
       "20 | "
       "2.25 |\n",
       "20/2.25//"},
      {"| step | loss | lr |\n|---|---|---|\n| 10 | 2.5 | 1e-4 |\n", "10/2.5//1e-4"},
      {"step | loss\n-----+-----\n10 | 2.5\n", "10/2.5//"},
      {"\xe2\x94\x83 Step \xe2\x94\x83 Loss \xe2\x94\x83 Tok/s \xe2\x94\x83\n\xe2\x94\x82 10   "
       "\xe2\x94\x82 2.5  \xe2\x94\x82 41,234 \xe2\x94\x82\n",
       "10/2.5//"},
      {"step;loss\n10;2.5\n", "10/2.5//"},
      {"timestamp,step,loss\n2026-02-03 04:05:06,10,2.5\n", "10/2.5//"},
      {"step,phase,loss\n10,train,2.5\n10,val,2.75\n", "10/2.5//"}});
  ExpectNothing(std::vector<std::string_view>{
      "| layer | module | loss | time |\n| 0 | q_proj | 2.5 | 1.25 |\n",
      "| model | params | loss |\n| a | 3 | 2.5 |\n",
      "| run | epochs | val loss |\n| 1 | 3 | 2.5 |\n"});
}

// DeepSpeed's pipeline repeats what Megatron prints of the same step.
TEST(LoopForms, OneRecordPerStepBesideMegatron) {
  const Records records = ReadText(
      "steps: 10 loss: 2.2035 iter time (s): 4.012 samples/sec: 255.233\n"
      " iteration       10/    100 | elapsed time per iteration (ms): 4002.7 | learning rate: "
      "1.2E-04 | lm loss: 2.203492E+00 |\n"
      "steps: 20 loss: 2.1035 iter time (s): 4.012 samples/sec: 255.233\n");
  ASSERT_EQ(records.rows.size(), 2u);  // the first came before anything was known of Megatron
  EXPECT_EQ(records.rows[1].format, "megatron");
}

}  // namespace
}  // namespace rankscope::logs
