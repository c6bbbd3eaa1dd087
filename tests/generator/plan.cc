// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/generator/plan.h"

#include <algorithm>
#include <cmath>

#include "tests/generator/dialects.h"
#include "tests/generator/text.h"

namespace rankscope::generator {
namespace {

constexpr GpuModel kModels[] = {
    {"NVIDIA H100 80GB HBM3", 85899345920.0, 1980e6, 2619e6, 700, 132, true},
    {"NVIDIA H200", 150754820096.0, 1980e6, 3201e6, 700, 132, true},
    {"NVIDIA A100-SXM4-80GB", 85899345920.0, 1410e6, 1593e6, 400, 108, false},
    {"NVIDIA B200", 191503532032.0, 1965e6, 3996e6, 1000, 148, true},
    {"NVIDIA L40S", 48305799168.0, 2520e6, 9001e6, 350, 142, false},
};

void DrawSize(const Options& options, Random& random, Plan& plan) {
  // Most jobs are small: arXiv 2410.21680, figure 6.
  static const std::vector<int> kSizes = {1, 1, 2, 2, 4, 4, 8, 8, 8, 8, 16, 32, 64, 128, 256, 512};
  plan.ranks = options.ranks > 0 ? options.ranks : random.Pick(kSizes);
  plan.per_node = std::min(8, plan.ranks);
  while (plan.ranks % plan.per_node != 0) --plan.per_node;
  plan.nodes = plan.ranks / plan.per_node;
  plan.observed_node = plan.nodes > 1 && random.Chance(0.4) ? random.Int(1, plan.nodes - 1) : 0;
  if (plan.ranks >= 8 && random.Chance(0.4)) plan.tensor = random.Chance(0.5) ? 2 : 4;
  if (plan.ranks >= 16 && random.Chance(0.4)) plan.pipeline = random.Chance(0.5) ? 2 : 4;
  if (plan.ranks >= 8 && random.Chance(0.15)) plan.expert = plan.ranks >= 16 ? 8 : 4;
  const double drawn = random.Chance(0.7) ? random.In({4, 20}) : random.In({15, 60});
  plan.minutes = options.minutes > 0 ? options.minutes : std::clamp(drawn, 4.0, 60.0);
}

void DrawPlace(Random& random, Plan& plan) {
  plan.slurm = plan.nodes > 1 || random.Chance(0.7);
  plan.wrapper = !plan.slurm;
  plan.controller_events = random.Chance(0.6);
  plan.file_output = random.Chance(0.75);
  plan.job_id = plan.slurm ? std::to_string(random.Int(10000, 9'999'999))
                           : Text("run-%d-%08x", 1000, static_cast<unsigned>(random.Next()));
  plan.uid = plan.wrapper ? 1000 : random.Int(1000, 90000);
  plan.user = random.Pick({"mkeller", "ayumi", "jsantos", "lwei", "priya", "tomasz"});
  plan.node_prefix = random.Pick({"n", "gpu", "node-", "hgx", "c"});
  plan.script = random.Pick({"train.py", "pretrain.py", "finetune.py", "main.py"});
  plan.work_dir = "/home/" + plan.user + "/" + random.Pick({"exp12", "llm", "vision", "runs/a"});
  plan.gpu = kModels[random.Weighted({5, 1, 4, 1, plan.nodes == 1 ? 2.0 : 0.0})];
  plan.boot_ns = static_cast<int64_t>(random.Between(1e5, 5e6) * 1e9);
  // 2026-01-05 to 2026-09-30.
  plan.wall_ns = static_cast<int64_t>((1767571200 + random.Between(0, 268 * 86400.0)) * 1e9);
}

void DrawSteps(Random& random, Plan& plan) {
  plan.step_seconds = plan.ranks >= 64 ? random.In({0.8, 20}) : random.In({0.12, 6});
  plan.noise = random.In({0.005, 0.05});
  plan.hiccup_share = random.In({0.002, 0.02});
  plan.comm_share = plan.ranks == 1 ? 0 : random.Share(0.05, 0.3);
  plan.data_share = random.Share(0.0, 0.06);
  plan.launches_per_step = random.In({400, 8000}) * std::max(1.0, plan.step_seconds / 2);
  plan.graphs = random.Chance(0.1);
  plan.host_share = random.Share(0.1, 0.7);
  if (plan.graphs) {  // a step is a few graphs, which are launched at once
    plan.launches_per_step = random.In({1, 60});
    plan.host_share = 0.05;
  }
  plan.paced_by_launches = random.Chance(0.3);
  plan.collectives_per_step = plan.ranks == 1 ? 0 : random.InInt(2, 200);
  plan.bytes_per_step = random.In({2e8, 3e10});
  // InfiniBand between nodes, NVLink within one: nccl-tests' busbw.
  plan.bus_bandwidth = plan.nodes > 1 ? random.In({2e10, 3e11}) : random.In({1e11, 4.5e11});
  plan.warmup_steps = random.InInt(2, 12);
  plan.warmup_factor = random.In({1.2, 4});
  plan.log_every = plan.step_seconds > 4 ? 1 : random.Pick(std::vector<int>{1, 1, 5, 10, 10, 20});
  while (plan.log_every > 1 && plan.log_every * plan.step_seconds > 30) plan.log_every /= 2;

  plan.import_seconds = random.In({4, 25});
  plan.rendezvous_seconds = plan.ranks == 1 ? 0.2 : random.In({1, 15});
  plan.load_seconds = random.In({3, 60});
  plan.compile_seconds = random.Chance(0.4) ? random.In({10, 90}) : random.In({0.5, 5});
  if (plan.minutes > 20 && random.Chance(0.1)) plan.compile_seconds = random.In({120, 320});

  const double seconds = plan.minutes * 60;
  if (random.Chance(0.75)) {
    plan.save_seconds = std::min(random.In({2, 60}), seconds / 20);
    const double every = std::max({random.In({60, 1200}), 12 * plan.save_seconds});
    plan.save_every = std::max(20, static_cast<int>(every / plan.step_seconds));
    plan.sharded = plan.ranks > 1 && random.Chance(0.4);
    plan.checkpoint_bytes = plan.save_seconds * random.In({2e8, 2e9});
    plan.quiet_save = random.Chance(0.2);
  }
  if (random.Chance(0.4)) {
    plan.eval_seconds = std::min(random.In({5, 60}), seconds / 12);
    const double every = std::max({random.In({90, 900}), 8 * plan.eval_seconds});
    plan.eval_every = std::max(25, static_cast<int>(every / plan.step_seconds));
  }
  plan.monitor_interval = random.Chance(0.7) ? 0.1 : 5;
}

void DrawGpu(Random& random, Plan& plan) {
  plan.sm = random.Share(0.45, 0.95);
  plan.tensor_activity = plan.sm * random.Share(0.2, 0.7);
  plan.dram = random.Share(0.15, 0.6);
  // NCCL keeps a block on as many multiprocessors as it has channels.
  plan.spin_sm = random.In({8, 32}) / plan.gpu.multiprocessors;
  plan.memory_share = random.Share(0.3, 0.92);
  plan.temperature = random.Between(50, 72);
  plan.idle_temperature = random.Between(28, 40);
  plan.power_share = random.Share(0.55, 0.95);
}

void DrawLearning(Random& random, Plan& plan) {
  plan.loss_first = random.In({2.2, 12});
  plan.loss_floor = plan.loss_first * random.Share(0.15, 0.6);
  plan.loss_noise = random.In({0.003, 0.05});
  plan.learning_rate = random.In({1e-5, 1e-3});
  plan.fp16 = random.Chance(0.2);
}

}  // namespace

std::string Plan::NodeName(int node) const {
  return node_prefix + Text("%02d", node + 1);
}

std::string Plan::NodeList() const {
  if (nodes == 1) return NodeName(0);
  return node_prefix + Text("[01-%02d]", nodes);
}

const std::vector<std::string>& StoreNames() {
  static const std::vector<std::string> kNames = {"ebpf",  "nvml", "nccl",
                                                  "slurm", "text", "kernel"};
  return kNames;
}

Plan DrawPlan(const Options& options, Random random) {
  Plan plan;
  plan.seed = options.seed;
  DrawSize(options, random, plan);
  DrawPlace(random, plan);
  DrawSteps(random, plan);
  DrawGpu(random, plan);
  DrawLearning(random, plan);
  plan.dialect = DrawDialect(plan, random);
  plan.all_ranks_print = plan.ranks > 1 && random.Chance(plan.dialect == "torchtitan" ? 0.5 : 0.1);
  static const std::vector<double> kTimeouts = {600, 600, 600, 1800, 120, 300};
  plan.nccl_timeout = random.Pick(kTimeouts);
  plan.watchdog = random.Chance(0.95);
  plan.flight_recorder = plan.ranks > 1 && random.Chance(0.2);
  plan.inspector = plan.ranks > 1 && random.Chance(0.1);
  plan.rank_prefix = plan.ranks > 1 && random.Chance(0.7);
  if (IsBar(plan.dialect)) plan.log_every = 1;
  const double seconds = plan.minutes * 60;
  const double training = seconds - plan.import_seconds - plan.rendezvous_seconds -
                          plan.load_seconds - plan.compile_seconds;
  const double steps = std::max(30.0, training / plan.step_seconds);
  plan.max_steps = static_cast<int>(
      steps * (random.Chance(0.6) ? random.Between(0.6, 0.85) : random.Between(1.5, 40)));
  plan.loss_tau = steps * random.Between(0.1, 0.4);
  plan.time_limit = std::ceil(seconds / 60 * random.In({1.5, 40})) * 60;
  if (!options.plain && plan.nodes > 1)
    plan.skew = random.Chance(0.8) ? random.Between(-0.05, 0.05) : random.Between(-3, 3);
  return plan;
}

}  // namespace rankscope::generator
