// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// How a job ends: by itself, by one of its ranks, by what waits for it, or from outside.

#include <algorithm>
#include <cmath>

#include "tests/generator/dialects.h"
#include "tests/generator/text.h"
#include "tests/generator/world.h"

namespace rankscope::generator {
namespace {

constexpr double kKillWait = 30;      // slurm.conf
constexpr double kLauncherWait = 30;  // torch/distributed/elastic: SIGKILL after SIGTERM
constexpr int kAbort = 6, kKill = 9, kTerminate = 15;
constexpr const char* kSlurmCgroup = "/system.slice/slurmstepd.scope/system";

bool CannotDie(Doing doing) {
  return doing == Doing::kStuckFile || doing == Doing::kStuckGpu || doing == Doing::kStopped;
}

}  // namespace

const Interruption* World::Next(Phase phase, double from, double to) const {
  const Interruption* first = nullptr;
  for (const Interruption& one : interruptions) {
    if (one.phase != phase || one.attempt != attempt_ || one.after > from) continue;
    if (phase == Phase::kTrain && one.at > to) continue;
    if (first == nullptr || one.at < first->at) first = &one;
  }
  return first;
}

void World::OpenCollective(int rank, double from, double to) {
  Life* const life = LifeOf(rank);
  if (life == nullptr || plan.collectives_per_step == 0) return;
  life->At(from).enqueued += 1;
  for (double end = std::floor(from) + 1; end <= to; end += 1) {
    Second& second = life->At(end - 0.5);
    second.collective_open = true;
    second.collective_age = static_cast<float>(end - from);
  }
}

void World::End(double t, const char* disposition) {
  stop_at = kForever;  // it was of this attempt
  if (attempt_ + 1 < attempts) {
    if (plan.slurm) ++plan.restarts;
    return;
  }
  over_ = true;
  ended_ = t;
  if (truth.disposition.empty()) truth.disposition = disposition;
}

// Of the newest process that was this rank.
int32_t World::PidOf(int rank) const {
  for (auto it = lives_.rbegin(); it != lives_.rend(); ++it)
    if (it->rank == rank) return it->key.pid;
  return 0;
}

void World::Interrupt(const Interruption& what, double t, const std::map<int, double>& finish) {
  t_ = t;
  if (what.crash && what.phase <= Phase::kCompile && !what.all_wait) truth.onset = t;
  if (what.crash)
    Crash(what, t, finish);
  else
    Hang(what, t, finish);
}

void World::Hang(const Interruption& what, double t, const std::map<int, double>& finish) {
  const bool training = what.phase >= Phase::kTrain;
  Ending how = hang_end;
  const bool can_abort = training && plan.watchdog && plan.ranks > 1 && !what.all_wait &&
                         t + plan.nccl_timeout < horizon() - 10;
  if (how == Ending::kTimeLimit && plan.time_limit < t + 20) how = Ending::kRunsOn;
  if (!ending_fixed && how != Ending::kTimeLimit) {
    how = Ending::kRunsOn;
    if (can_abort && random.Chance(0.6))
      how = Ending::kWatchdog;
    else if (random.Chance(0.5))
      how = Ending::kCancelled;
  }
  if (how == Ending::kWatchdog && !can_abort) how = Ending::kRunsOn;
  double end = horizon();
  if (how == Ending::kWatchdog)
    end = t + plan.nccl_timeout + random.Between(0.1, 2);
  else if (how == Ending::kTimeLimit)
    end = plan.time_limit + random.Between(1, 20);
  else if (how != Ending::kRunsOn)
    end = std::max(t + 20, horizon() - kKillWait - 15);
  if (stop_at <= horizon() && stop_at < end) {
    end = std::max(stop_at, t + 1);
    how = stop_how;
  }
  if (what.speak) what.speak(*this, t, what.ranks.empty() ? 0 : what.ranks.front());
  for (const auto& [rank, index] : life_of_) {
    Life& life = lives_[index];
    const bool stuck =
        what.all_wait || std::find(what.ranks.begin(), what.ranks.end(), rank) != what.ranks.end();
    const double from = finish.contains(rank) ? finish.at(rank) : t;
    if (stuck) {
      life.Do(what.doing, from, end);
      if (what.doing == Doing::kSpin) OpenCollective(rank, from, end);
    } else if (training) {
      const double entered = from + (what.phase == Phase::kTrain ? 0.5 * plan.step_seconds : 0);
      life.Do(Doing::kCompute, from, entered);
      life.Do(Doing::kSpin, entered, end);
      OpenCollective(rank, entered, end);
    } else {
      life.Do(Doing::kSocket, from, end);
    }
  }
  Snapshots(what, t, end);
  t_ = end;
  HangEnds(what, t, end, how);
}

void World::HangEnds(const Interruption& what, double, double end, Ending how) {
  if (how == Ending::kRunsOn) {
    truth.disposition = "running";
  } else if (how == Ending::kWatchdog) {
    Watchdog(what, end);
  } else {
    Stop(end, how);
  }
}

// What the threads of those that make no progress wait for, once somebody looks.
void World::Snapshots(const Interruption& what, double t, double until) {
  struct Look {
    const char *wait_class, *wchan, *call, *fd;
  };
  const auto look = [](Doing doing) -> Look {
    switch (doing) {
      case Doing::kStuckFile:
        return {"network_file", "rpc_wait_bit_killable", "write", ""};
      case Doing::kStuckGpu:
        return {"gpu", "os_acquire_rwlock_write", "ioctl", "/dev/nvidia0"};
      case Doing::kStopped:
        return {"stopped", "do_signal_stop", "", ""};
      case Doing::kSleep:
        return {"sleep", "hrtimer_nanosleep", "clock_nanosleep", ""};
      case Doing::kLock:
        return {"file_lock", "flock_lock_inode_wait", "flock", "file"};
      case Doing::kSocket:
        return {"socket", "sk_wait_data", "recvfrom", "socket"};
      case Doing::kCompile:
        return {"child", "do_wait", "wait4", ""};
      case Doing::kHost:
        return {"running", "0", "", ""};
      case Doing::kSpin:
        return {"running", "0", "", ""};
      default:
        return {"futex", "futex_wait_queue", "futex", ""};
    }
  };
  for (double at = t + 30; at < until; at += at - t < 100 ? 60 : 600) {
    for (const auto& [rank, index] : life_of_) {
      const bool stuck = what.all_wait ||
                         std::find(what.ranks.begin(), what.ranks.end(), rank) != what.ranks.end();
      const Look seen = look(stuck                         ? what.doing
                             : what.phase >= Phase::kTrain ? Doing::kSpin
                                                           : Doing::kSocket);
      std::vector<KeyValue> facts = {{"class", seen.wait_class}};
      if (*seen.wchan != '\0') facts.push_back({"wchan", seen.wchan});
      if (*seen.call != '\0') facts.push_back({"syscall", seen.call});
      if (*seen.fd != '\0') facts.push_back({"fd", seen.fd});
      if (stuck && !what.python_frame.empty()) facts.push_back({"python", what.python_frame});
      Happen(at, Source::kWait, EventType::kThreadSnapshot, rank, facts,
             {{"threads", 40},
              {"tid", KeyOf(rank).pid},
              {"uninterruptible", stuck && CannotDie(what.doing) && what.doing != Doing::kStopped},
              {"running", seen.wait_class[0] == 'r' ? 1 : 0}});
    }
  }
}

// Each rank that waits ends itself: ProcessGroupNCCL.cpp.
void World::Watchdog(const Interruption& what, double t) {
  int first = -1;
  for (const auto& [rank, index] : life_of_) {
    if (std::find(what.ranks.begin(), what.ranks.end(), rank) != what.ranks.end()) continue;
    if (first < 0) first = rank;
    const double at = t + 0.2 * random.Unit();
    const std::string head = Text("[rank%d]:[E%s ProcessGroupNCCL.cpp:632] [Rank %d] ", rank,
                                  Calendar(Wall(at), "%m%d %H:%M:%S.%f000").c_str(), rank);
    const auto milliseconds = static_cast<int>(plan.nccl_timeout * 1000);
    const auto sequence = static_cast<long long>(collectives_ + 1);
    Say(rank, at,
        head + Text("Watchdog caught collective operation timeout: WorkNCCL(SeqNum=%lld, "
                    "OpType=ALLREDUCE, NumelIn=25165824, NumelOut=25165824, "
                    "Timeout(ms)=%d) ran for %d milliseconds before timing out.",
                    sequence, milliseconds, milliseconds + 71),
        true);
    Say(rank, at + 0.01,
        Text(
            "[rank%d]:[E%s ProcessGroupNCCL.cpp:2268] [PG ID 0 PG GUID 0(default_pg) Rank %d]  "
            "failure detected by watchdog at work sequence id: %lld PG status: last enqueued work: "
            "%lld, last completed work: %lld",
            rank, Calendar(Wall(at), "%m%d %H:%M:%S.%f000").c_str(), rank, sequence, sequence + 1,
            sequence - 1),
        true);
    Say(rank, at + 1, head + "To avoid data inconsistency, we are taking the entire process down.",
        true);
    Signal(at + 1.1, rank, kAbort, -6, KeyOf(rank), "python3", plan.uid, "");
  }
  if (first < 0) first = plan.first_local();
  t_ = t + 1.4;
  std::vector<int> aborting;
  for (const auto& [rank, index] : life_of_)
    if (std::find(what.ranks.begin(), what.ranks.end(), rank) == what.ranks.end())
      aborting.push_back(rank);
  for (const int rank : aborting) Die(t_ + 0.1 * random.Unit(), rank, kAbort);
  CleanUp(t_ + 0.2, first, kAbort);
}

void World::Crash(const Interruption& what, double t, const std::map<int, double>& finish) {
  int first = what.ranks.empty() ? plan.first_local() : what.ranks.front();
  double last = t;
  for (const int rank : what.ranks) {
    const double at = t + (what.ranks.size() > 1 ? random.Between(0, 1.5) : 0.05);
    if (what.speak) what.speak(*this, at, rank);
    if (Life* const life = LifeOf(rank))
      life->Do(Doing::kHost, finish.contains(rank) ? finish.at(rank) : t, at + 0.4);
    Die(at + 0.4, rank, what.wait_status);
    last = std::max(last, at + 0.4);
  }
  // The launcher looks now and then; its node's only where it is there, else the scheduler acts.
  const bool here = plan.IsLocal(first) || what.ranks.size() > 1;
  const double noticed =
      last + (here ? plan.monitor_interval * random.Unit() + 0.1 : random.Between(1, 6));
  for (const auto& [rank, index] : life_of_) {
    Life& life = lives_[index];
    const double from = finish.contains(rank) ? finish.at(rank) : t;
    life.Do(what.phase >= Phase::kTrain ? Doing::kSpin : Doing::kSocket, from, noticed);
    OpenCollective(rank, from, noticed);
  }
  t_ = noticed;
  if (here) {
    CleanUp(noticed, first, what.wait_status);
    return;
  }
  // Another node's rank has failed. srun --kill-on-bad-exit.
  const int code = what.wait_status < 128 ? what.wait_status : what.wait_status >> 8;
  SayScheduler(noticed, Text("srun: error: %s: task %d: %s %d", plan.NodeOf(first).c_str(),
                             first / plan.per_node, "Exited with exit code",
                             what.wait_status < 128 ? 1 : code));
  SayScheduler(noticed + 0.1, Text("slurmstepd: error: *** STEP %s.0 ON %s CANCELLED AT %s ***",
                                   plan.job_id.c_str(), plan.NodeName(0).c_str(),
                                   Calendar(Wall(noticed), "%Y-%m-%dT%H:%M:%S").c_str()));
  KillAll(noticed + 0.1, kTerminate, true, slurmstepd_, "slurmstepd", 0, kSlurmCgroup);
  EndScheduler(t_, "FAILED", Text("%d:0", what.wait_status < 128 ? 1 : code), "NonZeroExitCode",
               "");
  Finish(t_);
  End(t_, "failed");
}

// torch/distributed/elastic: one worker has failed, the others are ended, and the agent with them.
void World::CleanUp(double t, int first, int wait_status) {
  const int status = wait_status < 128 ? -(wait_status & 127) : wait_status >> 8;
  std::vector<int> left;
  for (const auto& [rank, index] : life_of_)
    if (plan.IsLocal(rank)) left.push_back(rank);
  const auto glog = [&](double at, const char* level) {
    return Text("%s%s %d torch/distributed/elastic/multiprocessing/api.py:", level,
                Calendar(Wall(at), "%m%d %H:%M:%S.%f").c_str(), launcher_.pid);
  };
  double gone = t + 0.3;
  for (const int rank : left) {
    Say(-1, t,
        glog(t, "W") + Text("897] Sending process %d closing signal SIGTERM", KeyOf(rank).pid),
        true);
    Signal(t + 0.01, rank, kTerminate, 0, launcher_, "torchrun", plan.uid, "");
  }
  for (const int rank : left) {
    Life* const life = LifeOf(rank);
    const Doing last = life->seconds.empty() ? Doing::kIdle : life->seconds.back().last;
    const bool slow = CannotDie(last);
    const double at = t + (slow ? kLauncherWait : random.Between(0.05, 1.2));
    life->Do(last, t, at);
    if (slow) Signal(at, rank, kKill, 0, launcher_, "torchrun", plan.uid, "");
    Die(at + 0.02, rank, slow ? kKill : kTerminate);
    gone = std::max(gone, at + 0.1);
  }
  Say(-1, gone,
      glog(gone, "E") + Text("869] failed (exitcode: %d) local_rank: %d (pid: %d) of binary: "
                             "/usr/bin/python3",
                             status, first % plan.per_node, PidOf(first)),
      true);
  t_ = gone + 0.2;
  if (attempt_ + 1 < attempts && between_attempts == 0) return;  // the agent begins anew
  Summary(gone + 0.1, first, wait_status);
  Die(gone + 0.4, -1, 1 << 8);
  t_ = gone + 0.5;
  if (attempt_ + 1 < attempts) return;
  SayScheduler(t_, Text("srun: error: %s: task %d: Exited with exit code 1",
                        plan.NodeOf(first).c_str(), first / plan.per_node));
  EndScheduler(t_ + 1, "FAILED", "1:0", "NonZeroExitCode", "");
  EndWrapper(t_, 1 << 8);
  Finish(t_);
  End(t_, "failed");
}

void World::Summary(double t, int first, int wait_status) {
  const int status = wait_status < 128 ? -(wait_status & 127) : wait_status >> 8;
  const char* const name = wait_status == 9    ? "SIGKILL"
                           : wait_status == 11 ? "SIGSEGV"
                           : wait_status == 7  ? "SIGBUS"
                           : wait_status == 6  ? "SIGABRT"
                                               : "SIGTERM";
  const int32_t pid = PidOf(first);
  const std::string rule(60, '='), thin(60, '-');
  for (const std::string& line :
       {rule, plan.script + " FAILED", thin, std::string("Failures:"),
        std::string("  <NO_OTHER_FAILURES>"), thin,
        std::string("Root Cause (first observed failure):"), std::string("[0]:"),
        "  time      : " + Calendar(Wall(t), "%Y-%m-%d_%H:%M:%S"),
        "  host      : " + plan.NodeOf(first),
        Text("  rank      : %d (local_rank: %d)", first, first % plan.per_node),
        Text("  exitcode  : %d (pid: %d)", status, pid), std::string("  error_file: <N/A>"),
        status < 0 ? Text("  traceback : Signal %d (%s) received by PID %d", -status, name, pid)
                   : std::string("  traceback : To enable traceback see: "
                                 "https://pytorch.org/docs/stable/elastic/errors.html"),
        rule})
    Say(-1, t, line, true);
}

void World::KillAll(double t, int signo, bool escalate, const ProcessKey& sender,
                    const std::string& comm, int uid, const std::string& cgroup) {
  std::vector<int> left;
  for (const auto& [rank, index] : life_of_) left.push_back(rank);
  Signal(t, -1, signo, 0, sender, comm, uid, cgroup);
  double gone = t;
  for (const int rank : left) {
    Signal(t + 0.001 * (rank % plan.per_node), rank, signo, 0, sender, comm, uid, cgroup);
    Life* const life = LifeOf(rank);
    const Doing last = life->seconds.empty() ? Doing::kIdle : life->seconds.back().last;
    const bool slow = signo != kKill && CannotDie(last);
    const double at =
        t + (slow && escalate ? kKillWait + random.Between(0.1, 1.5) : random.Between(0.05, 2));
    life->Do(last, t, at);
    if (slow) Signal(at - 0.05, rank, kKill, 0, sender, comm, uid, cgroup);
    Die(at, rank, slow ? kKill : signo);
    gone = std::max(gone, at);
  }
  Die(gone + 0.2, -1, signo == kKill ? kKill : 1 << 8);
  t_ = gone + 0.3;
}

// From outside.
void World::Stop(double t, Ending how) {
  t_ = t;
  const std::string when = Calendar(Wall(t), "%Y-%m-%dT%H:%M:%S");
  const std::string head = Text("slurmstepd: error: *** JOB %s ON %s CANCELLED AT %s",
                                plan.job_id.c_str(), plan.NodeName(0).c_str(), when.c_str());
  const auto by_slurm = [&](const std::string& line, const char* state, const char* exit,
                            const char* reason, const std::string& by, const char* disposition) {
    SayScheduler(t, line);
    KillAll(t + 0.05, kTerminate, true, slurmstepd_, "slurmstepd", 0, kSlurmCgroup);
    EndScheduler(t_ + 0.5, state, exit, reason, by);
    Finish(t_);
    End(t_, disposition);
  };
  switch (how) {
    case Ending::kTimeLimit:
      return by_slurm(head + " DUE TO TIME LIMIT ***", "TIMEOUT", "0:0", "TimeLimit", "",
                      "time_limit");
    case Ending::kPreempted:
      return by_slurm(head + " DUE TO PREEMPTION ***", "PREEMPTED", "0:15", "None", "",
                      "preempted");
    case Ending::kRequeued:
      return by_slurm(head + " DUE TO JOB REQUEUE ***", "REQUEUED", "0:15", "None", "", "requeued");
    case Ending::kNodeFailed:
      return by_slurm(head + " DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***", "NODE_FAIL",
                      "0:0", "NodeDown", "", "node_failed");
    case Ending::kStranger: {
      KillAll(t, random.Chance(0.5) ? kTerminate : kKill, false, {next_pid_++, 77},
              random.Pick({"kill", "bash", "cleanup.sh"}), plan.uid + 7,
              "/user.slice/user-0.slice/session-3.scope");
      EndScheduler(t_ + 0.5, "FAILED", "0:15", "RaisedSignal:15", "");
      EndWrapper(t_, kTerminate);
      Finish(t_);
      return End(t_, "cancelled");
    }
    default:
      break;
  }
  if (plan.slurm)
    return by_slurm(head + " ***", "CANCELLED", "0:15", "None", std::to_string(plan.uid),
                    "cancelled");
  // Ctrl-C goes to the whole process group, from the terminal.
  KillAll(t, 2, false, {}, "", plan.uid, "");
  EndWrapper(t_, 2);
  Finish(t_);
  End(t_, "cancelled");
}

void World::Complete() {
  DialectOf(plan.dialect).end(*this, t_);
  const double teardown = random.Between(0.5, 8);
  All(Doing::kIdle, t_, t_ + teardown);
  t_ += teardown;
  std::vector<int> left;
  for (const auto& [rank, index] : life_of_) left.push_back(rank);
  double gone = t_;
  for (const int rank : left) {
    const double at = t_ + random.Between(0, 1.5);
    LifeOf(rank)->Do(Doing::kIdle, t_, at);
    Die(at, rank, 0);
    gone = std::max(gone, at);
  }
  Die(gone + 0.3, -1, 0);
  t_ = gone + 0.4;
  EndScheduler(t_ + 0.6, "COMPLETED", "0:0", "None", "");
  EndWrapper(t_, 0);
  Finish(t_);
  End(t_, "completed");
}

void World::EndScheduler(double t, const std::string& state, const std::string& exit,
                         const std::string& reason, const std::string& by) {
  if (!plan.slurm) return;
  // Without the controller's instance only the first node asks, and only when it ended badly.
  if (!plan.controller_events && (plan.observed_node != 0 || state == "COMPLETED")) return;
  const double told = t + random.Between(0.5, plan.controller_events ? 4 : 12);
  Fact(told, "end", Text("%lld", static_cast<long long>(Wall(t) / 1'000'000'000)));
  Fact(told, "elapsed_seconds", Text("%d", static_cast<int>(t)));
  Fact(told, "exit", exit);
  if (!by.empty()) Fact(told, "by", by);
  if (reason != "None") Fact(told, "reason", reason);
  Fact(told, "state", state);
}

void World::EndWrapper(double t, int wait_status) {
  if (!plan.wrapper) return;
  RunMark end;
  end.job_id = plan.job_id;
  end.what = RunMark::What::kEnd;
  end.wait_status = wait_status;
  end.status_known = true;
  end.root = launcher_;
  end.uid = 1000;
  Tell(t + 0.05, Source::kRun, end);
  end.what = RunMark::What::kStreamsClosed;
  Tell(t + 0.06, Source::kRun, end);
}

// Its GPUs are free again.
void World::Finish(double t) {
  for (const Life& life : lives_) {
    if (!plan.IsLocal(life.rank)) continue;
    Event gone;
    gone.type = WireType(EventType::kGpuProcess);
    gone.process = life.key;
    gone.str = {{"gpu_uuid", GpuUuid(life.rank)},
                {"bus_id", BusId(life.rank)},
                {"model", plan.gpu.name},
                {"state", "up"}};
    gone.num = {
        {"index", life.rank % plan.per_node}, {"processes_told", 1}, {"mig", 0}, {"gone", 1}};
    Tell(t + 1, Source::kNvml, gone);
  }
}

}  // namespace rankscope::generator
