// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What is decided about a simulated job before it begins: its size, its program, its machine, and
// the truth that is written beside its recording. Single thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/generator/random.h"

namespace rankscope::generator {

struct Options {
  uint64_t seed = 1;
  std::string family = "any";        // a code, "healthy" or "any"
  std::string second;                // a second fault, code
  int ranks = 0;                     // 0 = drawn
  double minutes = 0;                // 0 = drawn
  std::vector<std::string> without;  // stores that are missing
  bool late = false;                 // the daemon begins in the middle of the job
  bool outage = false;               // the daemon is restarted under the job
  bool plain = false;                // no further disturbances: skew, lost bytes, late ticks
  double widen = 1;
};

enum class Work : uint8_t { kTraining, kReinforcement, kAdversarial, kEvaluation, kNotebook };

struct GpuModel {
  const char* name;
  double memory_bytes;
  double clock_hertz;
  double memory_clock_hertz;
  double power_limit;
  double multiprocessors;
  bool gpm;  // has counters of its units without a profiler
};

struct Plan {
  uint64_t seed = 0;
  std::string job_id;
  bool slurm = true;
  bool wrapper = false;            // under `rankscope run`
  bool controller_events = false;  // the instance beside slurmctld answers
  bool file_output = true;         // stdout leads to a file, which can be read again
  int ranks = 1, nodes = 1, per_node = 1;
  int observed_node = 0;
  int tensor = 1, pipeline = 1, expert = 1;
  double minutes = 10;
  double time_limit = 0;  // seconds of the job
  int restarts = 0;       // that Slurm counted before

  Work work = Work::kTraining;
  std::string dialect;
  bool all_ranks_print = false;
  bool rank_prefix = true;  // torch's hook for exceptions writes "[rankN]: " before each line
  GpuModel gpu{};

  double import_seconds = 0, rendezvous_seconds = 0, load_seconds = 0, compile_seconds = 0;
  double step_seconds = 1;
  double noise = 0.02;       // of a step, relative
  double hiccup_share = 0;   // of the steps
  Range hiccup{1.3, 3};      // factor of such a step
  double comm_share = 0.1;   // of a step
  double comm_noise = 0.1;   // of it, relative
  double data_share = 0.02;  // of a step, the GPU waits for input
  double launches_per_step = 1000;
  // Of the computing: how long the program needs to launch it. Then it waits: in a synchronisation,
  // or, where it makes none, in launches, of which the driver takes only so many ahead.
  double host_share = 0.4;
  bool paced_by_launches = false;
  bool graphs = false;
  int collectives_per_step = 10;
  double bus_bandwidth = 0;   // of its large collectives, bytes a second
  double bytes_per_step = 0;  // of the collectives of a rank
  int warmup_steps = 5;
  double warmup_factor = 2;
  int max_steps = 1000;
  int log_every = 10;
  int save_every = 0;  // 0 = never
  double save_seconds = 0;
  double checkpoint_bytes = 0;
  bool sharded = false;  // every rank writes its part
  int eval_every = 0;
  double eval_seconds = 0;
  bool quiet_save = false;  // prints nothing about it
  bool resumes = false;
  int first_step = 0;

  double sm = 0.7, tensor_activity = 0.4, dram = 0.35;  // while it computes
  double spin_sm = 0.15;                                // while it waits inside a collective
  double memory_share = 0.6;
  double temperature = 62, idle_temperature = 35;
  double power_share = 0.75;

  double loss_first = 8, loss_floor = 2, loss_tau = 300, loss_noise = 0.01;
  double learning_rate = 3e-4;
  bool fp16 = false;
  double nccl_timeout = 600;  // seconds
  bool watchdog = true;
  bool flight_recorder = false;
  bool inspector = false;
  double monitor_interval = 0.1;  // of the launcher

  int64_t boot_ns = 0;  // monotonic time at second 0
  int64_t wall_ns = 0;  // wall time at second 0
  double skew = 0;      // seconds by which other nodes' clocks are ahead
  int uid = 1000;
  std::string user, node_prefix, work_dir, script;

  int first_local() const { return observed_node * per_node; }
  int locals() const { return per_node; }
  bool IsLocal(int rank) const { return rank / per_node == observed_node; }
  int StageOf(int rank) const { return rank / (ranks / pipeline); }
  std::string NodeOf(int rank) const { return NodeName(rank / per_node); }
  std::string NodeName(int node) const;
  std::string NodeList() const;
};

struct Truth {
  uint64_t seed = 0;
  std::string family;                 // code
  std::vector<std::string> accepted;  // codes that are right as well
  std::string sub;
  std::vector<std::string> accepted_subs;
  std::string second;
  std::vector<int> ranks;  // culprits
  std::vector<int> gpus;
  std::string node;  // the culprit's
  double onset = 0;  // seconds after the recording's time 0
  std::string disposition;
  bool decidable = true;
  bool healthy = false;
  std::vector<std::string> stores;  // that are there
  std::string observed_node;
  bool culprit_seen = true;  // its node is the one that is observed
  std::string dialect;
  int world = 1, nodes = 1;
  double seconds = 0;
};

// The stores that --without may name.
const std::vector<std::string>& StoreNames();

Plan DrawPlan(const Options& options, Random random);
std::string TruthJson(const Truth& truth);

}  // namespace rankscope::generator
