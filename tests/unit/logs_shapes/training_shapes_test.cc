// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Lines in which a training speaks of itself, and lines that only use the same words.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/logs_shapes/feed.h"

namespace rankscope::logs {
namespace {

std::vector<Marker> Markers(std::string_view text) {
  static std::string kept;
  kept = text;
  RecordList out;
  for (const CleanLine& line : Lines(kept)) {
    for (const ShapeRow& row : Shapes()) {
      if (AnchorOf(row.anchors, line.text)) row.parse(line, out);
    }
  }
  std::vector<Marker> markers;
  for (const Record& record : out) {
    if (const auto* marker = std::get_if<Marker>(&record)) markers.push_back(*marker);
  }
  return markers;
}

TEST(TrainingShapes, LossScales) {
  const struct {
    const char* line;
    double scale;
  } cases[] = {
      {"[2026-01-02 03:04:05,678] [INFO] [fused_optimizer.py:344:_update_scale] [deepspeed] "
       "OVERFLOW! Rank 3 Skipping step. Attempted loss scale: 65536.0, reducing to 32768.0",
       32768},
      {"Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 4096.0", 4096},
      {"NOTE: overflow detected, setting loss scale to: 0.5", 0.5},
  };
  for (const auto& c : cases) {
    const auto got = Markers(c.line);
    ASSERT_EQ(got.size(), 1u) << c.line;
    EXPECT_EQ(got[0].kind, MarkerKind::kLossScale);
    EXPECT_EQ(got[0].number, c.scale);
  }
  EXPECT_TRUE(Markers("print('reducing loss scale to 1')").empty());
  EXPECT_TRUE(Markers("initial scale 65536, reducing loss scale to fit").empty());
}

TEST(TrainingShapes, PartsThatWereNotRestored) {
  const struct {
    const char* line;
    const char* part;
  } cases[] = {
      {"Could not load optimizer state: KeyError 'exp_avg'; it will be reset", "optimizer"},
      {"[WARNING] optimizer_state missing from /c/7.pt, starting fresh", "optimizer"},
      {"scheduler state not found, resetting the learning rate", "scheduler"},
      {"Didn't manage to set back the RNG states of the GPU because of the following error:",
       "rng"},
      {"_IncompatibleKeys(missing_keys=['blocks.3.w'], unexpected_keys=[])", "weights"},
      {"There were missing keys in the checkpoint model loaded: ['a.w', 'b.w'].", "weights"},
  };
  for (const auto& c : cases) {
    const auto got = Markers(c.line);
    ASSERT_EQ(got.size(), 1u) << c.line;
    EXPECT_EQ(got[0].kind, MarkerKind::kPartialLoad);
    EXPECT_EQ(got[0].text, c.part) << c.line;
  }
}

TEST(TrainingShapes, LoadsThatAreWhole) {
  for (const char* line :
       {"loading optimizer state from /c/7.pt", "optimizer state restored",
        "_IncompatibleKeys(missing_keys=[], unexpected_keys=['x'])",
        // Tied weights are left out on purpose.
        "There were missing keys in the checkpoint model loaded: ['lm_head.weight'].",
        "optimizer states are sharded over 8 ranks"}) {
    EXPECT_TRUE(Markers(line).empty()) << line;
  }
}

TEST(TrainingShapes, MegatronRefusesAndExits) {
  const auto got = RunShapes(
      "Unable to load rng state from checkpoint /c/iter_0000010. Specify --no-load-rng or "
      "--finetune to prevent attempting to load the rng state, exiting ...");
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].kind, IncidentKind::kException);
  EXPECT_EQ(got[0].frame, FrameKind::kCheckpointLoad);
}

TEST(TrainingShapes, CompilersBeginAndEnd) {
  EXPECT_EQ(Markers("Building extension module utils...")[0].kind, MarkerKind::kCompileBegin);
  EXPECT_EQ(Markers("Time to load utils op: 0.52 seconds")[0].kind, MarkerKind::kCompileEnd);
  EXPECT_EQ(Markers(">>> done with compiling and loading fused kernels. Compilation time: 3.1 "
                    "seconds")[0]
                .kind,
            MarkerKind::kCompileEnd);
  EXPECT_TRUE(Markers("Time to load the data: 12 s").empty());
}

TEST(TrainingShapes, StorageThatDoesNotAnswer) {
  const auto server = RunShapes("[8.1] nfs: server fs2 not responding, still trying");
  ASSERT_EQ(server.size(), 1u);
  EXPECT_EQ(server[0].kind, IncidentKind::kStorage);
  EXPECT_EQ(server[0].sub, "hang");
  EXPECT_EQ(Field(server[0], "server"), "fs2");
  EXPECT_TRUE(RunShapes("[9.1] nfs: server fs2 OK").empty());
  const auto task = RunShapes("[9.1] INFO: task python3:812 blocked for more than 120 seconds.");
  ASSERT_EQ(task.size(), 1u);
  EXPECT_EQ(task[0].role, Role::kCascade);
  EXPECT_TRUE(RunShapes("the road was blocked for more than 3 hours").empty());
}

}  // namespace
}  // namespace rankscope::logs
