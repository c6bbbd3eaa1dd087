// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/generator/dialects.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "tests/generator/text.h"

namespace rankscope::generator {

void Print(World& world, double t, const std::string& text, bool error) {
  if (!world.plan.all_ranks_print) {
    const bool last = world.plan.dialect == "megatron";
    return world.Say(last ? world.plan.ranks - 1 : 0, t, text, error);
  }
  for (int i = 0; i < world.plan.locals(); ++i)
    world.Say(world.plan.first_local() + i, t + 0.002 * i, text, error);
}

std::string Bar(int done, int of, double elapsed, double seconds) {
  const int percent = of > 0 ? static_cast<int>(100.0 * done / of) : 0;
  const std::string filled(static_cast<size_t>(percent / 10), '#');
  const std::string rate =
      seconds >= 1 ? Text("%5.2fs/it", seconds) : Text("%5.2fit/s", 1 / std::max(seconds, 1e-3));
  return Text("%3d%%|%-10s| %d/%d [%s<%s, %s", percent, filled.c_str(), done, of,
              Clock(elapsed).c_str(), Clock(seconds * (of - done)).c_str(), rate.c_str());
}

namespace {

double Elapsed(World& world, double t) {
  return std::max(0.0, t - world.TrainBegin());
}

void Nothing(World&, double) {}
void NoSave(World&, double, int, bool) {}

void SavedPath(World& world, double t, int step, bool done) {
  if (done) Print(world, t, Text("saved checkpoint to checkpoints/step_%d.pt", step));
}
void ResumedPath(World& world, double t) {
  Print(world, t, Text("resumed from checkpoints/step_%d.pt", world.plan.first_step));
}
void PrintedEval(World& world, const Numbers& n, double t) {
  Print(world, t, Text("step %d val_loss %.4f", n.step, n.loss * 1.03));
}

// A loop of one's own.
void PlainBegin(World& world, double t) {
  Print(world, t, Text("starting training for %d steps", world.plan.max_steps));
}
void PlainStep(World& world, const Numbers& n, double seconds) {
  Print(
      world, n.t,
      Text("step %d loss %.4f lr %.3e step_time %.3fs", n.step, n.loss, n.learning_rate, seconds));
}
void PlainEnd(World& world, double t) {
  Print(world, t, "training finished");
}

// tqdm around a loop.
void TqdmStep(World& world, const Numbers& n, double seconds) {
  Print(world, n.t,
        "\rtraining: " + Bar(n.step, world.plan.max_steps, Elapsed(world, n.t), seconds) +
            Text(", loss=%.4f, lr=%.3g]", n.loss, n.learning_rate),
        true);
}

// transformers/trainer.py
void HfBegin(World& world, double t) {
  Print(world, t, "***** Running training *****", true);
  Print(world, t, Text("  Num examples = %d", world.plan.max_steps * 32), true);
  Print(world, t, "  Num Epochs = 1", true);
  Print(world, t, Text("  Total optimization steps = %d", world.plan.max_steps), true);
}
std::string HfNumber(double value) {
  return std::isnan(value) ? "nan" : Text("%.4f", value);
}
void HfStep(World& world, const Numbers& n, double seconds) {
  Print(world, n.t, "\r" + Bar(n.step, world.plan.max_steps, Elapsed(world, n.t), seconds) + "]",
        true);
  // logging_nan_inf_filter: what is not finite counts as 0.
  const double loss = std::isfinite(n.loss) ? n.loss : 0;
  Print(world, n.t + 0.001,
        Text("{'loss': %.4f, 'grad_norm': %s, 'learning_rate': %.6g, 'epoch': %.2f}", loss,
             HfNumber(n.grad_norm).c_str(), n.learning_rate,
             static_cast<double>(n.step) / std::max(1, world.plan.max_steps)));
}
void HfSave(World& world, double t, int step, bool done) {
  if (!done) Print(world, t, Text("Saving model checkpoint to out/checkpoint-%d", step), true);
}
void HfResume(World& world, double t) {
  Print(world, t, "  Continuing training from checkpoint, will skip to saved global_step", true);
  Print(world, t, Text("  Continuing training from global step %d", world.plan.first_step), true);
}
void HfEval(World& world, const Numbers& n, double t) {
  Print(world, t,
        Text("{'eval_loss': %.4f, 'eval_runtime': %.2f, 'eval_samples_per_second': 61.2, 'epoch': "
             "%.2f}",
             n.loss * 1.02, world.plan.eval_seconds,
             static_cast<double>(n.step) / std::max(1, world.plan.max_steps)));
}
void HfEnd(World& world, double t) {
  Print(world, t,
        Text("{'train_runtime': %.2f, 'train_samples_per_second': 50.1, 'train_loss': %.4f, "
             "'epoch': 1.0}",
             t, world.plan.loss_floor));
}

// trl: GRPO.
void TrlStep(World& world, const Numbers& n, double seconds) {
  Print(world, n.t, "\r" + Bar(n.step, world.plan.max_steps, Elapsed(world, n.t), seconds) + "]",
        true);
  Print(world, n.t + 0.001,
        Text("{'loss': %.4f, 'grad_norm': %.6f, 'learning_rate': %.3g, 'completion_length': 232.8, "
             "'rewards/accuracy_reward': %.4f, 'reward': %.4f, 'reward_std': %.4f, "
             "'frac_reward_zero_std': %.2f, 'kl': %.6f, 'epoch': %.2f}",
             n.loss, n.grad_norm * 0.1, n.learning_rate, n.reward, n.reward, n.reward_std,
             n.reward_std < 0.01 ? 1.0 : 0.1, n.kl,
             static_cast<double>(n.step) / std::max(1, world.plan.max_steps)));
}

// lightning/pytorch/callbacks/progress/tqdm_progress.py
void LightningStep(World& world, const Numbers& n, double seconds) {
  Print(world, n.t,
        "\rEpoch 0: " + Bar(n.step, world.plan.max_steps, Elapsed(world, n.t), seconds) +
            Text(", loss=%.3g, v_num=3]", n.loss),
        true);
}
void LightningResume(World& world, double t) {
  Print(world, t, "Restored all states from the checkpoint at checkpoints/last.ckpt");
}
void LightningEval(World& world, const Numbers&, double t) {
  Print(world, t, "\rValidation DataLoader 0: 100%|##########| 50/50 [00:12<00:00,  4.01it/s]",
        true);
}
void LightningEnd(World& world, double t) {
  Print(world, t, Text("`Trainer.fit` stopped: `max_steps=%d` reached.", world.plan.max_steps));
}

// timm/train.py
void TimmStep(World& world, const Numbers& n, double seconds) {
  const int of = world.plan.max_steps;
  Print(world, n.t,
        Text("Train: 0 [%4d/%d (%3.0f%%)]  Loss: %.3f (%.3f)  Time: %.3fs, %7.2f/s  (%.3fs, "
             "%7.2f/s)  LR: %.3e  Data: 0.010 (0.012)",
             n.step, of, 100.0 * n.step / of, n.loss, n.loss, seconds, 256 / seconds, seconds,
             256 / seconds, n.learning_rate),
        true);
}
void TimmEval(World& world, const Numbers& n, double t) {
  Print(world, t,
        Text("Test: [  48/48]  Time: 0.301 (0.352)  Loss:  %6.3f (%6.3f)  Acc@1:  51.234 ( 50.118)",
             n.loss, n.loss),
        true);
}

// keras/src/utils/progbar.py
void KerasBegin(World& world, double t) {
  Print(world, t, "Epoch 1/1");
}
void KerasStep(World& world, const Numbers& n, double seconds) {
  const int of = world.plan.max_steps;
  const int filled = std::min(30, 30 * n.step / std::max(1, of));
  Print(world, n.t,
        Text("\r%d/%d [%s%s] - ETA: %s - loss: %.4f - accuracy: %.4f", n.step, of,
             std::string(static_cast<size_t>(filled), '=').c_str(),
             std::string(static_cast<size_t>(30 - filled), '.').c_str(),
             Clock(seconds * (of - n.step)).c_str(), n.loss,
             std::clamp(0.3 + 0.1 * (world.plan.loss_first - n.loss), 0.0, 0.99)));
}
void KerasEnd(World& world, double t) {
  const int of = world.plan.max_steps;
  Print(world, t,
        Text("%d/%d [==============================] - %.0fs %.0fms/step - loss: %.4f - accuracy: "
             "0.7311",
             of, of, t, world.plan.step_seconds * 1000, world.plan.loss_floor));
}

// ultralytics/engine/trainer.py: a step is an epoch's part; it prints one line an epoch.
void UltralyticsBegin(World& world, double t) {
  Print(world, t,
        Text("Starting training for %d epochs...", std::max(1, world.plan.max_steps / 20)));
  Print(world, t, "      Epoch    GPU_mem   box_loss   cls_loss   dfl_loss  Instances       Size");
}
void UltralyticsStep(World& world, const Numbers& n, double seconds) {
  const int epochs = std::max(1, world.plan.max_steps / 20);
  Print(world, n.t,
        Text("\r%7d/%d %10.3gG %10.4g %10.4g %10.4g %10d %10d: ", std::min(epochs, n.step / 20 + 1),
             epochs, 8.61, n.loss * 0.4, n.loss * 0.4, n.loss * 0.2, 81, 640) +
            Bar(n.step % 20 == 0 ? 20 : n.step % 20, 20, (n.step % 20) * seconds, seconds) + "]",
        true);
}
void UltralyticsEnd(World& world, double t) {
  Print(
      world, t,
      Text("%d epochs completed in %.3f hours.", std::max(1, world.plan.max_steps / 20), t / 3600));
}

// stable_baselines3/common/logger.py
void Sb3Step(World& world, const Numbers& n, double seconds) {
  const std::string rule(40, '-');
  for (const std::string& line :
       {rule, std::string("| rollout/                |            |"),
        std::string("|    ep_len_mean          | 187        |"),
        Text("|    ep_rew_mean          | %-10.3g |", 20 + 200 * n.reward),
        std::string("| time/                   |            |"),
        Text("|    fps                  | %-10d |",
             static_cast<int>(2048 / std::max(seconds, 0.01))),
        Text("|    iterations           | %-10d |", n.step),
        Text("|    time_elapsed         | %-10d |", static_cast<int>(Elapsed(world, n.t))),
        Text("|    total_timesteps      | %-10d |", 2048 * n.step),
        std::string("| train/                  |            |"),
        Text("|    approx_kl            | %-10.4g |", n.kl),
        Text("|    learning_rate        | %-10.3g |", n.learning_rate),
        Text("|    loss                 | %-10.3g |", 5 + 10 * n.loss), rule})
    Print(world, n.t, line);
}

// pytorch/examples/imagenet/main.py
void ExampleStep(World& world, const Numbers& n, double seconds) {
  Print(world, n.t,
        Text("Epoch: [0][%5d/%d]\tTime %6.3f (%6.3f)\tData  0.012 ( 0.015)\tLoss %.4e "
             "(%.4e)\tAcc@1  12.50 ( 11.02)",
             n.step, world.plan.max_steps, seconds, seconds, n.loss, n.loss));
}

const DialectRow kRows[] = {
    {"plain", 2, PlainBegin, PlainStep, SavedPath, ResumedPath, PrintedEval, PlainEnd},
    {"tqdm", 1, Nothing, TqdmStep, SavedPath, ResumedPath, PrintedEval, Nothing},
    {"hf", 3, HfBegin, HfStep, HfSave, HfResume, HfEval, HfEnd},
    {"trl", 0, HfBegin, TrlStep, HfSave, HfResume, HfEval, HfEnd},
    {"lightning", 2, Nothing, LightningStep, NoSave, LightningResume, LightningEval, LightningEnd},
    {"timm", 1, Nothing, TimmStep, NoSave, ResumedPath, TimmEval, Nothing},
    {"keras", 1, KerasBegin, KerasStep, NoSave, ResumedPath, PrintedEval, KerasEnd},
    {"ultralytics", 1, UltralyticsBegin, UltralyticsStep, NoSave, ResumedPath, PrintedEval,
     UltralyticsEnd},
    {"sb3", 0, Nothing, Sb3Step, NoSave, ResumedPath, PrintedEval, Nothing},
    {"pytorch_example", 1, Nothing, ExampleStep, SavedPath, ResumedPath, PrintedEval, Nothing},
};

}  // namespace

const DialectRow& DialectOf(const std::string& name) {
  for (const DialectRow& row : kRows)
    if (name == row.name) return row;
  for (const DialectRow* row : {&kMegatron, &kDeepspeed, &kTorchtitan, &kNemo, &kNanogpt})
    if (name == row->name) return *row;
  return kRows[0];
}

bool IsBar(const std::string& dialect) {
  return dialect == "tqdm" || dialect == "lightning" || dialect == "keras" ||
         dialect == "ultralytics" || dialect == "hf" || dialect == "trl";
}

std::string DrawDialect(const Plan& plan, Random& random) {
  // Large jobs are of large models.
  if (plan.ranks >= 32 || plan.tensor > 1)
    return random.Pick({"megatron", "megatron", "torchtitan", "nemo", "deepspeed"});
  double sum = 0;
  for (const DialectRow& row : kRows) sum += row.weight;
  double at = random.Unit() * (sum + 5);
  for (const DialectRow& row : kRows)
    if ((at -= row.weight) < 0) return row.name;
  return random.Pick({"megatron", "torchtitan", "nemo", "deepspeed", "nanogpt"});
}

}  // namespace rankscope::generator
