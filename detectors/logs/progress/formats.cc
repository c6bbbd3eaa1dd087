// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include "detectors/logs/progress/formats.h"

#include <vector>

#include "detectors/logs/progress/dialects.h"
#include "detectors/logs/progress/own_line.h"

namespace rankscope::logs {
namespace {

using Anchors = std::string_view;

constexpr Anchors kHfTrainer[] = {
    "'loss':",        "\"loss\":",       "'train_runtime':", "\"train_runtime\":", "'eval_loss':",
    "\"eval_loss\":", "'eval_runtime':", "'lm loss':",       "\"lm loss\":"};
constexpr Anchors kTrlPpo[] = {"objective/rlhf_reward"};
constexpr Anchors kFairseqJson[] = {"num_updates\":"};
constexpr Anchors kFairseq[] = {"epoch "};
constexpr Anchors kMegatron[] = {"iteration "};
constexpr Anchors kNemo[] = {"Training epoch "};
constexpr Anchors kAutomodel[] = {"| num_label_tokens "};
constexpr Anchors kDeepspeed[] = {"[Rank 0] step="};
constexpr Anchors kDeepspeedPipe[] = {" iter time (s): "};
constexpr Anchors kModded[] = {"step_avg:", " trl:", " tel:"};
constexpr Anchors kNanogpt[] = {": loss ", ": train loss "};
constexpr Anchors kLlmC[] = {" tok/s"};
constexpr Anchors kTorchtitan[] = {"tps: ", "wps: "};
constexpr Anchors kMaxText[] = {"completed step: "};
// Memory and the first part of the loss, in columns of ten or eleven.
constexpr Anchors kUltralytics[] = {"G    ", " epochs completed in "};
constexpr Anchors kRllib[] = {"Result for "};
constexpr Anchors kStableBaselines3[] = {"| rollout/ ", "| time/ ", "| train/ ", "| eval/ "};
constexpr Anchors kVerl[] = {" - critic/"};
constexpr Anchors kKeras[] = {"- loss: ", "Epoch "};
constexpr Anchors kMmengine[] = {"(train)"};
constexpr Anchors kMmcv[] = {"]\tlr: "};
constexpr Anchors kDetectron2[] = {" iter: ", "och/iter: "};
constexpr Anchors kXTransformer[] = {" batches | "};
constexpr Anchors kMeter[] = {"Epoch", "Train: "};
constexpr Anchors kLightning[] = {"loss=", "loss_step="};
constexpr Anchors kLightningRich[] = {"it/s"};
constexpr Anchors kTqdmLoggable[] = {"tfix:"};  // of "postfix:"; "Progress" is in any prose
constexpr Anchors kEpochPhase[] = {"Loss: "};
constexpr Anchors kTqdm[] = {"loss", "Loss", "LOSS"};
constexpr Anchors kTfEstimator[] = {"step = ", "Saving dict for global step "};
constexpr Anchors kTfSlim[] = {"global step "};
constexpr Anchors kTfOrbit[] = {"| output: "};
constexpr Anchors kTfDetection[] = {" per-step time "};
constexpr Anchors kOlmo[] = {"[step="};
constexpr Anchors kPaddleTrainer[] = {", global_step: "};
constexpr Anchors kPaddleMeter[] = {"], global_step: "};
constexpr Anchors kEspnet[] = {"epoch:train:"};
constexpr Anchors kTorchtune[] = {"|Loss: "};
constexpr Anchors kOpennmt[] = {"; xent: "};
constexpr Anchors kFlax[] = {"logging_writer.py:"};
constexpr Anchors kComposer[] = {"[batch=", "[sample=", "[token="};
constexpr Anchors kMxnet[] = {"] Batch ["};
constexpr Anchors kBoosting[] = {"]\ttrain", "]\tvalid", "]\teval", "]\ttest",      "] train",
                                 "] valid",  "] eval",   "] test",  "]\tcv_agg's ", "] cv_agg's "};
constexpr Anchors kCatboost[] = {":\tlearn: ", ": learn: "};
constexpr Anchors kTfBlock[] = {" per-step time ", "| output:"};
constexpr Anchors kMindspore[] = {", loss is "};
constexpr Anchors kLossAtStep[] = {"oss at ", "oss (for ", "oss after ", "ost at ", "ost after "};
constexpr Anchors kRslRl[] = {"Learning iteration "};
constexpr Anchors kMarian[] = {" : Cost "};
constexpr Anchors kRlGames[] = {"fps step and policy inference: "};
constexpr Anchors kLoss[] = {"loss", "Loss", "LOSS"};
constexpr Anchors kDarknet[] = {" avg, ", " avg loss, "};
constexpr Anchors kStyleGan[] = {" kimg "};
constexpr Anchors kNerfstudio[] = {"%)   "};
constexpr Anchors kDeepmd[] = {"DEEPMD "};
constexpr Anchors kCoqui[] = {" -- GLOBAL_STEP: "};
constexpr Anchors kRayResult[] = {"\xe2\x94\x82 Training result "};
constexpr Anchors kTrialTable[] = {" Trial name "};
constexpr Anchors kHeadedTable[] = {"loss", "Loss", "LOSS", "rmse_trn", "rmse\t", "rmse,"};
constexpr Anchors kQuickstart[] = {"loss: "};
// Whole words with what joins them to a number: short ones would be found everywhere.
constexpr Anchors kGeneric[] = {
    "loss",     "Loss",  "LOSS",  " bce:", " bce=", " bce ", " BCE:", " BCE=",    " BCE ",
    "bce_loss", " mse:", " mse=", " mse ", " MSE:", " MSE=", " MSE ", "mse_loss", "n_mse",
    "rmse:",    "rmse=", "rmse ", "RMSE:", "RMSE=", "RMSE ", " nll:", " nll=",    " nll ",
    " NLL:",    " NLL=", " NLL ", "cost:", "cost=", "cost ", "Cost:", "Cost=",    "Cost ",
    "elbo:",    "elbo=", "elbo ", "ELBO:", "ELBO=", "ELBO "};
constexpr Anchors kMetric[] = {"loss",  "Loss",      "LOSS", "eward", "rew",      "Rew",
                               "eturn", "erplexity", "ppl",  "PPL",   "grad_fn=<"};

constexpr FormatRow kDialects[] = {
    {"tf_orbit", "tensorflow", kTfOrbit, ParseTfOrbit,
     "train | step:    100 | steps/sec:   10.1 | output: {'training_loss': 1.25}"},
    {"hf_trainer", "hf_trainer", kHfTrainer, ParseHfTrainer,
     "{'loss': 2.31, 'grad_norm': 1.25, 'learning_rate': 5e-05, 'epoch': 0.01}"},
    {"trl_ppo", "trl", kTrlPpo, ParseTrlPpo,
     "{'eps': 3, 'objective/kl': 0.25, 'objective/rlhf_reward': 1.5, 'lr': 3e-06, 'episode': 64}"},
    {"fairseq_json", "fairseq", kFairseqJson, ParseFairseqJson,
     "2026-02-03 04:05:06 | INFO | train_inner | {\"epoch\": 1, \"loss\": \"13.25\", \"wps\": "
     "\"9620\", \"num_updates\": \"100\", \"lr\": \"1.25e-05\"}"},
    {"nemo", "nemo", kNemo, ParseNemo,
     "Training epoch 0, iteration 12/99 | lr: 3e-05 | global_step: 12 | reduced_train_loss: 1.25"},
    {"nemo_automodel", "nemo", kAutomodel, ParseAutomodel,
     "step 9 | epoch 0 | loss 0.6875 | grad_norm 1.5 | lr 1.00e-05 | mem 24.90 GiB | tps 11278.5 | "
     "num_label_tokens 21541"},
    {"megatron", "megatron", kMegatron, ParseMegatron,
     " iteration       10/     500 | elapsed time per iteration (ms): 512.5 | learning rate: "
     "1.5E-04 | "
     "lm loss: 9.1E+00 | loss scale: 1.0 | grad norm: 1.5 |"},
    {"deepspeed", "deepspeed", kDeepspeed, ParseDeepspeed,
     "[INFO] [logging.py:96:log_dist] [Rank 0] step=10, skipped=0, lr=[0.001], mom=[(0.9, 0.95)]"},
    {"deepspeed_pipe", "deepspeed", kDeepspeedPipe, ParseDeepspeedPipe,
     "steps: 10 loss: 8.5312 iter time (s): 0.812 samples/sec: 39.409"},
    {"fairseq", "fairseq", kFairseq, ParseFairseq,
     "2026-02-03 04:05:06 | INFO | train_inner | epoch 001:    100 / 1234 loss=13.25, wps=9620, "
     "num_updates=100, lr=1.25e-05, gnorm=3.5"},
    {"modded_nanogpt", "modded_nanogpt", kModded, ParseModdedNanogpt,
     "step:3/900 train_loss:8.4 train_time:310ms step_avg:103.3ms"},
    {"nanogpt", "nanogpt", kNanogpt, ParseNanogpt, "iter 10: loss 4.125, time 31.5ms, mfu 1.25%"},
    {"llm_c", "llm.c", kLlmC, ParseLlmC,
     "step    7/900 | loss 9.125 (-0.50z)| norm 3.25 (+1.00z)| lr 6.0e-06 | 3000.12 ms | 53.6% "
     "bf16 MFU | 174000 tok/s"},
    {"torchtitan", "torchtitan", kTorchtitan, ParseTorchtitan,
     "[titan] 2026-02-03 04:05:06,789 - root - INFO - step: 14  loss:  3.25  memory: 9.5GiB(65%)  "
     "tps: 7,282"},
    {"maxtext", "maxtext", kMaxText, ParseMaxText,
     "completed step: 10, seconds: 1.25, TFLOP/s/device: 150.5, Tokens/s/device: 3000.5, "
     "total_weights: 65536, loss: 8.125"},
    {"paddle_trainer", "paddle", kPaddleTrainer, ParsePaddleTrainer,
     "[2026-02-03 04:05:06,789] [    INFO] - loss: 2.25, learning_rate: 1e-05, global_step: 10, "
     "interval_runtime: 5.25, interval_samples_per_second: 15.5, epoch: 0.01"},
    {"paddle_meter", "paddle", kPaddleMeter, ParsePaddleMeter,
     "[2026/02/03 04:05:06] ppocr INFO: epoch: [1/500], global_step: 20, lr: 0.001, loss: 5.25, "
     "acc: 0.0, avg_batch_cost: 0.9 s, ips: 8.5 samples/s"},
    {"espnet", "espnet", kEspnet, ParseEspnet,
     "[n1] 2026-02-03 04:05:06,789 (trainer:793) INFO: 1epoch:train:1-90batch: iter_time=0.003, "
     "loss_ctc=557.5, loss=80.75, grad_norm=530.5, optim0_lr0=6.25e-07, train_time=0.75"},
    {"torchtune", "torchtune", kTorchtune, ParseTorchtune,
     "1|10|Loss: 1.25:  10%|#         | 10/100 [00:12<01:50,  1.23s/it]"},
    {"opennmt", "opennmt", kOpennmt, ParseOpennmt,
     "[2026-02-03 04:05:06,789 INFO] Step 50/100000; acc: 4.3; ppl: 1234.5; xent: 7.125; lr: "
     "0.00001; sents: 3200; 12000/11000 tok/s; 20 sec;"},
    {"flax", "flax", kFlax, ParseFlax,
     "I0203 04:05:06.789012 1400 logging_writer.py:48] [100] learning_rate=0.001, train_loss=3.25"},
    {"ultralytics", "ultralytics", kUltralytics, ParseUltralytics,
     "      1/100      2.61G      1.153      1.398         81        640: 100%|##########| 8/8 "
     "[00:03<00:00,  2.41it/s]"},
    {"verl", "verl", kVerl, ParseVerl,
     "step:7 - actor/grad_norm:0.25 - critic/rewards/mean:0.5 - timing_s/step:61.5"},
    {"olmo", "olmo", kOlmo, SpansLines, "[step=12/900,epoch=0]\n    train/CrossEntropyLoss=2.375",
     &kOlmoBlock},
    {"composer", "composer", kComposer, SpansLines,
     "[epoch=1][batch=12/900]:\n\t Train loss/train/total: 2.375", &kComposerBlock},
    {"rllib", "rllib", kRllib, SpansLines,
     "Result for PPO_CartPole-v1_1a2b3_00000:\n  episode_reward_mean: 21.5\n  training_iteration: "
     "3",
     &kRllibBlock},
    {"rsl_rl", "isaac_rl", kRslRl, SpansLines,
     "   Learning iteration 12/1500   \n   Mean reward: 19.25\n   Iteration time: 0.82s",
     &kRslRlBlock},
    {"rl_games", "isaac_rl", kRlGames, ParseRlGames,
     "fps step: 44938 fps step and policy inference: 43526 fps total: 38962 epoch: 36/3000 frames: "
     "1146880"},
    {"stable_baselines3", "stable_baselines3", kStableBaselines3, SpansLines,
     "| rollout/           |          |\n|    ep_rew_mean     | 21.5     |\n| time/              | "
     "  "
     "       |\n|    total_timesteps | 2048     |\n| train/             |          |\n|    loss    "
     " "
     "       | 6.25     |",
     &kStableBaselines3Block},
    {"mmengine", "mmengine", kMmengine, ParseMmengine,
     "02/03 04:05:06 - mmengine - INFO - Epoch(train) [1][ 50/100]  lr: 1e-03  time: 0.25  loss: "
     "0.75"},
    {"mmcv", "mmengine", kMmcv, ParseMmcv,
     "2026-02-03 04:05:06,338 - mmdet - INFO - Iter [50/1000]\tlr: 2.0e-03, eta: 1:00:00, time: "
     "0.5, memory: 3000, loss: 0.5"},
    {"detectron2", "detectron2", kDetectron2, ParseDetectron2,
     "[02/03 04:05:06 d2.utils.events]:  eta: 0:10:00  iter: 19  total_loss: 1.25  time: 0.35  lr: "
     "0.0002  max_mem: 3000M"},
    {"x_transformer", "x_transformer", kXTransformer, ParseXTransformer,
     "| [   1/   3][   100/  1000] |  399/1932 batches | ms/batch 4.5 | train_loss 5.75e-01 | lr "
     "5.0e-05"},
    {"mxnet", "mxnet", kMxnet, ParseMxnet,
     "INFO:root:Epoch[3] Batch [20]\tSpeed: 1234.50 samples/sec\taccuracy=0.500000\t"
     "cross-entropy=0.750000"},
    {"mindspore", "mindspore", kMindspore, ParseMindspore, "epoch: 3 step: 1875, loss is 0.0625"},
    {"loss_at_step", "pytorch_example", kLossAtStep, ParseLossAtStep,
     "Training average loss at step 100: 0.5"},
    {"marian", "marian", kMarian, ParseMarian,
     "[2026-02-03 04:05:06] Ep. 1 : Up. 500 : Sen. 256,000 : Cost 8.71 * 5,112,001 @ 4,096 after "
     "20,000,000 : Time 61.21s : 81233.11 words/s : gNorm 0.7112"},
    {"darknet", "darknet", kDarknet, ParseDarknet,
     " 96: 1.084791, 1.030988 avg loss, 0.001000 rate, 3.212211 seconds, 6144 images, 9.1 hours "
     "left"},
    {"stylegan", "stylegan", kStyleGan, ParseStyleGan,
     "tick 5     kimg 20.0     time 3m 15s       sec/tick 37.5    sec/kimg 9.37    maintenance "
     "0.0"},
    {"nerfstudio", "nerfstudio", kNerfstudio, ParseNerfstudio,
     "2990 (9.97%)        282 K                23.339 ms            9 m, 1 s             176 K"},
    {"deepmd", "deepmd", kDeepmd, ParseDeepmd,
     "[2026-02-03 04:05:06,789] DEEPMD INFO    batch     100: trn: rmse = 1.42e+01, rmse_e = "
     "3.00e-01, rmse_f = 4.50e-01, lr = 1.00e-03"},
    {"coqui", "coqui_tts", kCoqui, SpansLines,
     "   --> TIME: 2026-02-03 04:05:06 -- STEP: 25/1000 -- GLOBAL_STEP: 25\n     | > loss: 2.5  "
     "(2.625)\n     | > step_time: 0.5  (0.5)",
     &kCoquiBlock},
    {"ray_result", "ray", kRayResult, SpansLines,
     "\xe2\x94\x82 Training result            \xe2\x94\x82\n\xe2\x94\x82 training_iteration   3 "
     "\xe2\x94\x82\n\xe2\x94\x82 loss   0.5 \xe2\x94\x82\n\xe2\x95\xb0\xe2\x94\x80",
     &kRayResultBlock},
    {"trial_table", "ray", kTrialTable, SpansLines,
     "| Trial name | status  | loc | iter | loss |\n|------------+---------+-----+------+------|\n"
     "| t_00000    | RUNNING | n1  |    3 | 0.5  |"},
    {"boosting", "boosting", kBoosting, ParseBoosting, "[12]\ttrain-rmse:0.5"},
    {"catboost", "catboost", kCatboost, ParseCatboost,
     "12:\tlearn: 0.5000000\ttest: 0.6250000\tbest: 0.6250000 (12)\ttotal: 600ms\tremaining: "
     "4.4s"},
    {"lightning", "lightning", kLightning, ParseLightning,
     "Epoch 0:  22%|##   | 4/18 [00:17<01:02,  4.47s/it, loss=10.125, v_num=3]"},
    {"lightning_rich", "lightning", kLightningRich, ParseLightningRich,
     "Epoch 0/9 ━━━━━━━━ 18/18 0:00:05 • 0:00:00 3.5it/s v_num: 0 train_loss: 2.375"},
    {"tqdm_loop", "pytorch_example", kTqdm, ParseTqdmLoop,
     "training:  10%|#    | 100/1000 [01:40<15:00,  1.00it/s, loss=0.75, lr=0.001]"},
    {"tqdm_loggable", "pytorch_example", kTqdmLoggable, ParseTqdmLoggable,
     "Progress on:train 90it/10.0kit rate:3.2s/it remaining:8:45:10 elapsed:04:48 "
     "postfix:loss=9.06"},
    {"keras", "keras", kKeras, ParseKeras,
     "100/100 [======] - 32s 320ms/step - loss: 0.125 - acc: 0.99"},
    {"tf_estimator", "tensorflow", kTfEstimator, ParseTfEstimator,
     "INFO:tensorflow:loss = 1.25, step = 100 (0.4 sec)"},
    {"tf_slim", "tensorflow", kTfSlim, ParseTfSlim,
     "INFO:tensorflow:global step 60: loss = 11.75 (0.427 sec/step)"},
    {"tf_detection", "tensorflow", kTfDetection, ParseTfDetection,
     "INFO:tensorflow:Step 100 per-step time 0.456s loss=0.875"},
    {"tf_block", "tensorflow", kTfBlock, SpansLines,
     "INFO:tensorflow:Step 100 per-step time 0.456s\nINFO:tensorflow:{'Loss/total_loss': 0.75,\n "
     "'learning_rate': 0.03}",
     &kTfDictBlock},
    {"pytorch_example", "pytorch_example", kMeter, ParsePytorchMeter,
     "Epoch: [0][  10/5005]\tTime  0.5 ( 0.6)\tData  0.1 ( 0.1)\tLoss 6.9e+00 (6.9e+00)\tAcc@1   "
     "0.25 (  0.25)"},
    {"timm", "timm", kMeter, ParseTimm,
     "Train: 0 [  50/1251 (  4%)]  Loss: 6.9 (6.91)  Time: 1.2s,  700/s  LR: 1.0e-06"},
    {"headed_table", "table", kHeadedTable, SpansLines, "step\ttrain_loss\tlr\n10\t2.5\t0.001"},
    {"quickstart", "pytorch_example", kQuickstart, ParseQuickstart,
     "loss: 2.301026  [ 6464/60000]"},
    {"epoch_phase", "pytorch_example", kEpochPhase, ParseEpochPhase,
     "train Loss: 0.5695 Acc: 0.7123"},
    {"pytorch_loop", "pytorch_example", kLoss, ParsePytorchLoop,
     "step 5 loss 18.125 lr 0.05 step_time 0.053s"},
};

constexpr FormatRow kFallback = {"generic", "unknown", kGeneric, ParseGeneric,
                                 "worker finished step 30 with loss = 1.25"};

// What nobody reads as a record.
constexpr FormatRow kLast = {"metric", "unknown", kMetric, ParseMetric,
                             "Average training loss: 1.25"};

std::vector<FormatRow> AllRows() {
  std::vector<FormatRow> rows;
  // Dialects first: their lines come by the million and a marker's phrase in one of them would be
  // an accident.
  rows.insert(rows.end(), std::begin(kDialects), std::end(kDialects));
  const std::span<const FormatRow> markers = MarkerRows();
  rows.insert(rows.end(), markers.begin(), markers.end());
  for (const std::span<const FormatRow> facts :
       {NcclFactRows(), LibraryFactRows(), ResumeOptionRows()})
    rows.insert(rows.end(), facts.begin(), facts.end());
  rows.push_back(kFallback);
  rows.push_back(kLast);
  return rows;
}

}  // namespace

bool SpansLines(const CleanLine&, RecordList&) {
  return false;
}

bool ParseRow(size_t row, OwnText& text, RecordList& out) {
  const std::span<const FormatRow> rows = Formats();
  const size_t before = out.size();
  if (rows[row].parse(text.line(), out)) return true;
  out.resize(before);
  // Markers are phrases, wherever they stand.
  const bool dialect = row < std::size(kDialects) || rows[row].parse == ParseGeneric;
  if (dialect && text.prefixed() && rows[row].parse(text.unindented(), out)) return true;
  out.resize(before);
  return false;
}

int DialectStrength(const Progress& progress) {
  if (progress.generic) return 0;
  if (progress.format == "deepspeed") return 1;
  return progress.format == "deepspeed_pipe" ? 2 : kStrongestDialect;
}

std::span<const FormatRow> Formats() {
  static const std::vector<FormatRow> rows = AllRows();
  return rows;
}

}  // namespace rankscope::logs
