// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/windows/training_launcher.h"

#include <gtest/gtest.h>

namespace rankscope::windows {
namespace {

TEST(TrainingLauncher, StartsRanksOfATraining) {
  EXPECT_TRUE(StartsTraining({"torchrun", "--nproc_per_node", "2", "train.py"}));
  EXPECT_TRUE(StartsTraining({"/usr/bin/python3", "-m", "torch.distributed.run", "train.py"}));
  EXPECT_TRUE(StartsTraining({"accelerate", "launch", "train.py"}));
}

TEST(TrainingLauncher, WhatStartsProgramsOfEveryKindDoesNot) {
  EXPECT_FALSE(StartsTraining({}));
  EXPECT_FALSE(StartsTraining({"srun", "hostname"}));
  EXPECT_FALSE(StartsTraining({"mpirun", "-n", "2", "./solver"}));
  EXPECT_FALSE(StartsTraining({"python", "train.py", "--launcher", "torchrun"}));
}

}  // namespace
}  // namespace rankscope::windows
