// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What lines say about the life of a run: saves, loads, evaluations, begin and end, versions.
#include <gtest/gtest.h>

#include <cmath>
#include <string_view>

#include "feed_lines.h"

namespace rankscope::logs {
namespace {

using enum MarkerKind;

struct Expected {
  std::string_view line;
  MarkerKind kind;
  std::string_view text;
  double number;
};

TEST(Markers, KindTextAndStep) {
  const Expected cases[] = {
      // saves
      {"Saving current state to out/checkpoint-70", kSaveBegin, "out/checkpoint-70", 70},
      {"02/03/2026 04:05:06 - INFO - __main__ - Saved state to out/checkpoint-70", kSaveEnd,
       "out/checkpoint-70", 70},
      {"Epoch 0, global step 70: 'val_loss' reached 0.50000 (best 0.50000), saving model to "
       "'out/epoch=0-step=70.ckpt' as top 1",
       kSaveBegin, "out/epoch=0-step=70.ckpt", 70},
      {"Epoch 00003: val_loss improved from inf to 0.50000, saving model to w.hdf5", kSaveBegin,
       "w.hdf5", kAbsent},
      {"[INFO] [engine.py:33:commit] [Torch] Checkpoint global_step9 is ready now!", kSaveEnd, "",
       kAbsent},
      {"  successfully saved checkpoint from iteration      70 to out", kSaveEnd, "", 70},
      {"Successfully saved checkpoint from iteration      70 to out", kSaveEnd, "", 70},
      {"saving checkpoint at iteration      70 to out in torch_dist format", kSaveBegin, "", 70},
      {"INFO:tensorflow:Saving checkpoints for 70 into out/model.ckpt.", kSaveBegin, "", 70},
      {"Preparing to save checkpoint for epoch 1 @ 70 updates", kSaveBegin, "", 70},
      {"Saved checkpoint out/checkpoint1.pt (epoch 1 @ 70 updates, score 4.5) (writing took 3.5 "
       "seconds)",
       kSaveEnd, "out/checkpoint1.pt", 70},
      {"Saving a full checkpoint at last step, step 70.", kSaveBegin, "", 70},
      {"Finished saving the checkpoint (or staging if async is enabled) in 5.25 seconds.", kSaveEnd,
       "", kAbsent},
      {"saving checkpoint to out-shakespeare", kSaveBegin, "out-shakespeare", kAbsent},
      {"Saving checkpoint at step 70", kSaveBegin, "", 70},
      {"02/03 04:05:06 - mmengine - INFO - Saving checkpoint at 3 epochs", kSaveBegin, "", kAbsent},
      {"[02/03 04:05:06 fvcore.common.checkpoint]: Saving checkpoint to out/model_0000069.pth",
       kSaveBegin, "out/model_0000069.pth", kAbsent},
      {"saved checkpoint to out/ckpt-70.", kSaveEnd, "out/ckpt-70", 70},
      {"Checkpoint saved to out/step70", kSaveEnd, "out/step70", 70},
      {"Model saved to out/model.pt", kSaveEnd, "out/model.pt", kAbsent},
      {"Saving model to file weights/features.pickle", kSaveBegin, "weights/features.pickle",
       kAbsent},
      // what is not there
      {"[WARNING] [engine.py:2761:load_checkpoint] Unable to find latest file at /s/r7/latest, if "
       "trying to load latest checkpoint please ensure this file exists",
       kNoCheckpoint, "/s/r7/latest", kAbsent},
      // failures
      {"Failed to save checkpoint: No space left", kSaveFailed, "checkpoint: No space left",
       kAbsent},
      {"ERROR - trainer - Error saving checkpoint to out/70: disk quota", kSaveFailed,
       "checkpoint to out/70: disk quota", kAbsent},
      // loads
      {"Loading model from out/checkpoint-70.", kLoadBegin, "out/checkpoint-70", 70},
      {"[Torch] Loaded checkpoint from out/global_step70/mp_rank_00_model_states.pt.", kLoaded,
       "out/global_step70/mp_rank_00_model_states.pt", 70},
      {"Restored all states from the checkpoint file at out/last.ckpt", kLoaded, "out/last.ckpt",
       kAbsent},
      {"Loading the checkpoint at step 70.", kLoadBegin, "", 70},
      {"Loaded checkpoint out/checkpoint_last.pt (epoch 1 @ 70 updates)", kLoaded,
       "out/checkpoint_last.pt", 70},
      {"INFO:tensorflow:Restoring parameters from out/model.ckpt-70", kLoadBegin,
       "out/model.ckpt-70", 70},
      {"05/11 14:58:00 - mmengine - INFO - Auto resumed from the latest checkpoint "
       "out/iter_70.pth.",
       kLoaded, "out/iter_70.pth", 70},
      {"Loading checkpoint: out/70.pt", kLoadBegin, "out/70.pt", kAbsent},
      {"Client provided checkpoint load path: out/7 does not exist ... skip checkpoint load",
       kNoCheckpoint, "", kAbsent},
      // evaluations
      {"***** Running Evaluation *****", kEvalBegin, "", kAbsent},
      {"2026-02-03 04:05:06 | INFO | fairseq_cli.train | begin validation on \"valid\" subset",
       kEvalBegin, "", kAbsent},
      {"INFO:tensorflow:Saving dict for global step 70: global_step = 70, loss = 0.25", kEval, "",
       0.25},
      {"Running validation...", kEvalBegin, "", kAbsent},
      // begin and end
      {"[titan] 2026-02-03 04:05:06,338 - root - INFO - Training starts at step 1, with local "
       "batch size 8",
       kTrainBegin, "", kAbsent},
      {"Starting training from iteration 0", kTrainBegin, "", kAbsent},
      {"[exiting program at iteration 70] datetime: 2026-02-03 04:05:06", kTrainEnd, "", 70},
      {"Training completed. Do not forget to share your model on huggingface.co/models =)",
       kTrainEnd, "", kAbsent},
      {"100 epochs completed in 0.027 hours.", kTrainEnd, "", kAbsent},
      {"Training complete", kTrainEnd, "", kAbsent},
      {"INFO:root:Training finished!", kTrainEnd, "", kAbsent},
      {"[rank0]: 2026-02-03 04:05:06 INFO Training is complete.", kTrainEnd, "", kAbsent},
      {"=== Finished Training ===", kTrainEnd, "", kAbsent},
      {"Done training", kTrainEnd, "", kAbsent},
      {"Model training completed in 90.5 s", kTrainEnd, "", kAbsent},
      {"Pretraining complete", kTrainEnd, "", kAbsent},
      {"2026-02-03 04:05:06 | INFO | fairseq_cli.train | done training in 900.5 seconds", kTrainEnd,
       "", kAbsent},
      {"`Trainer.fit` stopped: `max_steps=70` reached.", kTrainEnd, "", kAbsent},
      {"INFO:tensorflow:Loss for final step: 0.5.", kTrainEnd, "", kAbsent},
      {"*** Best metric: 81.5 (epoch 270)", kTrainEnd, "", kAbsent},
  };
  for (const Expected& test : cases) {
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

TEST(Markers, FactsAreNamed) {
  const struct {
    std::string_view line, name, value;
  } cases[] = {
      {"n1:312:340 [0] NCCL INFO NCCL version 2.18.3+cuda12.1", "nccl_version", "2.18.3+cuda12.1"},
      {"PyTorch version: 2.1.0+cu121", "torch_version", "2.1.0+cu121"},
      {"torch version .................... 2.1.0", "torch_version", "2.1.0"},
      {"         torch: 2.6.0+cu124         ", "torch_version", "2.6.0+cu124"},
      {"O^O/ \\_/ \\    Torch: 2.7.0+cu126. CUDA: 8.0. CUDA Toolkit: 12.6.", "torch_version",
       "2.7.0+cu126"},
      {"  \"transformers_version\": \"4.41.2\",", "transformers_version", "4.41.2"},
      {"deepspeed info ................... 0.14.2, unknown, unknown", "deepspeed_version",
       "0.14.2"},
  };
  for (const auto& test : cases) {
    const Records records = ReadText(test.line);
    ASSERT_EQ(records.marks.size(), 1u) << test.line;
    EXPECT_EQ(records.marks[0].kind, kFact) << test.line;
    EXPECT_EQ(records.marks[0].name, test.name) << test.line;
    EXPECT_EQ(records.marks[0].text, test.value) << test.line;
  }
  const Records banner = ReadText("[Rank -1] DeepSpeed info: version=0.9.1, git-hash=unknown");
  ASSERT_EQ(banner.marks.size(), 2u);
  EXPECT_EQ(banner.marks[0].kind, kBanner);
  EXPECT_EQ(banner.marks[0].text, "deepspeed");
  EXPECT_EQ(banner.marks[1].name, "deepspeed_version");
  EXPECT_EQ(banner.marks[1].text, "0.9.1");
}

// Who saves a final model says that it has trained.
TEST(Markers, AFinalModelEndsTheTraining) {
  for (const std::string_view line :
       {"saving the final model ...", "Final model saved to out/final",
        "Saved final model to out/final"}) {
    const Records records = ReadText(line);
    ASSERT_EQ(records.marks.size(), 2u) << line;
    EXPECT_TRUE(records.marks[0].kind == kSaveBegin || records.marks[0].kind == kSaveEnd) << line;
    EXPECT_EQ(records.marks[1].kind, kTrainEnd) << line;
  }
}

TEST(Markers, NearMisses) {
  for (const std::string_view line : {
           // plans, refusals, measurements
           "Saving checkpoint every 500 steps",
           "saving checkpoint_interval=500",
           "Skipping saving checkpoint at step 70",
           "Not saving checkpoint: rank 3",
           "saving checkpoint took 5.25 s",
           "Will be saving checkpoint to out",
           "save_checkpoint: false",
           "Time for saving checkpoint to out: 5 s",
           // a base model is no checkpoint of this training
           "Loading checkpoint shards:  50%|#####     | 1/2 [00:01<00:01, 1.00s/it]",
           "Loading model from meta/base-7b",
           "loading configuration file out/config.json from cache",
           // the end of a part
           "Epoch 3: training complete, loss 0.5",
           "Epoch 3 training done",
           "Fold 2 training finished",
           "Tokenizer training complete",
           "Finished training epoch 3",
           "Training is slow",
           "Training completeness score",
           "Training done for epoch 3 of 9 by epoch",
           "End of training data reached",
           "Starting training data loader",
           "Training completed: false\"",
           // nothing was asked for
           "No checkpoint found. Initializing model from scratch",
           "No existing checkpoint found out/checkpoint_last.pt",
           // versions that are none
           "PyTorch version: unknown",
           "torch: not installed",
           "NCCL version mismatch",
           "requires torch version >= 2.0",
           // sources
           "    raise RuntimeError(\"Failed to save checkpoint\")",
           "logger.info('Training finished')",
       }) {
    for (const Mark& mark : ReadText(line).marks) {
      if (mark.kind == kEval) continue;
      ADD_FAILURE() << line << " -> " << mark.name;
    }
  }
}

}  // namespace
}  // namespace rankscope::logs
