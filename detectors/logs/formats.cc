// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include "detectors/logs/formats.h"

#include <vector>

#include "detectors/logs/dialects.h"

namespace rankscope::logs {
namespace {

using Anchors = std::string_view;

constexpr Anchors kHfTrainer[] = {
    "'loss':",      "\"loss\":",      "'train_runtime':", "\"train_runtime\":",
    "'eval_loss':", "\"eval_loss\":", "'eval_runtime':"};
constexpr Anchors kMegatron[] = {"iteration "};
constexpr Anchors kNemo[] = {"Training epoch "};
constexpr Anchors kDeepspeed[] = {"[Rank 0] step="};
constexpr Anchors kModded[] = {"step_avg:", " trl:", " tel:"};
constexpr Anchors kNanogpt[] = {": loss ", ": train loss "};
constexpr Anchors kTorchtitan[] = {"tps: "};
constexpr Anchors kKeras[] = {"- loss: ", "Epoch "};
constexpr Anchors kMmengine[] = {"(train)"};
constexpr Anchors kMeter[] = {"Epoch", "Train: "};
constexpr Anchors kLightning[] = {"loss=", "loss_step="};
constexpr Anchors kLoss[] = {"loss", "Loss", "LOSS"};

constexpr FormatRow kDialects[] = {
    {"hf_trainer", "hf_trainer", kHfTrainer, ParseHfTrainer,
     "{'loss': 2.31, 'grad_norm': 1.25, 'learning_rate': 5e-05, 'epoch': 0.01}"},
    {"nemo", "nemo", kNemo, ParseNemo,
     "Training epoch 0, iteration 12/99 | lr: 3e-05 | global_step: 12 | reduced_train_loss: 1.25"},
    {"megatron", "megatron", kMegatron, ParseMegatron,
     " iteration       10/     500 | elapsed time per iteration (ms): 512.5 | learning rate: "
     "1.5E-04 | "
     "lm loss: 9.1E+00 | loss scale: 1.0 | grad norm: 1.5 |"},
    {"deepspeed", "deepspeed", kDeepspeed, ParseDeepspeed,
     "[INFO] [logging.py:96:log_dist] [Rank 0] step=10, skipped=0, lr=[0.001], mom=[(0.9, 0.95)]"},
    {"modded_nanogpt", "modded_nanogpt", kModded, ParseModdedNanogpt,
     "step:3/900 train_loss:8.4 train_time:310ms step_avg:103.3ms"},
    {"nanogpt", "nanogpt", kNanogpt, ParseNanogpt, "iter 10: loss 4.125, time 31.5ms, mfu 1.25%"},
    {"torchtitan", "torchtitan", kTorchtitan, ParseTorchtitan,
     "[titan] 2026-02-03 04:05:06,789 - root - INFO - step: 14  loss:  3.25  memory: 9.5GiB(65%)  "
     "tps: 7,282"},
    {"mmengine", "mmengine", kMmengine, ParseMmengine,
     "02/03 04:05:06 - mmengine - INFO - Epoch(train) [1][ 50/100]  lr: 1e-03  time: 0.25  loss: "
     "0.75"},
    {"lightning", "lightning", kLightning, ParseLightning,
     "Epoch 0:  22%|##   | 4/18 [00:17<01:02,  4.47s/it, loss=10.125, v_num=3]"},
    {"tqdm_loop", "pytorch_example", kLightning, ParseTqdmLoop,
     "training:  10%|#    | 100/1000 [01:40<15:00,  1.00it/s, loss=0.75, lr=0.001]"},
    {"keras", "keras", kKeras, ParseKeras,
     "100/100 [======] - 32s 320ms/step - loss: 0.125 - acc: 0.99"},
    {"pytorch_example", "pytorch_example", kMeter, ParsePytorchMeter,
     "Epoch: [0][  10/5005]\tTime  0.5 ( 0.6)\tData  0.1 ( 0.1)\tLoss 6.9e+00 (6.9e+00)\tAcc@1   "
     "0.25 (  0.25)"},
    {"timm", "timm", kMeter, ParseTimm,
     "Train: 0 [  50/1251 (  4%)]  Loss: 6.9 (6.91)  Time: 1.2s,  700/s  LR: 1.0e-06"},
    {"pytorch_loop", "pytorch_example", kLoss, ParsePytorchLoop,
     "step 5 loss 18.125 lr 0.05 step_time 0.053s"},
};

constexpr FormatRow kFallback = {"generic", "unknown", kLoss, ParseGeneric,
                                 "worker finished step 30 with loss = 1.25"};

std::vector<FormatRow> AllRows() {
  std::vector<FormatRow> rows;
  // Dialects first: their lines come by the million and a marker's phrase in one of them would be
  // an accident.
  rows.insert(rows.end(), std::begin(kDialects), std::end(kDialects));
  const std::span<const FormatRow> markers = MarkerRows();
  rows.insert(rows.end(), markers.begin(), markers.end());
  rows.push_back(kFallback);
  return rows;
}

}  // namespace

int DialectStrength(const Progress& progress) {
  if (progress.generic) return 0;
  return progress.format == "deepspeed" ? 1 : 2;
}

std::span<const FormatRow> Formats() {
  static const std::vector<FormatRow> rows = AllRows();
  return rows;
}

}  // namespace rankscope::logs
