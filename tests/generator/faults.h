// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The mechanisms that make a job ill, one file each in faults/. A mechanism changes the world
// before it runs and writes the truth. Single thread.
#pragma once

#include <span>
#include <string_view>

#include "tests/generator/world.h"

namespace rankscope::generator {

struct FaultRow {
  std::string_view code;
  // Before the plan is final: what the mechanism needs of the job (several ranks, Slurm, ...).
  void (*require)(Options& options, Plan& plan, Random& random);
  void (*apply)(World& world, Random& random);
};

std::span<const FaultRow> Faults();
const FaultRow* FindFault(std::string_view code);

// The healthy variety: notebooks, evaluations, reinforcement learning and so on.
void MakeHealthy(Plan& plan, Random& random);

// Another number of ranks, eight on a node.
void Resize(Plan& plan, int ranks);

// For requirements.
void NeedNothing(Options& options, Plan& plan, Random& random);
void NeedPeers(Options& options, Plan& plan, Random& random);  // several ranks
void NeedNodes(Options& options, Plan& plan, Random& random);  // several nodes
void NeedSlurm(Options& options, Plan& plan, Random& random);
void NeedTraining(Options& options, Plan& plan, Random& random);  // a loss that falls

// For mechanisms.
// The end of a job that runs on although it is ill: as planned, cancelled, or its time limit.
void EndSomehow(World& world, Random& random, double onset);

}  // namespace rankscope::generator
