// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/generator/named.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <utility>

#include "tests/generator/faults.h"
#include "tests/generator/text.h"

namespace rankscope::generator {
namespace {

constexpr double kGibi = 1073741824.0;

std::vector<int> Locals(const World& world) {
  std::vector<int> ranks;
  for (int i = 0; i < world.plan.locals(); ++i) ranks.push_back(world.plan.first_local() + i);
  return ranks;
}

// Under Slurm, seen from its first node, without saves and evaluations.
void Base(Plan& plan, int ranks, double minutes, double step) {
  Resize(plan, ranks);
  plan.slurm = plan.controller_events = plan.file_output = true;
  plan.wrapper = false;
  plan.job_id = "8841";
  plan.gpu = {"NVIDIA H100 80GB HBM3", 79.2 * kGibi, 1980e6, 2619e6, 700, 132, true};
  plan.minutes = minutes;
  plan.step_seconds = step;
  plan.noise = 0.01;
  plan.hiccup_share = 0.003;
  plan.comm_share = ranks > 1 ? 0.15 : 0;
  plan.import_seconds = 8;
  plan.load_seconds = 12;
  plan.compile_seconds = 2;
  plan.save_every = plan.eval_every = 0;
  plan.log_every = 1;
  plan.fp16 = plan.graphs = plan.all_ranks_print = false;
  plan.dialect = "hf";
  plan.work = Work::kTraining;
  plan.time_limit = 86400;
  const double training = minutes * 60 - 30;
  plan.max_steps = static_cast<int>(0.75 * training / step);
  plan.loss_tau = 0.2 * training / step;
}

void Crash(World& world, Phase phase, double at, std::vector<int> ranks, double onset,
           std::function<void(World&, double, int)> speak, int wait_status = 256) {
  world.Blame(ranks, onset);
  Interruption crash;
  crash.phase = phase;
  crash.at = at;
  crash.ranks = std::move(ranks);
  crash.crash = true;
  crash.wait_status = wait_status;
  crash.exit_tells = wait_status < 128;
  crash.speak = std::move(speak);
  world.interruptions.push_back(std::move(crash));
  world.decided_by = {{Witness::kFault}};
}

void ShapeA1(Plan& plan) {
  Base(plan, 16, 5, 1);
}
void ExampleA1(World& world, Random&) {
  world.truth.sub = "bad_config";
  Crash(world, Phase::kLoad, 0.6, Locals(world), 20, [](World& of, double t, int rank) {
    of.Traceback(
        rank, t,
        {Text("\"/home/user/%s\", line 96, in <module>|model = get_peft_model(model, lora)",
              of.plan.script.c_str()),
         "\"/usr/lib/python3/dist-packages/peft/tuners/tuners_utils.py\", line 431, in "
         "inject_adapter|raise ValueError("},
        "ValueError: Target modules {'query_key_value'} not found in the base model. Please "
        "check the target modules and try again.");
  });
}

void ShapeA2(Plan& plan) {
  Base(plan, 8, 5, 1);
}
void ExampleA2(World& world, Random&) {
  world.truth.sub = "sigkill";
  world.truth.accepted_subs = {"host_oom"};
  Crash(
      world, Phase::kImport, 0.8, {1, 4}, 8,
      [](World& of, double t, int rank) { of.Signal(t, rank, 9, 0x80, {}, "", 0, ""); }, 9);
}

void ExampleB1(World& world, Random&) {
  world.truth.sub = "oversize";
  Crash(
      world, Phase::kCompile, 0.9, Locals(world), world.TrainBegin() * 0.97,
      [](World& of, double t, int rank) {
        of.Happen(t, Source::kCuda, EventType::kAllocationFailed, rank, {{"call", "cudaMalloc"}},
                  {{"bytes", static_cast<int64_t>(91.6 * kGibi)}, {"result", 2}});
        of.Traceback(
            rank, t,
            {Text("\"/home/user/%s\", line 61, in train|loss.backward()", of.plan.script.c_str())},
            Text("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 91.60 "
                 "GiB. GPU %d has a total capacity of 79.20 GiB of which 61.12 GiB is "
                 "free. Including non-PyTorch memory, this process has 18.06 GiB memory "
                 "in use. Of the allocated memory 17.30 GiB is allocated by PyTorch, and "
                 "210.00 MiB is reserved by PyTorch but unallocated.",
                 rank % of.plan.per_node));
      });
}

void ShapeOneNode(Plan& plan) {
  Base(plan, 8, 12, 1);
}
void ExampleB2(World& world, Random&) {
  const double onset = 300;
  world.truth.sub = "ecc";
  world.truth.accepted_subs = {"xid"};
  Crash(world, Phase::kTrain, onset + 1, {3}, onset, [](World& of, double t, int rank) {
    of.Traceback(
        rank, t,
        {Text("\"/home/user/%s\", line 61, in train|loss.backward()", of.plan.script.c_str())},
        "RuntimeError: CUDA error: uncorrectable ECC error encountered");
  });
  world.on_gpu.push_back([](GpuSecond& gpu) {
    if (gpu.rank == 3 && gpu.t >= 300) gpu.ecc_uncorrected = 2;
  });
}
// Three rows were remapped long ago, and the run is healthy.
void ExampleLatent(World& world, Random&) {
  world.on_gpu.push_back([](GpuSecond& gpu) {
    if (gpu.rank == 3) gpu.remaps_uncorrectable = 3;
  });
}

void ShapeOneGpu(Plan& plan) {
  Base(plan, 1, 14, 0.8);
}
void ExampleB3(World& world, Random&) {
  world.Blame({0}, 240);
  world.truth.sub = "thermal";
  world.Reserve(240, 600);
  const auto ill = [](double t) { return t > 240; };
  world.on_gpu.push_back([ill](GpuSecond& gpu) {
    if (!ill(gpu.t) || gpu.clock < 4e8) return;
    gpu.throttle |= 0x48;
    gpu.clock *= 0.48;
    gpu.temperature = 89;
    gpu.memory_temperature = 97;
  });
  world.on_step.push_back([ill](RankStep& step) {
    if (ill(step.t)) step.compute *= 2;
  });
  world.decided_by = {{Witness::kGpu}};
}

void ShapeC1(Plan& plan) {
  Base(plan, 16, 14, 1);
  plan.observed_node = 1;
  plan.rendezvous_seconds = 600;
}
void ExampleC1(World& world, Random&) {
  const double onset = 10;
  world.truth.sub = "syn_timeout";
  Crash(world, Phase::kRendezvous, 0.98, Locals(world), onset, [](World& of, double t, int rank) {
    of.Traceback(rank, t,
                 {Text("\"/home/user/%s\", line 40, in main|dist.init_process_group(\"nccl\")",
                       of.plan.script.c_str())},
                 "torch.distributed.DistNetworkError: The client socket has timed out after "
                 "600000ms while trying to connect to (" +
                     of.plan.NodeName(0) + ", 29500).");
  });
  world.interruptions.back().all_wait = true;
  world.on_launch.push_back([](World& of, int, double) {
    for (int i = 0; i < of.plan.locals(); ++i)
      for (int k = 1; k < 10; ++k)
        of.Happen(10 + 60 * k, Source::kNetwork, EventType::kConnect, of.plan.first_local() + i,
                  {{"peer", "10.1.0.1:29500"}, {"host", "10.1.0.1"}, {"outcome", "no_answer"}},
                  {{"port", 29500}, {"errno", 110}, {"attempts", 6}, {"milliseconds", 60000}});
  });
}

void ShapeC2(Plan& plan) {
  Base(plan, 16, 20, 1);
  plan.watchdog = false;
  plan.max_steps = 1 << 24;
  plan.spin_sm = 0.06;  // "near zero": eight channels
}
void ExampleC2(World& world, Random&) {
  world.Blame({3}, 480);
  world.truth.sub = "lost_peer";
  world.truth.accepted_subs = {"silent", "absent_rank", "dataloader"};
  Interruption hang;
  hang.at = 480;
  hang.ranks = {3};
  hang.doing = Doing::kFutex;
  hang.python_frame = "_try_get_data (dataloader.py:1275);get (queues.py:113)";
  hang.speak = [](World& of, double t, int rank) {
    of.Say(rank, t, "RuntimeError: DataLoader worker (pid 41907) is killed by signal: Killed. ",
           true);
  };
  world.interruptions.push_back(hang);
  world.ending_fixed = true;
  world.decided_by = {{Witness::kCollectives}, {Witness::kGpu, Witness::kText}};
}

void ExampleC3(World& world, Random&) {
  world.Blame({0}, 3);
  world.truth.sub = "never_attached";
  world.truth.accepted_subs = {"silent"};
  world.plan.import_seconds = 1e9;
  Interruption hang;
  hang.phase = Phase::kImport;
  hang.at = 8e-9;
  hang.ranks = {0};
  hang.all_wait = true;
  world.interruptions.push_back(hang);
  world.ending_fixed = true;
  world.decided_by = {{Witness::kGpu, Witness::kWaits}};
}

void ExampleD1(World& world, Random&) {
  world.Blame({}, world.TrainBegin());
  world.truth.sub = "starved";
  world.plan.max_steps = 110;
  world.on_step.push_back([](RankStep& step) { step.data += 5.5; });
  world.decided_by = {{Witness::kGpu, Witness::kCalls}};
}

void ShapeInterconnect(Plan& plan) {
  Base(plan, 16, 20, 0.6);
  plan.spin_sm = 0.1;
  plan.max_steps = 160;
}
void ExampleInterconnect(World& world, Random&) {
  world.Blame({}, world.TrainBegin());
  world.truth.sub = "interconnect";
  world.extra_environment.push_back("NCCL_IB_DISABLE=1");
  world.on_comm.push_back([](int, double, double& seconds) { seconds += 5.4; });
  world.decided_by = {{Witness::kUnits}, {Witness::kCalls, Witness::kCollectives}};
}
void ShapeSaves(Plan& plan) {
  Base(plan, 8, 14, 1);
  plan.save_every = 1;
  plan.save_seconds = 4;
  plan.checkpoint_bytes = 3e9;
  plan.sharded = plan.quiet_save = false;
  plan.max_steps = 130;
}
void ExampleSaves(World& world, Random&) {
  world.Blame({}, world.TrainBegin());
  world.truth.sub = "save_storm";
  world.decided_by = {{Witness::kSaves}};
}

void ShapeD3(Plan& plan) {
  Base(plan, 8, 15, 0.5);
  plan.comm_share = 0.02;
  plan.data_share = 0.01;
  plan.sm = 0.58;
  plan.spin_sm = 0.075;
  plan.max_steps = 260;
}
// A straggler's SM activity of 0.55 beside 0.16 of its peers.
void ExampleD3(World& world, Random&) {
  world.Blame({5}, world.TrainBegin());
  world.truth.sub = "card";
  world.truth.accepted_subs = {"host", "host_gaps"};
  world.on_step.push_back([](RankStep& step) {
    if (step.rank == 5) step.compute *= 5.6;
  });
  world.decided_by = {{Witness::kUnits}, {Witness::kCalls}};
}

void ExampleE1(World& world, Random& random) {
  world.Blame({}, 200);
  world.truth.sub = "rose";
  world.truth.accepted_subs = {"plateau", "exploded"};
  world.plan.loss_first = 9;
  const auto noise = std::make_shared<Random>(random.Fork(9));
  world.on_numbers.push_back([noise](Numbers& numbers) {
    if (numbers.t < 200) return;
    const double since = numbers.t - 200;
    numbers.loss += (11.9 - numbers.loss) * (1 - std::exp(-since / 30));
    numbers.loss += 0.02 * noise->Normal();
    numbers.grad_norm = std::max(1e-6, 3 * std::exp(-since / 40));
  });
  world.decided_by = {{Witness::kRecords}};
}

void ShapeE2(Plan& plan) {
  Base(plan, 8, 10, 1);
  plan.resumes = true;
  plan.checkpoint_bytes = 4e9;
}
void ExampleE2(World& world, Random&) {
  world.Blame({}, 20);
  world.truth.sub = "not_loaded";
  world.truth.accepted_subs = {"restarted"};
  world.extra_environment.push_back("SLURM_JOB_DEPENDENCY=afterany:8840");
  world.loads_checkpoint = false;
  world.on_load.push_back([](World& of, double t) {
    of.Happen(t + 0.5, Source::kIo, EventType::kFileMissing, 0,
              {{"name", "trainer_state.json"},
               {"directory", "out"},
               {"call", "openat"},
               {"class", "checkpoint"},
               {"filesystem", "nfs"}},
              {{"errno", 2}, {"times", 1}});
  });
  world.decided_by = {{Witness::kFault, Witness::kText}};
}

void ShapeE3(Plan& plan) {
  Base(plan, 8, 5, 2);
  plan.max_steps = 1;
}
void ExampleE3(World& world, Random&) {
  world.Blame({}, world.TrainBegin());
  world.truth.sub = "step_budget";
  world.extra_arguments.push_back("--max_steps=1");
  world.decided_by = {{Witness::kText}};
}

void ShapeNodes(Plan& plan) {
  Base(plan, 16, 15, 1);
  plan.max_steps = 1 << 24;
}
template <char kLetter, char kDigit>
void ExampleOf(World& world, Random& random) {
  const char code[] = {kLetter, kDigit, '\0'};
  FindFault(code)->apply(world, random);
}
void ExampleF2(World& world, Random&) {
  world.Blame({}, 300);
  world.truth.sub = "requeue";
  world.truth.accepted = {"G1"};
  world.stop_at = 300;
  world.stop_how = Ending::kRequeued;
  world.attempts = 2;
  world.requeued = true;
  world.between_attempts = 60;
  world.plan.minutes = 15;
  world.plan.max_steps = 350;
  world.plan.save_every = 100;
  world.plan.save_seconds = 3;
  world.plan.checkpoint_bytes = 3e9;
  world.decided_by = {{Witness::kEnd}};
}
void Healthy(World&, Random&) {}

// A 70B model, TP 8, DP 32: 4.1 s of computing and 2.9 s of all-reduce, then 7.1 s.
void ShapeProtocol(Plan& plan) {
  Base(plan, 256, 30, 7.0);  // a port is told every 20 minutes
  plan.tensor = 8;
  plan.comm_share = 2.9 / 7.0;
  plan.data_share = 0;
  plan.noise = 0.004;
  plan.comm_noise = 0.004;
  plan.observed_node = 9;
  plan.node_prefix = "node-";
  plan.dialect = "torchtitan";
  plan.all_ranks_print = true;
  plan.inspector = true;
  plan.bus_bandwidth = 42.3e9;
  plan.collectives_per_step = 80;
  plan.max_steps = 1 << 24;
  plan.loss_first = 2.2;
  plan.loss_floor = 2.1;
}
void Protocol(World& world, Random&) {
  const double onset = 520;
  world.Blame({}, onset);
  world.truth.sub = "path";
  world.truth.accepted = {"D2"};
  world.truth.accepted_subs = {"interconnect", "ib"};
  world.on_comm.push_back([](int, double t, double& seconds) {
    if (t > 520) seconds += 4.2;
  });
  // The switch counts the CRC errors; the port on the node's side counts what they cost.
  world.on_host.push_back([](HostSecond& host) {
    if (host.t < 520) return;
    host.port_symbols = 4;
    host.port_out_of_sequence = 150;
    host.port_timeouts = 2;
  });
  world.decided_by = {{Witness::kUnits, Witness::kCollectives}};
}

constexpr NamedRow kNamedJobs[] = {
    {"brief_A1", "A1", ShapeA1, ExampleA1},
    {"brief_A2", "A2", ShapeA2, ExampleA2},
    {"brief_B1", "B1", ShapeA1, ExampleB1},
    {"brief_B2", "B2", ShapeOneNode, ExampleB2},
    {"brief_B2_latent", "G1", ShapeOneNode, ExampleLatent},
    {"brief_B3", "B3", ShapeOneGpu, ExampleB3},
    {"brief_C1", "C1", ShapeC1, ExampleC1},
    {"brief_C2", "C2", ShapeC2, ExampleC2},
    {"brief_C3", "C3", ShapeOneGpu, ExampleC3},
    {"brief_D1", "D1", ShapeOneGpu, ExampleD1},
    {"brief_D2_interconnect", "D2", ShapeInterconnect, ExampleInterconnect},
    {"brief_D2_saves", "D2", ShapeSaves, ExampleSaves},
    {"brief_D3", "D3", ShapeD3, ExampleD3},
    {"brief_E1", "E1", ShapeOneNode, ExampleE1},
    {"brief_E2", "E2", ShapeE2, ExampleE2},
    {"brief_E3", "E3", ShapeE3, ExampleE3},
    {"brief_F1", "F1", ShapeNodes, ExampleOf<'F', '1'>},
    {"brief_F2", "F2", ShapeNodes, ExampleF2},
    {"brief_F3", "F3", ShapeNodes, ExampleOf<'F', '3'>},
    {"brief_G1", "G1", ShapeOneNode, Healthy},
    {"protocol", "X5", ShapeProtocol, Protocol},
};

}  // namespace

std::vector<std::string> NamedJobs() {
  std::vector<std::string> names;
  for (const NamedRow& row : kNamedJobs) names.emplace_back(row.name);
  return names;
}

const NamedRow* FindNamed(std::string_view name) {
  for (const NamedRow& row : kNamedJobs)
    if (row.name == name) return &row;
  return nullptr;
}

}  // namespace rankscope::generator
