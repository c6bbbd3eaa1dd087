// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Lines that look like training records and are none.
#include <gtest/gtest.h>

#include <string>

#include "feed_lines.h"

namespace rankscope::logs {
namespace {

TEST(NearMiss, NoRecord) {
  for (const std::string_view line : {
           // evaluation, validation, test
           "eval: step 10 loss 0.5",
           "Validation step 10 loss 0.5",
           "[eval] step 10, loss 0.5",
           "step 100 | test | loss 0.5",
           "Test set: Average loss: 0.0520, Accuracy: 9836/10000",
           "step 10 val_loss 0.5",
           "Epoch 3 valid loss 0.25",
           "| end of epoch   1 | time: 13.2s | valid loss  5.43 | valid ppl   228.15",
           "Validation DataLoader 0:  50%|#####     | 1/2 [00:00<00:00, 12.5it/s, loss=0.5]",
           "evaluating:  50%|#####     | 1/2 [00:00<00:00, 12.5it/s, loss=0.5]",
           "lr finder: step 10 lr 1e-5 loss 2.5",
           "Finding best initial lr:  10%|# | 10/100 [00:01<00:10]",
           "{'eval_loss': 0.5, 'eval_accuracy': 0.5, 'epoch': 1.0}",
           "evaluation result {'loss': 0.5, 'epoch': 1.0}",
           "[    INFO] - eval_loss: 2.5, eval_accuracy: 0.5, global_step: 10",
           "[n1] INFO: 1epoch:valid:1-90batch: loss=80.75",
           "I0203 04:05:06.7 140 logging_writer.py:48] [200] eval_loss=2.25, eval_accuracy=0.5",
           "I0203 04:05:06.7 140 logging_writer.py:48] [200] loss_scale=2.0, learning_rate=0.1",
           "I0203 04:05:06.7 140 logging_writer.py:80] [Hyperparameters] {'loss': 'ce', 'steps': "
           "5}",
           "[2026-02-03 04:05:06,7 INFO] Validation perplexity: 9.5; xent: 2.25",
           "name|3|Loss: see below",
           // other tables than Stable-Baselines3's, and its evaluations
           "| eval/              |          |\n|    mean_reward     | 9.5      |\n| time/          "
           "    | "
           "         |\n|    total_timesteps | 10000    |\n---------------------------------",
           "| time/ | seconds |\n| total_timesteps | 5 |\n| loss | 0.5 |",
           "| train/ | |\n| loss | 0.5 |",
           // Ultralytics: its header, its validation, a bar that downloads, sizes
           "      Epoch    GPU_mem   box_loss   cls_loss   dfl_loss  Instances       Size",
           "                 Class     Images  Instances      Box(P          R      mAP50  "
           "mAP50-95): 100%|#####| 4/4 [00:01<00:00,  2.5it/s]",
           "                   all        128        929       0.64      0.537      0.605      "
           "0.446",
           "100%|##########| 6.25M/6.25M [00:00<00:00, 75.1MB/s]",
           "1/4  2.5G      1024        640: done",
           "/dev/sdb1  1/2  2.5G     1.5G      81   640: 100%| 3/4",
           // not the loss of a training
           "[0/25][0/782] Loss_D: 1.45 Loss_G: 5.12",
           "step 10 d_loss 0.5 g_loss 0.75",
           "step 5: D loss 0.5, G loss 0.7",
           "discriminator loss at step 100: 0.75",
           "adversarial loss at step 100: 0.82",
           "..Loss value at 3 : 2.06",
           "Current loss value: 7.4e+09",
           "iteration 50 style loss 1.2 content loss 3.4",
           "step=3 loss_scale=65536.0",
           "Attempted loss scale: 65536, reducing to 32768.0",
           "epoch: 0|step: 6|ppo_ep: 1|act_loss: -0.04|cri_loss: 0.02",
           "step_avg:145.0ms",
           "Epochs 3 completed in 471.78",
           "TRAIN loss: see below",
           // configuration, source code, prose
           "{'loss': 'cross_entropy', 'epoch': 3}",
           "{'loss': 0.5}",
           "{'loss': 0.5, 'epoch': 0.1",
           "{'loss': , 'epoch': 1}",
           "print(f\"step {step} loss {loss:.4f}\")",
           "    loss = model(step)",
           "loss: float = 0.5",
           "RuntimeError: step 5 produced loss",
           "Steps without loss improvement",
           "step loss",
           " iteration        1/",

           "[Rank 1] step=5, skipped=0, lr=[0.1]",
           "(after 1 iterations) memory (MB) | allocated: 1549.8",
           "iter x: loss 4.2, time 30ms",
           "Training epoch x, iteration 3/4 | reduced_train_loss: 1.0",
       }) {
    const Records records = ReadText(line);
    for (const Row& row : records.rows) {
      ADD_FAILURE() << line << " -> " << row.format << " step " << row.step << " loss " << row.loss;
    }
  }
}

// Weak evidence is marked as such.
TEST(NearMiss, GenericIsGeneric) {
  for (const std::string_view line :
       {"worker finished step 30 with loss = 1.25", "Epoch 3 average loss: 0.5",
        "====> Epoch: 1 Average loss: 164.5", "ep: 0, batch: 20, time: 9.1, loss: 10.9"}) {
    const Records records = ReadText(line);
    for (const Row& row : records.rows)
      EXPECT_TRUE(row.progress.generic || row.format == "pytorch_loop") << line;
  }
  const Records one = ReadText("worker finished step 30 with loss = 1.25");
  ASSERT_EQ(one.rows.size(), 1u);
  EXPECT_TRUE(one.rows[0].progress.generic);
  EXPECT_EQ(one.rows[0].step, "30");
}

TEST(NearMiss, NoMarker) {
  for (const std::string_view line :
       {"resume_from_checkpoint=None", "print('Resuming from checkpoint')",
        "\"Training completed\": false", "logger.info(\"saving checkpoint to %s\")",
        "Total optimization steps = unknown", "no checkpoints here", "loading weights from hub"}) {
    EXPECT_TRUE(ReadText(line).marks.empty()) << line;
  }
}

TEST(NearMiss, ComposersEvaluationsAndParts) {
  for (const std::string_view text : {
           "[Eval batch=1/10] Eval on eval data:\n\t Eval loss/train/total: 2.5",
           "[epoch=1][batch=5/10]:\n\t Eval metrics/eval/LanguageCrossEntropy: 2.5",
           "[epoch=1][batch=5/10]:\n\t Train loss/train/lbl: 0.25",
           "[epoch=1][batch=5/10] done\n\t Train loss/train/total: 2.5",
           "[batch=five]:\n\t Train loss/train/total: 2.5",
       }) {
    EXPECT_TRUE(ReadText(text).rows.empty()) << text;
  }
}

}  // namespace
}  // namespace rankscope::logs
