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

constexpr double kLauncherWait = 30;  // torch/distributed/elastic: SIGKILL after SIGTERM

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

void World::End(double t, const char* disposition) {
  stop_at = kForever;  // it was of this attempt
  if (attempt_ + 1 < attempts) {
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

void World::Crash(const Interruption& what, double t, const std::map<int, double>& finish) {
  int first = what.ranks.empty() ? plan.first_local() : what.ranks.front();
  double last = t;
  for (const int rank : what.ranks) {
    const double at = t + (what.ranks.size() > 1 ? random.Between(0, 1.5) : 0.05);
    MarkAs(what.tells ? Mark::kFault : Mark::kNone);
    if (what.speak) what.speak(*this, at, rank);
    MarkAs(Mark::kNone);
    if (Life* const life = LifeOf(rank))
      life->Do(Doing::kHost, finish.contains(rank) ? finish.at(rank) : t, at + 0.4);
    MarkAs(what.exit_tells ? Mark::kFault : Mark::kNone);
    Die(at + 0.4, rank, what.wait_status);
    MarkAs(Mark::kNone);
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
  KillAll(noticed + 0.1, kTerminate, true, slurmstepd_, "slurmstepd", 0, CgroupOf("slurm"));
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
  const int code = signo == kInterrupt ? 0x80 : 0;  // from the terminal: SI_KERNEL
  Signal(t, -1, signo, code, sender, comm, uid, cgroup);
  double gone = t;
  for (const int rank : left) {
    Signal(t + 0.001 * (rank % plan.per_node), rank, signo, code, sender, comm, uid, cgroup);
    Life* const life = LifeOf(rank);
    const Doing last = life->seconds.empty() ? Doing::kIdle : life->seconds.back().last;
    const bool slow = signo != kKill && CannotDie(last);
    const double at =
        t + (slow && escalate ? kKillWait + random.Between(0.1, 1.5) : random.Between(0.05, 2));
    life->Do(last, t, at);
    // The terminal asks once; whom that does not end the launcher kills.
    if (slow && signo == kInterrupt) {
      Signal(at - 0.05, rank, kKill, 0, launcher_, "torchrun", plan.uid, "");
    } else if (slow) {
      Signal(at - 0.05, rank, kKill, 0, sender, comm, uid, cgroup);
    }
    Die(at, rank, slow ? kKill : signo);
    gone = std::max(gone, at);
  }
  Die(gone + 0.2, -1, signo == kKill ? kKill : 1 << 8);
  t_ = gone + 0.3;
}

// From outside.
void World::Stop(double t, Ending how) {
  MarkAs(Mark::kEnd);
  StopBy(t, how);
  MarkAs(Mark::kNone);
}

void World::StopBy(double t, Ending how) {
  t_ = t;
  const std::string when = Calendar(Wall(t), "%Y-%m-%dT%H:%M:%S");
  const std::string head = Text("slurmstepd: error: *** JOB %s ON %s CANCELLED AT %s",
                                plan.job_id.c_str(), plan.NodeName(0).c_str(), when.c_str());
  const auto by_slurm = [&](const std::string& line, const char* state, const char* exit,
                            const char* reason, const std::string& by, const char* disposition) {
    SayScheduler(t, line);
    KillAll(t + 0.05, kTerminate, true, slurmstepd_, "slurmstepd", 0, CgroupOf("slurm"));
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
  KillAll(t, kInterrupt, true, {}, "", 0, "");
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
