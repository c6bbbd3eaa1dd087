// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// One folder under several spellings, and folders that only look alike.
#include "detectors/features/checkpoint_place.h"

#include <gtest/gtest.h>

#include <string>

namespace rankscope::features {
namespace {

void Expect(bool one, const std::string& a, const std::string& b) {
  EXPECT_EQ(MayBeOneFolder(a, b), one) << a << " and " << b;
  EXPECT_EQ(MayBeOneFolder(b, a), one) << b << " and " << a;
}

TEST(CheckpointPlace, OneFolderHasManySpellings) {
  Expect(true, "/scratch/run7/step_200.pt", "/scratch/run7/latest_checkpointed_iteration.txt");
  Expect(true, "/scratch/run7/", "/scratch/run7");
  Expect(true, "/scratch//run7/./last.pt", "/scratch/run7/last.pt");
  Expect(true, "./out/latest", "/home/ada/run7/out/global_step200/mp_rank_00_model_states.pt");
  Expect(true, "../out/latest", "/home/ada/out/global_step200/mp_rank_00/x.pt");
  Expect(true, "/home/ada/job/../run7/last.ckpt", "/home/ada/run7/epoch=3-step=400.ckpt");
  Expect(true, "/scratch/run7", "/mnt/lustre/scratch/run7/checkpoint-400");  // a mount in front
  Expect(true, "...ory/run7/last.pt", "/a/long/memory/run7/step_1.pt");
}

TEST(CheckpointPlace, APathWithoutAFolderSaysNothing) {
  Expect(true, "last.pt", "/scratch/run7/step_200.pt");
  Expect(true, "", "/scratch/run7/step_200.pt");
  Expect(true, "/", "/scratch");
}

TEST(CheckpointPlace, OthersAreOthers) {
  Expect(false, "/scratch/run8/latest_checkpointed_iteration.txt", "/scratch/run7/step_200.pt");
  Expect(false, "/scratch/run8/ckpt/last.pt", "/scratch/run7/ckpt/last.pt");
  Expect(false, "/scratch/run7/ckpt/last.pt", "/scratch/run7/last.pt");
  Expect(false, "out/latest", "/scratch/run7/ckpt/global_step200/x.pt");
  Expect(false, "/scratch/run77", "/scratch/run7");
  Expect(false, "/scratch", "/scratch/run7/step_200.pt");
}

TEST(CheckpointPlace, IsBounded) {
  const std::string deep(1 << 20, '/');
  Expect(true, deep, deep);
  std::string steps;
  for (int i = 0; i < 100'000; ++i) steps += "/x";
  MayBeOneFolder(steps, steps + "/../../y");
  MayBeOneFolder("../../..", "\xff/\0/x");
}

}  // namespace
}  // namespace rankscope::features
