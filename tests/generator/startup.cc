// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Until the first step: the machine, the scheduler, processes, the process group, model and data.

#include <algorithm>
#include <cmath>

#include "tests/generator/dialects.h"
#include "tests/generator/text.h"
#include "tests/generator/world.h"

namespace rankscope::generator {

void World::BeginMachine() {
  Epoch epoch;
  epoch.wall_offset_ns = plan.wall_ns - plan.boot_ns;
  epoch.uncertainty_ns = 2'000'000;
  epoch.boot_id = Text("%08x-0000-4000-8000-000000000000", static_cast<unsigned>(plan.seed));
  Tell(0, Source::kAgent, epoch);
  for (size_t i = 1; i < kSourceNames.size(); ++i) {
    const auto source = static_cast<Source>(i);
    SourceState state;
    state.source = static_cast<uint32_t>(i);
    state.name = kSourceNames[i];
    state.state = Availability::kUp;
    if (source == Source::kDcgm || source == Source::kJobMapping) {
      state.state = Availability::kNotApplicable;
      state.reason = "not configured";
    } else if (source == Source::kProcConnector) {
      state.state = Availability::kNotApplicable;
      state.reason = "superseded by process";
    } else if (source == Source::kInfiniband && plan.nodes == 1) {
      state.state = Availability::kUnsupported;
      state.reason = "/sys/class/infiniband: No such file or directory";
    } else if (source == Source::kSlurm && !plan.slurm) {
      state.state = Availability::kNotApplicable;
      state.reason = "Slurm is not installed";
    }
    Tell(0.01, source, state);
  }
}

void World::BeginScheduler(double t) {
  if (!plan.slurm) return;
  // The job's first node asks for its record; the controller's instance answers all.
  if (!plan.controller_events && plan.observed_node != 0) return;
  const auto number = [](double value) { return Text("%lld", static_cast<long long>(value)); };
  const double wall = static_cast<double>(plan.wall_ns) * 1e-9;
  Fact(t, "submit", number(wall - 30));
  Fact(t, "start", number(wall + t - 1.2));
  Fact(t, "time_limit_seconds", number(plan.time_limit));
  Fact(t, "restarts", number(plan.restarts));
  Fact(t, "gpus", number(plan.ranks));
  Fact(t, "partition", "gpu");
  Fact(t, "nodes", plan.NodeList());
  Fact(t, "submit_line", "sbatch job.sh");
  Fact(t, "work_dir", plan.work_dir);
  if (plan.controller_events)
    Fact(t, "event", "started");
  else
    Fact(t, "state", "RUNNING");
}

ProcessStart World::StartOf(int rank, ProcessKey key) const {
  ProcessStart start;
  start.key = key;
  start.uid = static_cast<uint32_t>(plan.uid);
  start.complete = true;
  if (plan.slurm)
    start.cgroup = CgroupOf("user/task_0");
  else
    start.job_id = plan.job_id;
  const auto set = [&start](const char* name, const std::string& value) {
    start.env.push_back({name, value});
  };
  if (plan.slurm) {
    set("SLURM_JOB_ID", plan.job_id);
    set("SLURM_STEP_ID", "0");
    set("SLURM_NODEID", std::to_string(plan.observed_node));
    set("SLURM_JOB_NUM_NODES", std::to_string(plan.nodes));
    set("SLURM_JOB_NODELIST", plan.NodeList());
    set("SLURMD_NODENAME", plan.NodeName(plan.observed_node));
    if (plan.restarts > 0) set("SLURM_RESTART_COUNT", std::to_string(plan.restarts));
    std::string gpus = "0";
    for (int i = 1; i < plan.per_node; ++i) gpus += "," + std::to_string(i);
    set("SLURM_PROCID", std::to_string(plan.observed_node));
    set("SLURM_LOCALID", "0");
    set("SLURM_NTASKS", std::to_string(plan.nodes));
    set("SLURM_STEP_GPUS", gpus);
    if (plan.observed_node == 0) set("SLURM_JOB_GPUS", gpus);
    set("CUDA_VISIBLE_DEVICES", gpus);
  }
  if (plan.flight_recorder) {
    set("TORCH_NCCL_TRACE_BUFFER_SIZE", "2000");
    set("TORCH_NCCL_DUMP_ON_TIMEOUT", "1");
  }
  if (plan.inspector) set("NCCL_INSPECTOR_ENABLE", "1");
  for (const std::string& extra : extra_environment) {
    const size_t equals = extra.find('=');
    start.env.push_back({extra.substr(0, equals), extra.substr(equals + 1)});
  }
  if (rank < 0) {
    start.comm = "torchrun";
    start.argv = {"/usr/bin/python3", "/usr/local/bin/torchrun", Text("--nnodes=%d", plan.nodes),
                  Text("--nproc_per_node=%d", plan.per_node), plan.script};
  } else {
    start.parent = launcher_;
    start.comm = "python3";
    start.argv = {"/usr/bin/python3", "-u", plan.script};
    set("RANK", std::to_string(rank));
    set("LOCAL_RANK", std::to_string(rank % plan.per_node));
    set("WORLD_SIZE", std::to_string(plan.ranks));
    set("LOCAL_WORLD_SIZE", std::to_string(plan.per_node));
    set("GROUP_RANK", std::to_string(rank / plan.per_node));
    set("MASTER_ADDR", plan.nodes == 1 ? "127.0.0.1" : plan.NodeName(0));
    set("MASTER_PORT", "29500");
    set("TORCHELASTIC_RUN_ID", plan.slurm ? plan.job_id : "none");
    set("TORCHELASTIC_RESTART_COUNT",
        std::to_string(between_attempts == 0 ? std::max(attempt_, 0) : 0));
  }
  for (const std::string& argument : extra_arguments) start.argv.push_back(argument);
  if (plan.resumes) start.argv.push_back("--resume");
  return start;
}

void World::Launch() {
  const bool new_launcher = attempt_ == 0 || between_attempts > 0;
  const auto ticks = [this](double t) {
    return static_cast<int64_t>((static_cast<double>(plan.boot_ns) * 1e-9 + t) * 100);
  };
  if (new_launcher) {
    launcher_ = {next_pid_++, ticks(t_)};
    if (plan.wrapper && attempt_ == 0) {
      RunMark begin;
      begin.job_id = plan.job_id;
      begin.what = RunMark::What::kBegin;
      begin.argv = StartOf(-1, launcher_).argv;
      begin.cwd = plan.work_dir;
      begin.root = launcher_;
      begin.world_size = plan.ranks;
      begin.uid = 1000;
      Tell(t_, Source::kRun, begin);
    }
    Tell(t_ + 0.02, Source::kProcess, StartOf(-1, launcher_));
    t_ += random.Between(0.8, 3);
  }
  std::vector<int> ranks;
  for (int i = 0; i < plan.locals(); ++i) ranks.push_back(plan.first_local() + i);
  ranks.insert(ranks.end(), watched.begin(), watched.end());
  for (const int rank : ranks) {
    Life life;
    life.rank = rank;
    life.born = t_ + 0.01 * (rank % plan.per_node);
    life.key = {next_pid_++, ticks(life.born)};
    life_of_[rank] = lives_.size();
    if (plan.IsLocal(rank)) Tell(life.born, Source::kProcess, StartOf(rank, life.key));
    lives_.push_back(std::move(life));
  }
  t_ += 0.1;
  MarkAs(Mark::kFault);
  for (const auto& hook : on_launch) hook(*this, attempt_, t_);
  MarkAs(Mark::kNone);
}

// All ranks do one thing for a while. False: the attempt ended meanwhile.
bool World::Spend(Phase phase, Doing doing, double seconds) {
  const double end = t_ + seconds;
  const Interruption* const hit = Next(phase, t_, end);
  if (hit != nullptr) {
    const double at = phase == Phase::kTrain ? hit->at : t_ + seconds * hit->at;
    if (at < stop_at && at < horizon()) {
      All(doing, t_, at);
      Interrupt(*hit, at, {});
      return false;
    }
  }
  const double until = std::min({end, stop_at, horizon()});
  All(doing, t_, until);
  if (doing == Doing::kCompute) Launches(t_, until);
  t_ = until;
  if (until == end) return true;
  if (stop_at <= horizon()) Stop(stop_at, stop_how);
  return false;
}

// Work that is no step launches as well, and waits in synchronisations for what it has launched.
void World::Launches(double from, double to) {
  for (const auto& [rank, index] : life_of_) {
    lives_[index].LaunchAll(0.6 * (to - from) * plan.launches_per_step / plan.step_seconds, from,
                            to);
    for (double at = from; at < to; at += 1)
      lives_[index].Add(&Second::sync, at + plan.host_share * std::min(1.0, to - at),
                        std::min(at + 1, to));
  }
}

bool World::Rendezvous() {
  if (plan.ranks == 1) return true;
  const int first = plan.first_local();
  for (int i = 0; i < plan.locals(); ++i)
    Say(first + i, t_ + 0.01 * i,
        Text("| distributed init (rank %d): env://, gpu %d", first + i, i));
  if (!Spend(Phase::kRendezvous, Doing::kSocket, plan.rendezvous_seconds)) return false;
  const std::string peer = plan.nodes == 1 ? "127.0.0.1" : "10.1.0.1";
  for (int i = 0; i < plan.locals(); ++i) {
    Happen(t_ - 0.2, Source::kNetwork, EventType::kConnect, first + i,
           {{"peer", peer + ":29500"}, {"host", peer}, {"outcome", "connected"}},
           {{"port", 29500}, {"errno", 0}, {"attempts", 1}, {"milliseconds", 2}});
    Happen(t_, Source::kNccl, EventType::kCommunicator, first + i, {{"what", "created"}},
           {{"ranks", plan.ranks}, {"rank", first + i}});
  }
  for (const auto& [rank, index] : life_of_) lives_[index].grouped = t_;
  return true;
}

bool World::Load() {
  MarkAs(Mark::kFault);
  for (const auto& hook : on_load) hook(*this, t_);
  MarkAs(Mark::kNone);
  const double share = plan.resumes && loads_checkpoint ? 0.6 : 1;
  if (!Spend(Phase::kLoad, Doing::kRead, plan.load_seconds * share)) return false;
  if (!plan.resumes || !loads_checkpoint) return true;
  // What is read must be as much as a checkpoint holds.
  DialectOf(plan.dialect).resume(*this, t_);
  const double bytes = plan.checkpoint_bytes / (plan.sharded ? plan.ranks : 1);
  for (auto& [rank, index] : life_of_) {
    lives_[index].At(t_).read += static_cast<float>(bytes);
    Happen(t_ + 1, Source::kIo, EventType::kCheckpointRead, rank,
           {{"name", Text("rank_%d.pt", rank)}, {"directory", "checkpoints"}},
           {{"bytes", static_cast<int64_t>(bytes)},
            {"size", static_cast<int64_t>(bytes)},
            {"milliseconds", 2500},
            {"mapped", 0}},
           2.5);
  }
  return Spend(Phase::kLoad, Doing::kRead, plan.load_seconds * 0.4);
}

// True: it has done all its steps.
bool World::Attempt() {
  step_ = plan.resumes && loads_checkpoint ? plan.first_step : 0;
  Launch();
  if (!Spend(Phase::kImport, Doing::kImport, plan.import_seconds)) return false;
  if (!Rendezvous() || !Load()) return false;
  DialectOf(plan.dialect).begin(*this, t_);
  if (plan.work == Work::kNotebook) {
    // Cells with pauses between them, until the user leaves.
    while (t_ < horizon()) {
      if (!Spend(Phase::kTrain, Doing::kCompute, random.In({1, 30}))) return false;
      if (!Spend(Phase::kTrain, Doing::kIdle, random.In({5, 240}))) return false;
    }
    return false;
  }
  if (plan.work == Work::kEvaluation) {
    const int batches = std::max(20, static_cast<int>(0.7 * (horizon() - t_) / 5));
    const double begin = t_;
    for (int i = 1; i <= batches; ++i) {
      if (!Spend(Phase::kEval, Doing::kCompute, 5 * random.Between(0.8, 1.2))) return false;
      Print(*this, t_, "\revaluating: " + Bar(i, batches, t_ - begin, 5) + "]", true);
    }
    Print(*this, t_, "accuracy: 0.7312");
    return true;
  }
  if (!Spend(Phase::kCompile, plan.compile_seconds > 8 ? Doing::kCompile : Doing::kHost,
             plan.compile_seconds))
    return false;
  return Train();
}

}  // namespace rankscope::generator
