// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <cmath>

#include "tests/generator/dialects.h"
#include "tests/generator/text.h"

namespace rankscope::generator {
namespace {

void Wordless(World&, double) {}

// Megatron-LM/megatron/training/training.py
void MegatronBegin(World& world, double t) {
  Print(world, t,
        Text("[before the start of training step] datetime: %s ",
             Calendar(world.Wall(t), "%Y-%m-%d %H:%M:%S").c_str()));
}
void MegatronStep(World& world, const Numbers& n, double seconds) {
  std::string line = Text(
      " [%s] iteration %8d/%8d | consumed samples: %12d | elapsed time per iteration (ms): %.1f | ",
      Calendar(world.Wall(n.t), "%Y-%m-%d %H:%M:%S").c_str(), n.step, world.plan.max_steps,
      n.step * 512, seconds * 1000);
  line += Text("learning rate: %.6E | global batch size: %5d | ", n.learning_rate, 512);
  // A loss that is not above zero is not printed.
  if (n.loss > 0 && !n.overflow) line += Text("lm loss: %.6E | ", n.loss);
  line += Text("loss scale: %.1f | ", n.loss_scale);
  if (std::isfinite(n.grad_norm) && !n.overflow) line += Text("grad norm: %.3f | ", n.grad_norm);
  line +=
      Text("number of skipped iterations: %3d | number of nan iterations: %3d |",
           n.overflow ? world.plan.log_every : 0, std::isnan(n.loss) ? world.plan.log_every : 0);
  Print(world, n.t, line);
}
void MegatronSave(World& world, double t, int step, bool done) {
  world.Say(0, t,
            Text(done ? "  successfully saved checkpoint from iteration %7d to checkpoints"
                      : "saving checkpoint at iteration %7d to checkpoints",
                 step));
}
void MegatronResume(World& world, double t) {
  world.Say(0, t,
            Text(" loading checkpoint from checkpoints at iteration %d", world.plan.first_step));
  world.Say(0, t + 2,
            Text("  successfully loaded checkpoint from checkpoints at iteration %d",
                 world.plan.first_step));
}
void MegatronEval(World& world, const Numbers& n, double t) {
  Print(world, t,
        Text(" validation loss at iteration %d | lm loss value: %.6E | lm loss PPL: %.6E | ",
             n.step, n.loss * 1.01, std::exp(std::min(n.loss, 50.0))));
}
void MegatronEnd(World& world, double t) {
  Print(world, t,
        Text("[after training is done] datetime: %s ",
             Calendar(world.Wall(t), "%Y-%m-%d %H:%M:%S").c_str()));
}

// deepspeed/runtime/engine.py, utils/timer.py
std::string DeepspeedHead(World& world, double t) {
  return "[" + Calendar(world.Wall(t), "%Y-%m-%d %H:%M:%S,%L") + "] [INFO] ";
}
void DeepspeedStep(World& world, const Numbers& n, double seconds) {
  Print(
      world, n.t,
      DeepspeedHead(world, n.t) +
          Text(
              "[logging.py:96:log_dist] [Rank 0] step=%d, skipped=%d, lr=[%.6g], mom=[(0.9, 0.95)]",
              n.step, n.overflow ? 1 : 0, n.learning_rate));
  if (n.overflow)
    Print(world, n.t + 0.001,
          DeepspeedHead(world, n.t) +
              Text("[loss_scaler.py:183:update_scale] [deepspeed] OVERFLOW! Rank 0 Skipping step. "
                   "Attempted loss scale: %d, reducing to %d",
                   static_cast<int>(n.loss_scale * 2), static_cast<int>(n.loss_scale)));
  Print(world, n.t + 0.002,
        Text("steps: %d loss: %.4f iter time (s): %.3f samples/sec: %.3f", n.step, n.loss, seconds,
             64 / std::max(seconds, 1e-3)));
}
void DeepspeedSave(World& world, double t, int step, bool done) {
  Print(world, t,
        DeepspeedHead(world, t) + (done ? Text("[torch_checkpoint_engine.py:33:commit] [Torch] "
                                               "Checkpoint global_step%d is ready now!",
                                               step)
                                        : Text("[logging.py:96:log_dist] [Rank 0] Saving model "
                                               "checkpoint: checkpoints/global_step%d",
                                               step)));
}
void DeepspeedResume(World& world, double t) {
  Print(world, t,
        DeepspeedHead(world, t) + Text("[torch_checkpoint_engine.py:29:load] [Torch] Loaded "
                                       "checkpoint from checkpoints/global_step%d.",
                                       world.plan.first_step));
}
void DeepspeedEval(World& world, const Numbers& n, double t) {
  Print(world, t, Text("eval loss: %.4f", n.loss * 1.02));
}

// torchtitan/components/metrics.py
std::string TitanHead(World& world, double t) {
  return "[titan] " + Calendar(world.Wall(t), "%Y-%m-%d %H:%M:%S,%L") + " - root - INFO - ";
}
void TitanBegin(World& world, double t) {
  Print(world, t,
        TitanHead(world, t) + Text("Training starts at step %d", world.plan.first_step + 1));
}
void TitanStep(World& world, const Numbers& n, double seconds) {
  Print(world, n.t,
        TitanHead(world, n.t) +
            Text("step: %2d  loss: %8.4f  grad_norm: %7.4f  memory: %5.2fGiB(%.2f%%)  tps: %d  "
                 "tflops: %.2f  mfu: %.2f%%",
                 n.step, n.loss, n.grad_norm,
                 world.plan.memory_share * world.plan.gpu.memory_bytes / 1073741824.0,
                 world.plan.memory_share * 100, static_cast<int>(8192 / std::max(seconds, 1e-3)),
                 380 * world.plan.sm, 38 * world.plan.sm));
}
void TitanSave(World& world, double t, int, bool done) {
  Print(world, t,
        TitanHead(world, t) +
            (done ? Text("Finished saving the checkpoint in %.2f seconds", world.plan.save_seconds)
                  : std::string("Saving the checkpoint (or staging if async is enabled).")));
}
void TitanResume(World& world, double t) {
  Print(world, t,
        TitanHead(world, t) +
            Text("Loading the checkpoint from outputs/checkpoint/step-%d.", world.plan.first_step));
  Print(world, t + 2,
        TitanHead(world, t + 2) + "Finished loading the checkpoint in 2.00 seconds for step.");
}
void TitanEval(World& world, const Numbers& n, double t) {
  Print(world, t,
        TitanHead(world, t) + Text("validate step: %2d  loss: %7.4f", n.step, n.loss * 1.01));
}
void TitanEnd(World& world, double t) {
  Print(world, t, TitanHead(world, t) + "Training completed");
}

// nemo/lightning/pytorch/callbacks/progress_printer.py
void NemoStep(World& world, const Numbers& n, double seconds) {
  Print(world, n.t,
        Text("Training epoch 0, iteration %d/%d | lr: %.4g | consumed_samples: %d | "
             "global_batch_size: 256 | "
             "global_step: %d | reduced_train_loss: %.4g | train_step_timing in s: %.4g",
             n.step, world.plan.max_steps - 1, n.learning_rate, n.step * 256, n.step, n.loss,
             seconds));
}
void NemoSave(World& world, double t, int step, bool done) {
  if (done)
    Print(
        world, t,
        Text("Async checkpoint save for step %d (checkpoints/step=%d.ckpt) finalized successfully.",
             step, step));
}
void NemoResume(World& world, double t) {
  Print(world, t, "Restored all states from the checkpoint at checkpoints/last.ckpt");
}
void NemoEval(World& world, const Numbers& n, double t) {
  Print(world, t, Text("Validation: iteration 20/20 | val_loss: %.4g", n.loss * 1.01));
}
void NemoEnd(World& world, double t) {
  Print(world, t, Text("`Trainer.fit` stopped: `max_steps=%d` reached.", world.plan.max_steps));
}

// karpathy/nanoGPT/train.py
void NanoStep(World& world, const Numbers& n, double seconds) {
  Print(world, n.t,
        Text("iter %d: loss %.4f, time %.2fms, mfu %.2f%%", n.step, n.loss, seconds * 1000,
             40 * world.plan.sm));
}
void NanoSave(World& world, double t, int, bool done) {
  if (!done) Print(world, t, "saving checkpoint to out");
}
void NanoResume(World& world, double t) {
  Print(world, t, "Resuming training from out");
}
void NanoEval(World& world, const Numbers& n, double t) {
  Print(world, t, Text("step %d: train loss %.4f, val loss %.4f", n.step, n.loss, n.loss * 1.03));
}

}  // namespace

const DialectRow kMegatron = {
    "megatron",   0,          MegatronBegin, MegatronStep, MegatronSave, MegatronResume,
    MegatronEval, MegatronEnd};
const DialectRow kDeepspeed = {
    "deepspeed",   0,       Wordless, DeepspeedStep, DeepspeedSave, DeepspeedResume,
    DeepspeedEval, Wordless};
const DialectRow kTorchtitan = {"torchtitan", 0,           TitanBegin, TitanStep,
                                TitanSave,    TitanResume, TitanEval,  TitanEnd};
const DialectRow kNemo = {"nemo", 0, Wordless, NemoStep, NemoSave, NemoResume, NemoEval, NemoEnd};
const DialectRow kNanogpt = {"nanogpt", 0,          Wordless, NanoStep,
                             NanoSave,  NanoResume, NanoEval, Wordless};

}  // namespace rankscope::generator
