// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/generator/faults.h"

#include <algorithm>
#include <cmath>

namespace rankscope::generator {

#define FAULT(code, require) void Apply##code(World& world, Random& random);
#include "tests/generator/faults.inc"
#undef FAULT

namespace {

constexpr FaultRow kFaults[] = {
#define FAULT(code, require) {#code, require, Apply##code},
#include "tests/generator/faults.inc"
#undef FAULT
};

}  // namespace

void Resize(Plan& plan, int ranks) {
  plan.ranks = ranks;
  plan.per_node = std::min(8, ranks);
  plan.nodes = ranks / plan.per_node;
  plan.observed_node = 0;
  plan.tensor = plan.pipeline = plan.expert = 1;
  plan.comm_share = ranks > 1 ? std::max(plan.comm_share, 0.08) : 0;
  if (ranks > 1) {
    plan.collectives_per_step = std::max(plan.collectives_per_step, 4);
    plan.rendezvous_seconds = std::max(plan.rendezvous_seconds, 1.5);
  }
}

std::span<const FaultRow> Faults() {
  return kFaults;
}

const FaultRow* FindFault(std::string_view code) {
  for (const FaultRow& row : kFaults)
    if (row.code == code) return &row;
  return nullptr;
}

void NeedNothing(Options&, Plan&, Random&) {}

void NeedPeers(Options& options, Plan& plan, Random& random) {
  if (plan.ranks > 1) return;
  Resize(plan, options.ranks == 0 ? random.Pick(std::vector<int>{2, 4, 8, 8}) : 2);
}

void NeedSlurm(Options&, Plan& plan, Random& random) {
  if (plan.slurm) return;
  plan.slurm = true;
  plan.wrapper = false;
  plan.job_id = std::to_string(random.Int(10000, 9'999'999));
}

void NeedNodes(Options& options, Plan& plan, Random& random) {
  if (plan.nodes == 1 && (options.ranks == 0 || options.ranks > 8)) {
    Resize(plan, random.Pick(std::vector<int>{16, 32, 64}));
    plan.observed_node = random.Chance(0.4) ? random.Int(1, plan.nodes - 1) : 0;
  } else if (plan.nodes == 1) {
    // So many as were asked for fit on one node: they are spread over two, or have one each.
    Resize(plan, std::max(2, plan.ranks));
    plan.nodes = plan.ranks % 2 == 0 ? 2 : plan.ranks;
    plan.per_node = plan.ranks / plan.nodes;
  }
  NeedSlurm(options, plan, random);
}

void NeedTraining(Options& options, Plan& plan, Random& random) {
  (void)options;
  (void)random;
  plan.work = Work::kTraining;
}

void EndSomehow(World& world, Random& random, double onset) {
  const int how = random.Weighted({0.45, 0.3, 0.25});
  if (how == 0) return;
  const double left = world.horizon() - onset;
  world.stop_at = onset + left * random.Between(0.75, 0.9);
  world.stop_how = Ending::kCancelled;
  if (how != 2 || !world.plan.slurm) return;
  world.stop_how = Ending::kTimeLimit;
  world.plan.time_limit = std::max(60.0, std::floor(world.stop_at / 60) * 60);
  world.stop_at = world.plan.time_limit + random.Between(1, 20);
}

void MakeHealthy(Plan& plan, Random& random) {
  switch (random.Weighted({0.7, 0.08, 0.06, 0.06, 0.05, 0.05})) {
    case 1:
      plan.work = Work::kReinforcement;
      plan.dialect = plan.ranks == 1 && random.Chance(0.5) ? "sb3" : "trl";
      plan.step_seconds = std::max(plan.step_seconds, 1.5);
      plan.all_ranks_print = false;
      break;
    case 2:
      plan.work = Work::kAdversarial;
      plan.dialect = random.Chance(0.5) ? "plain" : "lightning";
      break;
    case 3:
      // A long save: asynchronous or not, it takes its minutes.
      plan.save_seconds = std::min(random.In({60, 240}), plan.minutes * 6);
      plan.save_every = std::max(20, static_cast<int>(plan.minutes * 20 / plan.step_seconds));
      plan.checkpoint_bytes = plan.save_seconds * 1e9;
      break;
    case 4:
      if (plan.ranks > 8) break;
      plan.work = Work::kNotebook;
      plan.dialect = "plain";
      break;
    case 5:
      plan.work = Work::kEvaluation;
      plan.dialect = "plain";
      plan.resumes = false;
      break;
    default:
      break;
  }
  if (random.Chance(0.08) && plan.work == Work::kTraining) {
    // A short run, in earnest.
    plan.max_steps = std::max(60, plan.max_steps / 4);
  }
}

}  // namespace rankscope::generator
