// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// A simulated job on a simulated machine. Faults change it before it runs: by hooks into steps,
// numbers and readings, by interruptions, and by its end. Single thread.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "detectors/model/event_types.h"
#include "tests/generator/plan.h"
#include "tests/generator/timeline.h"

namespace rankscope::generator {

// A rank's part of a step, in seconds; a fault makes it longer.
struct RankStep {
  int rank = 0;
  int step = 0;
  double t = 0;
  double data = 0;
  double host = 0;
  double compute = 0;
  double launch = 0;  // of `compute`, the launching calls block
};

struct Numbers {
  int step = 0;
  double t = 0;
  double seconds = 0;  // of the step
  double loss = 0, grad_norm = 1, learning_rate = 0;
  double loss_scale = 65536;
  bool overflow = false;  // the step was skipped
  double reward = 0, reward_std = 0.3, kl = 0.001;
};

struct GpuSecond {
  int rank = 0;  // of the job that holds it
  double t = 0;
  bool answers = true;
  double engine = 0, sm = 0, tensor = 0, dram = 0;
  double memory_used = 0;
  double power = 0, power_limit = 0, temperature = 0, memory_temperature = 0;
  double clock = 0;
  unsigned throttle = 0;
  double throttled_seconds = 0;
  double ecc_corrected = 0, ecc_uncorrected = 0;
  double remaps_pending = 0, remaps_failed = 0, remaps_uncorrectable = 0;
  double nvlink_errors = 0, pcie_replays = 0;
};

struct ProcessSecond {
  int rank = 0;
  double t = 0;
  double resident = 0, threads = 0;
  double shared_memory_free = -1;  // < 0: not sampled
  double checkpoint_free = -1;
  double read_rate = 0;    // bytes a second
  double retransmits = 0;  // in this second
  double runnable = 0;     // seconds without a CPU
  double major_faults = 0;
};

struct HostSecond {
  double t = 0;
  double available = 0;
  double oom_kills = 0;
  double job_memory = 0, job_limit = 0, job_oom_kills = 0;
  double cpu_waiting = 0, memory_waiting = 0, io_waiting = 0;  // in this second
  double rdma_down = 0;
  // What the first port counts in this second.
  double port_timeouts = 0, port_out_of_sequence = 0, port_symbols = 0, port_request_errors = 0;
};

inline constexpr double kKillWait = 30;  // slurm.conf
inline constexpr int kInterrupt = 2, kAbort = 6, kKill = 9, kTerminate = 15;

enum class Phase : uint8_t { kImport, kRendezvous, kLoad, kCompile, kTrain, kSave, kEval };

enum class Ending : uint8_t {
  kRunsOn,
  kCompletes,
  kCancelled,  // scancel by the user, or Ctrl-C under the wrapper
  kTimeLimit,
  kPreempted,
  kRequeued,
  kNodeFailed,
  kWatchdog,  // NCCL's, in the program itself
  kStranger,  // somebody outside kills all of it
};

// What a recording must hold to tell a fault from others: decidable.cc.
enum class Witness : uint8_t {
  kFault,        // something marked as the fault's
  kRecords,      // a dozen training records since the onset
  kText,         // a training record
  kSaves,        // three
  kEnd,          // who ended it
  kGpu,          // readings of a culprit's GPU since the onset, or of any
  kUnits,        // with the activity of its multiprocessors
  kCalls,        // the same of a process: CUDA calls,
  kCollectives,  // NCCL calls,
  kWaits,        // and what its threads wait for
  kCulprit,      // the culprit's node is the observed one
};

class World;

// Something that ends an attempt from within.
struct Interruption {
  Phase phase = Phase::kTrain;
  double at = 0;     // kTrain: seconds; else the share of the phase
  double after = 0;  // not before, for phases that come again
  int attempt = 0;
  std::vector<int> ranks;
  bool crash = false;
  // A hang: what the ranks do until the end; a crash: their wait status.
  Doing doing = Doing::kFutex;
  int wait_status = 256;
  bool exit_tells = false;  // its status is the fault's
  bool all_wait = false;    // a hang of all ranks in `doing`
  std::function<void(World&, double t, int rank)> speak;
  std::string python_frame;  // where the main thread of a stuck rank stands
  bool tells = true;         // what `speak` says tells this fault from others
  bool of_attempt = false;   // kTrain: `at` is seconds after the attempt's first step
};

// A crash of these ranks in training; `at` as above.
inline Interruption CrashOf(double at, std::vector<int> ranks) {
  Interruption crash;
  crash.at = at;
  crash.ranks = std::move(ranks);
  crash.crash = true;
  return crash;
}

class World {
 public:
  World(const Options& options, Plan plan, Random random);

  Plan plan;
  Truth truth;
  Random random;

  // Hooks of faults.
  std::vector<std::function<void(RankStep&)>> on_step;
  std::vector<std::function<void(int step, double t, double& seconds)>> on_comm;
  std::vector<std::function<void(Numbers&)>> on_numbers;
  std::vector<std::function<void(GpuSecond&)>> on_gpu;
  std::vector<std::function<void(ProcessSecond&)>> on_process;
  std::vector<std::function<void(HostSecond&)>> on_host;
  std::vector<std::function<void(World&, int attempt, double t)>> on_launch;  // processes are there
  std::vector<std::function<void(World&, double t)>> on_load;
  std::vector<std::function<void(World&, int step, double t)>> on_save;  // before a save
  std::vector<Interruption> interruptions;
  std::vector<std::string> extra_environment;  // KEY=VALUE
  std::vector<std::string> extra_arguments;
  std::vector<int> watched;                       // ranks of other nodes that are simulated as well
  std::vector<std::pair<double, double>> frozen;  // the node stands still, its daemon as well
  double seconds_per_launch = 6e-6;
  // The fault can be told from others where all witnesses of one of these lists are there; without
  // a list, never.
  std::vector<std::vector<Witness>> decided_by;
  int attempts = 1;
  double between_attempts = 0;   // seconds; 0 = restarted by the launcher
  bool requeued = false;         // by the scheduler, which counts its restarts
  bool loads_checkpoint = true;  // where plan.resumes
  double stop_at = kForever;
  Ending stop_how = Ending::kRunsOn;
  // The end of a hang; drawn where it is kRunsOn and `ending_fixed` is not set.
  Ending hang_end = Ending::kRunsOn;
  double hang_seconds = 0;  // 0 = drawn
  bool ending_fixed = false;

  void Run();

  // For faults and dialects.
  double horizon() const { return plan.minutes * 60; }
  double TrainBegin() const;             // about when the first step begins
  double Onset(double from, double to);  // drawn, as shares of what is left after TrainBegin()
  void Reserve(double onset, double seconds);  // the recording goes on so long after the onset
  int PickRank();                              // a culprit: mostly one of the observed node
  void Blame(std::vector<int> ranks, double onset);
  int64_t Wall(double t) const { return plan.wall_ns + static_cast<int64_t>(t * 1e9); }
  std::string GpuUuid(int rank) const;
  std::string BusId(int rank) const;
  ProcessKey KeyOf(int rank) const;  // of its newest process; {} where it has none here
  ProcessKey launcher() const { return launcher_; }
  int attempt() const { return attempt_; }
  double done_until() const { return t_; }
  int last_step() const { return step_; }
  int64_t collectives() const { return collectives_; }  // that a rank has completed

  void Tell(double t, Source source, decltype(Observation::kind) kind);
  void Say(int rank, double t, std::string text, bool error = false);  // -1: the launcher
  void SayGroup(int rank, double t);  // which group's collective its watchdog has given up
  void SayScheduler(double t, std::string text);  // slurmstepd and srun, in the job's output
  void Kernel(double t, std::string type, std::string text, int rank = -1, int code = 0);
  void Fact(double t, const std::string& field, const std::string& value,
            const std::string& node = {});
  // `lasted`: how long before `t` that began which is told at its end.
  void Happen(double t, Source source, EventType type, int rank, std::vector<KeyValue> str,
              std::vector<IntKeyValue> num, double lasted = 0);
  void Signal(double t, int rank, int signo, int si_code, const ProcessKey& sender,
              const std::string& comm, int uid, const std::string& cgroup);
  void Die(double t, int rank, int wait_status);
  void Traceback(int rank, double t, const std::vector<std::string>& frames,
                 const std::string& exception);

  std::string CgroupOf(const char* leaf) const;
  // Marks what is told from now on.
  void MarkAs(Mark mark) { mark_ = mark; }

  const std::vector<Item>& items() const { return items_; }
  std::vector<Item>& items() { return items_; }
  const std::vector<Life>& lives() const { return lives_; }
  double ended_at() const { return ended_; }
  bool over() const { return over_; }

 private:
  friend class Sampler;

  // startup.cc
  void BeginMachine();
  void BeginAgain();
  void BeginScheduler(double t);
  bool Attempt();
  void Launch();
  ProcessStart StartOf(int rank, ProcessKey key) const;
  bool Spend(Phase phase, Doing doing, double seconds);
  void Launches(double from, double to);
  bool Rendezvous();
  bool Load();

  // training.cc
  bool Train();
  double DrawStep(std::map<int, double>& finish);
  void Record(const std::map<int, double>& finish, double end);
  void Pace(Life& life, double begin, double entered, double end) const;
  Numbers NumbersOf(int step, double t, double seconds);
  bool Save();
  bool Evaluate();

  // ending.cc
  const Interruption* Next(Phase phase, double from, double to) const;
  void Interrupt(const Interruption& what, double t, const std::map<int, double>& finish);
  void Hang(const Interruption& what, double t, const std::map<int, double>& finish);
  void HangEnds(const Interruption& what, double t, double end, Ending how);
  void Watchdog(const Interruption& what, double t);
  void FlightRecords(const Interruption& what, double t);
  void Crash(const Interruption& what, double t, const std::map<int, double>& finish);
  void CleanUp(double t, int first, int wait_status);
  void Summary(double t, int first, int wait_status);
  void Stop(double t, Ending how);
  void StopBy(double t, Ending how);
  void KillAll(double t, int signo, bool escalate, const ProcessKey& sender,
               const std::string& comm, int uid, const std::string& cgroup);
  void Complete();
  void EndScheduler(double t, const std::string& state, const std::string& exit,
                    const std::string& reason, const std::string& by);
  void EndWrapper(double t, int wait_status);
  void Finish(double t);
  void Snapshots(const Interruption& what, double t, double until);

  Life* LifeOf(int rank);
  int32_t PidOf(int rank) const;
  void OpenCollective(int rank, double from, double to);
  void End(double t, const char* disposition);
  void All(Doing doing, double from, double to);
  void SayLine(int rank, double t, std::string text, bool error, Source source, std::string stream);

  std::vector<std::string> without_;
  std::vector<Item> items_;
  std::vector<Life> lives_;
  std::map<int, size_t> life_of_;    // by rank
  std::map<int, double> computing_;  // since when, in this step, by rank
  std::map<std::string, int64_t> stream_ends_;
  ProcessKey launcher_, slurmstepd_;
  int32_t next_pid_ = 0;
  int attempt_ = 0;
  double t_ = 0;
  std::vector<std::pair<double, double>> comm_factors_;  // since when, of the collectives' time
  double training_since_ = 0;                            // of this attempt
  int saved_step_ = 0;
  int step_ = 0;
  double epoch_loss_ = 0;
  int64_t collectives_ = 0;
  bool over_ = false;  // the job
  Mark mark_ = Mark::kNone;
  double ended_ = kForever;
  Random steps_;
  std::vector<double> stage_share_;
};

}  // namespace rankscope::generator
