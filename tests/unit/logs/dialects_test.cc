// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Lines of the frameworks, old and new generations, and what must be read from them.
#include <gtest/gtest.h>

#include <string_view>

#include "feed_lines.h"

namespace rankscope::logs {
namespace {

struct Expected {
  std::string_view text;  // the record is its last
  std::string_view format, step, loss, grad_norm, learning_rate;
};

TEST(Dialects, Records) {
  const Expected cases[] = {
      // Transformers 5 rounds and quotes
      {"{'loss': '2.318', 'grad_norm': '0.8125', 'learning_rate': '1.95e-05', 'epoch': '0.1'}",
       "hf_trainer", "", "2.318", "0.8125", "1.95e-05"},
      {"{'loss': '0', 'grad_norm': 'nan', 'learning_rate': '1e-05', 'epoch': '0.1'}", "hf_trainer",
       "", "0", "nan", "1e-05"},
      // TRL: SFT, DPO, GRPO
      {"{'loss': 1.25, 'grad_norm': 0.5, 'learning_rate': 2e-05, 'entropy': 1.5, 'num_tokens': "
       "65536.0, 'mean_token_accuracy': 0.75, 'epoch': 0.25}",
       "hf_trainer", "", "1.25", "0.5", "2e-05"},
      {"{'loss': 0.6931, 'grad_norm': 12.5, 'learning_rate': 5e-07, 'rewards/chosen': 0.0, "
       "'rewards/rejected': 0.0, 'rewards/accuracies': 0.0, 'rewards/margins': 0.0, "
       "'logps/chosen': -250.5, 'epoch': 0.01}",
       "hf_trainer", "", "0.6931", "12.5", "5e-07"},
      {"{'loss': -0.0125, 'grad_norm': 0.25, 'learning_rate': 1e-06, 'reward': 0.625, "
       "'reward_std': 0.25, 'frac_reward_zero_std': 0.5, 'completions/clipped_ratio': 0.0, 'kl': "
       "0.001, 'epoch': 0.02}",
       "hf_trainer", "", "-0.0125", "0.25", "1e-06"},
      {"{'loss': 0.25, 'rewards/fmt': np.float64(0.5), 'grad_norm': np.float32(0.75), 'epoch': "
       "1.0}",
       "hf_trainer", "", "0.25", "0.75", ""},
      // ms-swift, also over Megatron
      {"{'loss': 1.5, 'grad_norm': 0.25, 'learning_rate': 1e-05, 'token_acc': 0.7, 'epoch': 0.1, "
       "'global_step/max_steps': '70/700', 'percentage': '10.00%', 'elapsed_time': '1h 2m 3s', "
       "'remaining_time': '9h', 'memory(GiB)': 60.5, 'train_speed(iter/s)': 0.25}",
       "hf_trainer", "70", "1.5", "0.25", "1e-05"},
      {"{'lm loss': 1.75, 'grad_norm': 0.5, 'learning_rate': 1e-05, 'elapsed_time_per_iteration': "
       "2.5, 'iteration': '30/900'}",
       "hf_trainer", "30", "1.75", "0.5", "1e-05"},
      // mmcv's JSON
      {"{\"mode\": \"train\", \"epoch\": 1, \"iter\": 50, \"lr\": 0.002, \"memory\": 3000, "
       "\"loss\": 0.75, \"time\": 0.5}",
       "hf_trainer", "50", "0.75", "", "0.002"},
      // Megatron
      {" [2026-02-03 04:05:06.250000] iteration      100/    2000 | consumed samples:        "
       "12800 | elapsed time per iteration (ms): 750.5 | throughput per GPU (TFLOP/s/GPU): 412.5 | "
       "learning rate: 3.000000E-04 | global batch size:   128 | lm loss: 3.125000E+00 | mtp_1 "
       "loss: 4.5E+00 | load_balancing_loss: 1.01E+00 | loss scale: 1.0 | grad norm: 0.625 | num "
       "zeros: 17 | params norm: 812.5 | number of skipped iterations:   0 | number of nan "
       "iterations:   0 |",
       "megatron", "100", "3.125000E+00", "0.625", "3.000000E-04"},
      {"[default3]: iteration      100/    2000 | consumed samples:        12800 | consumed "
       "tokens:     26214400 | elapsed time per iteration (s): 7.5 | learning rate: 3.0E-04 | lm "
       "loss: 3.5E+00 | samples per second: 17.5 | TFLOPs: 150.25 |",
       "megatron", "100", "3.5E+00", "", "3.0E-04"},
      {" samples/sec: 32.5 | iteration      100/    2000 | elapsed time per iteration (ms): 980.5 "
       "| learning rate: 3.0E-04 | approx flops per GPU: 93.5TFLOPS | lm_loss: 3.5E+00 | loss "
       "scale: 65536.0 | number of skipped iterations:   0 | number of nan iterations:   0 |",
       "megatron", "100", "3.5E+00", "", "3.0E-04"},
      // DeepSpeed's pipeline engine
      {"steps: 10 loss: 8.5312 iter time (s): 0.812 samples/sec: 39.409", "deepspeed_pipe", "10",
       "8.5312", "", ""},
      // NeMo
      {"2026-02-03 04:05:06 | INFO | root | step 9 | epoch 0 | loss 0.6875 | grad_norm 1.5 | lr "
       "1.00e-05 | mem 24.90 GiB | tps 11278.56(1409.82/gpu) | num_label_tokens 21541",
       "nemo_automodel", "9", "0.6875", "1.5", "1.00e-05"},
      // Lightning's rich bar, new and old
      {"Epoch 3/9 ━━━━━━━━━━━━ 18/40 0:00:05 • 0:00:09 3.50it/s v_num: 0.000 train_loss: 2.375",
       "lightning_rich", "18", "2.375", "", ""},
      {"Epoch 3    ━━━━━━╸━━━━━ 18/40 • 0:00:05 • 0:00:09 • 3.50it/s • loss: 2.375 • v_num: 0",
       "lightning_rich", "18", "2.375", "", ""},
      // TensorFlow
      {"INFO:tensorflow:loss = 2.125, step = 1", "tf_estimator", "1", "2.125", "", ""},
      {"I0203 04:05:06.123456 139 basic_session_run_hooks.py:260] loss = 1.25, step = 300 (12.125 "
       "sec)",
       "tf_estimator", "300", "1.25", "", ""},
      {"INFO:tensorflow:learning_rate = 0.001, loss = 1.25, step = 300 (12.125 sec)",
       "tf_estimator", "300", "1.25", "", "0.001"},
      {"INFO:tensorflow:global step 60: loss = 11.75 (0.427 sec/step)", "tf_slim", "60", "11.75",
       "", ""},
      {"I0203 04:05:06.123456 139 controller.py:457] train | step:   2000 | steps/sec:   12.5 | "
       "output: {'learning_rate': 0.05, 'training_loss': 1.5}",
       "tf_orbit", "2000", "1.5", "", "0.05"},
      {"train | step:   2000 | steps/sec:   12.5 | output: \n    {'learning_rate': 0.05,\n     "
       "'regularization': 0.25,\n     'training_loss': 1.5}",
       "tf_block", "2000", "1.5", "", "0.05"},
      {"INFO:tensorflow:Step 100 per-step time 0.456s loss=0.875", "tf_detection", "100", "0.875",
       "", ""},
      {"INFO:tensorflow:Step 700 per-step time 0.250s\nI0203 04:05:06.123456 139 "
       "model_lib_v2.py:700] {'Loss/classification_loss': 0.25,\n 'Loss/localization_loss': "
       "0.125,\n"
       " 'Loss/total_loss': 0.5,\n 'learning_rate': 0.03}",
       "tf_block", "700", "0.5", "", "0.03"},
      // torchtitan, 2024 and later, with colours
      {"[rank0]:2026-02-03 04:05:06,338 - root - INFO - \x1b[36mstep: 20  \x1b[32mloss:  6.2250  "
       "\x1b[33mmemory: 23.25GiB(29.4%)  \x1b[34mwps: 3,850  \x1b[35mmfu: 42.5%\x1b[39m",
       "torchtitan", "20", "6.2250", "", ""},
      {"[titan] 2026-02-03 04:05:06,338 - root - INFO - step:  1  loss: 12.2500  grad_norm:  4.5000"
       "  memory:  9.50GiB(65.00%)  tps: 7,282  tflops: 51.25  mfu: 16.50%",
       "torchtitan", "1", "12.2500", "4.5000", ""},
      // MaxText
      {"completed step: 12, seconds: 2.5, TFLOP/s/device: 150.5, Tokens/s/device: 3276.8, "
       "total_weights: 65536, loss: 8.125",
       "maxtext", "12", "8.125", "", ""},
      // fairseq, metaseq
      {"2026-02-03 04:05:06 | INFO | train_inner | epoch 002:    100 / 1234 loss=7.5, "
       "nll_loss=6.5, "
       "ppl=90.5, wps=9620.5, ups=2.5, wpb=3848, bsz=128, num_updates=1334, lr=0.00025, gnorm=1.5, "
       "loss_scale=8, train_wall=40, gb_free=9.5, wall=500",
       "fairseq", "1334", "7.5", "1.5", "0.00025"},
      {"2026-02-03 04:05:06 | INFO | train | epoch 002 | loss 7.25 | nll_loss 6.25 | ppl 76 | wps "
       "9620.5 | ups 2.5 | wpb 3848 | bsz 128 | num_updates 2468 | lr 0.0004 | gnorm 1.25 | "
       "train_wall 500 | wall 1000",
       "fairseq", "2468", "7.25", "1.25", "0.0004"},
      {"| epoch 010:   2000 / 8223 loss=1.25 (1.50), wps=962, wpb=3500, bsz=100, gnorm=2.125, "
       "lr=0.001, clip=0%, oom=0, wall=900",
       "fairseq", "2000", "1.25", "2.125", "0.001"},
      {"| epoch 010 | loss 1.25 | nll_loss 1.0 | ppl 2.00 | wps 9620 | wpb 3500 | num_updates "
       "82230 "
       "| lr 0.001 | gnorm 2.125 | clip 0% | oom 0 | wall 900",
       "fairseq", "82230", "1.25", "2.125", "0.001"},
      {"2026-02-03 04:05:06 | INFO | train_inner | {\"epoch\": 1, \"actv_norm\": \"0.5\", "
       "\"update\": 0.005, \"loss\": \"15.25\", \"ppl\": \"39000\", \"wps\": \"0\", \"ups\": "
       "\"0.5\", \"num_updates\": \"5\", \"lr\": \"3e-07\", \"gnorm\": \"6.5\", \"loss_scale\": "
       "\"4\", \"wall\": \"50\"}",
       "fairseq_json", "5", "15.25", "6.5", "3e-07"},
      {"2026-02-03 04:05:06 | INFO | train | {\"epoch\": 1, \"train_loss\": \"9.75\", "
       "\"train_wps\": \"9620\", \"train_num_updates\": \"1234\", \"train_lr\": \"0.0001\", "
       "\"train_gnorm\": \"1.5\"}",
       "fairseq_json", "1234", "9.75", "1.5", "0.0001"},
      // OLMo and OLMo-core
      {"2026-02-03 04:05:06.123\tnode1:0\tolmo.train:950\tINFO\t[step=12/900,epoch=0]\n    "
       "optim/total_grad_norm=0.5000\n    train/CrossEntropyLoss=2.375\n    "
       "train/Perplexity=10.75\n    throughput/total_tokens=25,165,824",
       "olmo", "12", "2.375", "0.5000", ""},
      {"INFO [step=1200/9000,epoch=1,eta=1:02:03]\n    train/CE loss=2.375\n    train/PPL=10.75",
       "olmo", "1200", "2.375", "", ""},
      // composer and LLM Foundry
      {"[epoch=1][batch=5/2000]:\n\t Train time/batch: 4\n\t Train "
       "trainer/device_train_microbatch_size: "
       "8\n\t Train loss/train/total: 8.4375\n\t Train metrics/train/LanguageCrossEntropy: 8.5",
       "composer", "5", "8.4375", "", ""},
      {"[batch=12/500]:\n\t Train LanguageCrossEntropy: 1.75\n\t Train l2_norm/grad/global: "
       "0.5\n\t Train loss/train/total: 1.875",
       "composer", "12", "1.875", "0.5", ""},
      {"[token=8192/100000]:\n\t Train time/batch: 3\n\t Train loss/train/total: 1.875", "composer",
       "3", "1.875", "", ""},
      // Ultralytics: detect, segment, classify (one part, on a CPU), its own bar, a part that broke
      {"      3/100      2.61G      1.153      1.398      1.192         81        640: "
       "100%|######| "
       "8/8 [00:03<00:00,  2.41it/s]",
       "ultralytics", "8", "1.153", "", ""},
      {"       1/50      7.25G     0.8125       1.75        2.5      1.125         14        640:  "
       "25%|##5       | 2/8 [00:01<00:03,  1.75it/s]",
       "ultralytics", "2", "0.8125", "", ""},
      {"        1/3         0G      2.375         16         64: 100% ------------ 40/40 9.5it/s "
       "4.2s",
       "ultralytics", "40", "2.375", "", ""},
      {"     7/199     18.5G    0.1875    0.0125    0.0155        55      1600: 100%|#|",
       "ultralytics", "7", "0.1875", "", ""},
      {"      3/100      2.61G      1.153        nan      1.192         81        640: "
       "100%|######| "
       "8/8 [00:03<00:00,  2.41it/s]",
       "ultralytics", "8", "nan", "", ""},
      // Stable-Baselines3: PPO; its first rollout, which has no loss yet
      {"------------------------------------------\n| rollout/                |              |\n|  "
       "  "
       "ep_len_mean          | 26.5         |\n|    ep_rew_mean          | 26.5         |\n| time/ "
       "  "
       "                |              |\n|    fps                  | 712          |\n|    "
       "iterations           | 2            |\n|    time_elapsed         | 5            |\n|    "
       "total_timesteps      | 4096         |\n| train/                  |              |\n|    "
       "approx_kl            | 0.0078125    |\n|    entropy_loss         | -0.6875      |\n|    "
       "learning_rate        | 0.0003       |\n|    loss                 | 6.25         |\n|    "
       "value_loss           | 50.5         |\n------------------------------------------",
       "stable_baselines3", "4096", "6.25", "", "0.0003"},
      {"| rollout/           |          |\n|    ep_rew_mean     | 21.5     |\n| time/              "
       "|  "
       "        |\n|    total_timesteps | 2048     |\n---------------------------------",
       "stable_baselines3", "2048", "", "", ""},
      // toolkits
      {"[    INFO] - loss: 12.0625, learning_rate: 2e-06, global_step: 1, "
       "current_memory_allocated: "
       "7.5, interval_runtime: 1.125, interval_samples_per_second: 0.875, progress_or_epoch: 0.0",
       "paddle_trainer", "1", "12.0625", "", "2e-06"},
      {"[2026/02/03 04:05:06] ppocr INFO: epoch: [3/500], global_step: 40, lr: 0.001, loss: 4.25, "
       "ips: 8.5 samples/s, eta: 1:00:00",
       "paddle_meter", "40", "4.25", "", "0.001"},
      {"[n1] 2026-02-03 04:05:06,789 (trainer:793) INFO: 2epoch:train:91-180batch: "
       "iter_time=4.75e-04, "
       "loss_ctc=515.5, loss_att=210.25, acc=4e-04, loss=73.5, grad_norm=40.125, clip=100.000, "
       "loss_scale=1.000, optim0_lr0=1.25e-06, train_time=0.375",
       "espnet", "180", "73.5", "40.125", "1.25e-06"},
      {"2|31|Loss: 0.75:  31%|###       | 31/100 [00:12<01:50,  1.23s/it]", "torchtune", "31",
       "0.75", "", ""},
      {"[2026-02-03 04:05:06,789 INFO] Step 100/100000; acc:   5.30; ppl: 934.50; xent: 6.75; lr: "
       "0.00002; 12000/11000 tok/s;     40 sec",
       "opennmt", "100", "6.75", "", "0.00002"},
      {"I0203 04:05:06.789012 1400 logging_writer.py:48] [200] loss=2.25, learning_rate=0.001, "
       "steps_per_sec=5.1",
       "flax", "200", "2.25", "", "0.001"},
      // nanoGPT and its heirs
      {"iter 0: loss 10.9375, time 25000.50ms, mfu -100.00%", "nanogpt", "0", "10.9375", "", ""},
      {"step    1/19560 | loss 11.009 (+nanz)| norm 15.375 (+nanz)| lr 8.57e-07 | 3056.19 ms | "
       "53.6% bf16 MFU | 171550 tok/s",
       "llm_c", "1", "11.009", "15.375", "8.57e-07"},
      // timm, MMEngine, mmcv, Detectron2
      {"Train: 0 [   0/1251 (  0%)]  Loss: 6.94 (6.94)  Time: 1.913s,  133.79/s  (1.913s,  "
       "133.79/s)  LR: 1.000e-06  Data: 1.044 (1.044)",
       "timm", "0", "6.94", "", "1.000e-06"},
      {"02/03 04:05:06 - mmengine - INFO - Epoch(train)   [3][ 50/100]  base_lr: 1.0e-03 lr: "
       "2.5e-04  eta: 0:10:00  time: 0.25  data_time: 0.01  memory: 3000  grad_norm: 3.5  loss: "
       "0.75  loss_cls: 0.5",
       "mmengine", "50", "0.75", "3.5", "2.5e-04"},
      {"2026-02-03 04:05:06,338 - mmdet - INFO - Epoch [1][50/100]\tlr: 2.0e-03, eta: 1 day, "
       "1:00:00, time: 0.500, data_time: 0.050, memory: 3000, loss_cls: 0.25, loss: 0.5, "
       "grad_norm: 3.0",
       "mmcv", "50", "0.5", "3.0", "2.0e-03"},
      {"2026-02-03 04:05:06,338 - mmseg - INFO - Iter [50/160000]\tlr: 9.9e-03, eta: 10:00:00, "
       "time: 0.25, data_time: 0.01, memory: 8000, decode.loss_seg: 1.5, loss: 2.5",
       "mmcv", "50", "2.5", "", "9.9e-03"},
      {"[02/03 04:05:06 d2.utils.events]:  eta: 0:10:00  iter: 19  total_loss: 1.25  loss_cls: "
       "0.75  loss_box_reg: 0.5    time: 0.3500  last_time: 0.34  data_time: 0.0125  lr: 0.00039  "
       "max_mem: 3000M",
       "detectron2", "19", "1.25", "", "0.00039"},
      {"2026-02-03 04:05:06,338 maskrcnn_benchmark.trainer INFO: eta: 1 day, 2:03:04  iter: 20  "
       "loss: 1.25 (1.50)  loss_mask: 0.5 (0.6)  time: 0.5 (0.6)  data: 0.01 (0.02)  lr: 0.0004  "
       "max mem: 3000",
       "detectron2", "20", "1.25", "", "0.0004"},
      // X-Transformer, Transformer-XL
      {"02/03/2026 04:05:06 - INFO - __main__ -   | [   1/   3][   100/  1000] |  399/1932 batches "
       "| ms/batch 4.5376 | train_loss 5.75e-01 | lr 5.000000e-05",
       "x_transformer", "100", "5.75e-01", "", "5.000000e-05"},
      {"| epoch   1 step      200 |    200 batches | lr 0.00025 | ms/batch 500.25 | loss  7.12 | "
       "ppl  1236.5",
       "pytorch_loop", "200", "7.12", "", "0.00025"},
      // tables
      {"step\tloss\n500\t2.25", "headed_table", "500", "2.25", "", ""},
      {"Step\tTraining Loss\tValidation Loss\n500\t2.25\t2.5", "headed_table", "500", "2.25", "",
       ""},
      {"epoch,lr,step,train_loss,val_loss\n0,0.001,49,2.25,\n0,0.001,99,2.125,", "headed_table",
       "99", "2.125", "", "0.001"},
      {"epoch     train_loss  valid_loss  accuracy  time    \n0         0.825     0.350       0.850"
       "     00:12",
       "headed_table", "0", "0.825", "", ""},
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

struct Fact {
  double Progress::*field;
  double value;
};
struct Facts {
  std::string_view text;
  std::vector<Fact> facts;
};

TEST(Dialects, EveryKeyBecomesAFact) {
  using P = Progress;
  const Facts cases[] = {
      {"{'loss': 1.25, 'num_tokens': 65536.0, 'step_time': 2.5, 'reward': 0.5, 'reward_std': 0.25, "
       "'frac_reward_zero_std': 0.75, 'kl': 0.01, 'epoch': 0.25}",
       {{&P::consumed_tokens, 65536},
        {&P::step_seconds, 2.5},
        {&P::reward, 0.5},
        {&P::reward_std, 0.25},
        {&P::zero_std_share, 0.75},
        {&P::kl, 0.01},
        {&P::epoch, 0.25}}},
      {"{'loss': 0.5, 'rewards/margins': 1.5, 'epoch': 1.0}", {{&P::reward, 1.5}}},
      {"{'eps': 3, 'objective/kl': 0.25, 'objective/rlhf_reward': 1.5, 'lr': 3e-06, 'episode': 64, "
       "'epoch': 0.5}",
       {{&P::reward, 1.5}, {&P::kl, 0.25}, {&P::consumed_samples, 64}, {&P::epoch, 0.5}}},
      {"{'loss': 1.5, 'epoch': 0.1, 'global_step/max_steps': '70/700', 'elapsed_time': '1h 2m 3s', "
       "'train_speed(iter/s)': 0.25}",
       {{&P::total_steps, 700}, {&P::elapsed_seconds, 3723}, {&P::step_seconds, 4}}},
      {"{\"current_steps\": 10, \"total_steps\": 90, \"loss\": 1.25, \"lr\": 5e-06, \"epoch\": "
       "0.1, "
       "\"elapsed_time\": \"1 day, 0:01:05\", \"throughput\": 900.5, \"total_tokens\": 4096}",
       {{&P::total_steps, 90},
        {&P::elapsed_seconds, 86465},
        {&P::tokens_per_second, 900.5},
        {&P::consumed_tokens, 4096}}},
      {" iteration      100/    2000 | consumed samples:        12800 | consumed tokens:     "
       "26214400 | elapsed time per iteration (ms): 750.5 | throughput per GPU (TFLOP/s/GPU): "
       "412.5 | learning rate: 3.0E-04 | global batch size:   128 | lm loss: 3.125E+00 | loss "
       "scale: 512.0 | grad norm: 0.625 | num zeros: 17 | params norm: 812.5 | number of skipped "
       "iterations:   2 | number of nan iterations:   1 | samples per second: 170.5 | tokens per "
       "gpu per second (tgs): 4100.5 |",
       {{&P::total_steps, 2000},
        {&P::consumed_samples, 12800},
        {&P::consumed_tokens, 26214400},
        {&P::step_seconds, 0.7505},
        {&P::tflops, 412.5},
        {&P::batch_size, 128},
        {&P::loss_scale, 512},
        {&P::num_zeros, 17},
        {&P::params_norm, 812.5},
        {&P::skipped_iterations, 2},
        {&P::nan_iterations, 1},
        {&P::samples_per_second, 170.5},
        {&P::tokens_per_second, 4100.5}}},
      {" samples/sec: 32.5 | iteration      100/    2000 | elapsed time per iteration (ms): 500.0 "
       "| learning rate: 3.0E-04 | approx flops per GPU: 0.5PFLOPS | lm_loss: 3.5E+00 |",
       {{&P::samples_per_second, 32.5}, {&P::tflops, 500}, {&P::step_seconds, 0.5}}},
      {"Training epoch 1, iteration 12/99 | lr: 3e-05 | consumed_samples: 64 | global_batch_size: "
       "4 "
       "| global_step: 12 | reduced_train_loss: 1.25 | train_step_timing in s: 0.125",
       {{&P::consumed_samples, 64},
        {&P::batch_size, 4},
        {&P::step_seconds, 0.125},
        {&P::epoch, 1}}},
      {"2026-02-03 04:05:06 | INFO | root | step 9 | epoch 0 | loss 0.6875 | grad_norm 1.5 | lr "
       "1.00e-05 | mem 24.90 GiB | tps 11278.5(1409.8/gpu) | num_label_tokens 21541",
       {{&P::tokens_per_second, 11278.5}, {&P::epoch, 0}}},
      {"steps: 10 loss: 8.5312 iter time (s): 0.812 samples/sec: 39.409",
       {{&P::step_seconds, 0.812}, {&P::samples_per_second, 39.409}}},
      {"Epoch 3/9 ━━━━━━ 18/40 0:00:05 • 0:00:09 2.50it/s v_num: 0 train_loss: 2.375",
       {{&P::epoch, 3}, {&P::step_seconds, 0.4}}},
      {"train | step:   2000 | steps/sec:   12.5 | output: {'training_loss': 1.5}",
       {{&P::step_seconds, 0.08}}},
      {"INFO:tensorflow:global step 60: loss = 11.75 (0.427 sec/step)",
       {{&P::step_seconds, 0.427}}},
      {"[titan] 2026-02-03 04:05:06,338 - root - INFO - step:  1  loss: 12.2500  grad_norm:  4.5000"
       "  memory:  9.50GiB(65.00%)  tps: 7,282  tflops: 51.25  mfu: 16.50%",
       {{&P::tokens_per_second, 7282}, {&P::tflops, 51.25}, {&P::mfu, 0.165}}},
      {"completed step: 12, seconds: 2.5, TFLOP/s/device: 150.5, Tokens/s/device: 3276.8, "
       "total_weights: 65536, loss: 8.125",
       {{&P::step_seconds, 2.5}, {&P::tflops, 150.5}, {&P::tokens_per_second, 3276.8}}},
      {"step:7 - actor/ppo_kl:0.01 - actor/grad_norm:0.25 - critic/rewards/mean:np.float64(0.5) - "
       "perf/mfu/actor:0.25 - perf/throughput:900.5 - timing_s/step:61.5",
       {{&P::reward, 0.5},
        {&P::kl, 0.01},
        {&P::mfu, 0.25},
        {&P::tokens_per_second, 900.5},
        {&P::step_seconds, 61.5}}},
      {"2026-02-03 04:05:06 | INFO | train_inner | epoch 002:    100 / 1234 loss=7.5, wps=9620.5, "
       "ups=2.5, bsz=128, num_updates=1334, lr=0.00025, gnorm=1.5, loss_scale=8, wall=500",
       {{&P::epoch, 2},
        {&P::tokens_per_second, 9620.5},
        {&P::step_seconds, 0.4},
        {&P::batch_size, 128},
        {&P::loss_scale, 8},
        {&P::elapsed_seconds, 500}}},
      {"iter 10: loss 4.2, time 30.0ms, mfu 25.50%", {{&P::step_seconds, 0.03}, {&P::mfu, 0.255}}},
      {"step:12/900 train_loss:3.25 train_time:1500ms step_avg:125.0ms",
       {{&P::elapsed_seconds, 1.5}, {&P::step_seconds, 0.125}, {&P::total_steps, 900}}},
      {"step    7/900 | loss 9.125 (-0.50z)| norm 3.25 (+1.00z)| lr 6.0e-06 | 3000.5 ms | 53.5% "
       "bf16 MFU | 174000 tok/s",
       {{&P::step_seconds, 3.0005},
        {&P::mfu, 0.535},
        {&P::tokens_per_second, 174000},
        {&P::total_steps, 900}}},
      {"Train: 0 [   0/1251 (  0%)]  Loss: 6.94 (6.94)  Time: 1.5s,  133.5/s  (1.9s,  130.5/s)  "
       "LR: 1.000e-06  Data: 1.044 (1.044)",
       {{&P::step_seconds, 1.5}, {&P::samples_per_second, 133.5}, {&P::epoch, 0}}},
      {"[02/03 04:05:06 d2.utils.events]:  eta: 0:10:00  iter: 19  total_loss: 1.25  time: 0.35  "
       "data_time: 0.0125  lr: 0.00039  max_mem: 3000M",
       {{&P::step_seconds, 0.35}}},
      {"2026-02-03 04:05:06,338 - mmdet - INFO - Iter [50/1000]\tlr: 2.0e-03, eta: 1:00:00, time: "
       "0.5, memory: 3000, loss: 0.5",
       {{&P::step_seconds, 0.5}, {&P::total_steps, 1000}}},
      {"step 5 | loss 1.5 | elapsed 1:02:03 | tok/s 1,250.5 | gbs 64",
       {{&P::elapsed_seconds, 3723}, {&P::tokens_per_second, 1250.5}, {&P::batch_size, 64}}},
      {"step 5 loss 1.5 throughput 250.5 mfu 0.25",
       {{&P::samples_per_second, 250.5}, {&P::mfu, 0.25}}},
  };
  for (const Facts& test : cases) {
    const Records records = ReadText(test.text);
    ASSERT_EQ(records.rows.size(), 1u) << test.text;
    for (size_t i = 0; i < test.facts.size(); ++i) {
      EXPECT_DOUBLE_EQ(records.rows[0].progress.*test.facts[i].field, test.facts[i].value)
          << test.text << ": fact " << i;
    }
  }
}

// What is not printed, or is no number yet, is no fact.
TEST(Dialects, NoFactWhereNoneIsPrinted) {
  const auto one = [](std::string_view text) {
    const Records records = ReadText(text);
    EXPECT_EQ(records.rows.size(), 1u) << text;
    return records.rows.empty() ? Progress() : records.rows[0].progress;
  };
  EXPECT_NE(one("iter 0: loss 10.5, time 25.5ms, mfu -100.00%").mfu,
            one("iter 0: loss 10.5, time 25.5ms, mfu -100.00%").mfu);
  const Progress modded = one("step:1/900 train_loss:3.25 train_time:15ms step_avg:nanms");
  EXPECT_NE(modded.step_seconds, modded.step_seconds);
  EXPECT_EQ(modded.loss, 3.25);
  const Progress plain = one("{'loss': 0.5, 'epoch': 0.5}");
  EXPECT_NE(plain.reward, plain.reward);
  EXPECT_NE(plain.consumed_tokens, plain.consumed_tokens);
}

TEST(Dialects, OlmoBlocksAndWhatStandsBetween) {
  const Records records = ReadText(
      "INFO [step=1/9]\n    train/CrossEntropyLoss=11.5\n    train/Perplexity=98,715\n"
      "Peak memory 5 GB\n"
      "    train/CrossEntropyLoss=3.5\n"  // no block is open
      "INFO [eval_step=1/9]\n    train/CrossEntropyLoss=4.5\n"
      "INFO [step=2/9]\n    eval/CrossEntropyLoss=7.5\n    train/CrossEntropyLoss=10.5\n");
  ASSERT_EQ(records.rows.size(), 2u);
  EXPECT_EQ(records.rows[0].step, "1");
  EXPECT_EQ(records.rows[0].progress.total_steps, 9);
  EXPECT_EQ(records.rows[1].step, "2");
  EXPECT_EQ(records.rows[1].loss, "10.5");
}

TEST(Dialects, TablesEndAndBegin) {
  const Records records = ReadText(
      "epoch,loss,val_loss\n0,2.5,2.75\n1,2.25,2.5\nsaved to disk, done, ok\n2,2.0,2.25\n"
      "epoch,accuracy,f1\n3,0.5,0.25\n");
  ASSERT_EQ(records.rows.size(), 3u);
  EXPECT_EQ(records.rows[2].step, "2");
  EXPECT_EQ(records.rows[2].loss, "2.0");
}

TEST(Dialects, NearMisses) {
  for (const std::string_view text : {
           // evaluations
           "2026-02-03 04:05:06 | INFO | valid | epoch 001 | valid on 'valid' subset | loss 8.125 "
           "| "
           "nll_loss 7.5 | ppl 181 | wps 30000 | num_updates 1234",
           "| epoch 010 | valid on 'valid' subset | valid_loss 4.5 | valid_ppl 9.5 | num_updates 9",
           "INFO:tensorflow:Saving dict for global step 100: accuracy = 0.5, global_step = 100, "
           "loss = 0.25",
           " eval | step:    100 | eval time:    3.5 sec | output: {'validation_loss': 1.25}",
           "{\"mode\": \"val\", \"epoch\": 1, \"iter\": 50, \"lr\": 0.002, \"loss\": 0.75}",
           "02/03 04:05:06 - mmengine - INFO - Epoch(val) [1][ 50/100]    loss: 0.5",
           "2026-02-03 04:05:06,338 - mmdet - INFO - Epoch(val) [1][50]\tlr: 2.0e-03, loss: 0.5",
           "{'eval_loss': 0.5, 'eval_rewards/margins': 0.25, 'eval_kl': 0.01, 'epoch': 1.0}",
           "Validation ━━━━━━━━ 18/40 0:00:05 • 0:00:09 3.50it/s val_loss: 2.375",
           // ends
           "INFO:tensorflow:Loss for final step: 0.5.",
           "{'train_loss': 1.25, 'epoch': 3.0}",
           "{'train_runtime': 12.5, 'train_samples_per_second': 8.5, 'train_loss': 1.25}",
           "  train_loss               =     0.6931",
           // beginnings and other speech
           "train | step:    100 | training until step 200...",
           "INFO:tensorflow:global_step/sec: 12.5",
           "INFO:tensorflow:Saving checkpoints for 100 into out/model.ckpt.",
           "Step 100 per-step time 0.456s",
           "[step=12/900,epoch=0]",
           "Saving checkpoint... [step=12] loss",
           "loss = criterion(output), step = 5",
           "step:7 - actor/lr:1e-06",
           "| [   1/   3][   100/  1000] |  399/1932 batches | ms/batch 4.5376",
           "completed step: 12",
           "Epoch 0/9 ━━━━━━ 18/40 0:00:05 • 0:00:09 3.50it/s v_num: 0",
           "eta: 0:10:00  iter: 19  lr: 0.0002",
           // tables that tell of no training
           "lr\tloss\n0.001\t2.5\n0.002\t2.25",
           "lr,loss\n0.001,2.5\n0.002,2.25",
           "step\tval_loss\n10\t2.5\n20\t2.25",
           "epoch,d_loss,g_loss,loss\n1,2.5,3.5,6.0",
           "step, loss and accuracy are logged\n1, 2, 3",
           "loss,step\n2.5,10",
           "name  loss\nresnet  2.5",
           // configuration, downloads
           "loss: cross_entropy",
           "  loss: cross_entropy  steps: 100",
           "model.safetensors:  10%|#    | 100M/1.0G [00:10<01:30, 10.0MB/s]",
           "Downloading shards:  50%|##   | 1/2 [00:10<00:10, 10.0s/it]",
           "Finding best initial lr:  10%|# | 10/100 [00:01<00:10, 9.5it/s, loss=2.5]",
           "loss_scale=65536.0 step=5",
       }) {
    const Records records = ReadText(text);
    for (const Row& row : records.rows) {
      ADD_FAILURE() << text << " -> " << row.format << " step " << row.step << " loss " << row.loss;
    }
  }
}

// Records without a loss of the whole carry their rewards.
TEST(Dialects, RewardsWithoutALoss) {
  for (const std::string_view text :
       {"{'eps': 3, 'objective/kl': 0.25, 'objective/rlhf_reward': 1.5, 'lr': 3e-06, 'episode': 8}",
        "step:7 - actor/grad_norm:0.25 - critic/rewards/mean:1.5 - timing_s/step:61.5"}) {
    const Records records = ReadText(text);
    ASSERT_EQ(records.rows.size(), 1u) << text;
    EXPECT_EQ(records.rows[0].loss, "") << text;
    EXPECT_FALSE(records.rows[0].progress.loss_key_missing) << text;
    EXPECT_EQ(records.rows[0].progress.reward, 1.5) << text;
  }
}

}  // namespace
}  // namespace rankscope::logs
