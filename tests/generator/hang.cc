// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// A job that makes no progress any more, until something ends it.

#include <algorithm>
#include <cmath>

#include "tests/generator/text.h"
#include "tests/generator/world.h"

namespace rankscope::generator {

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
  MarkAs(what.tells ? Mark::kFault : Mark::kNone);
  if (what.speak) what.speak(*this, t, what.ranks.empty() ? 0 : what.ranks.front());
  MarkAs(Mark::kNone);
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
      life.Add(&Second::silent, entered, end);
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

// The line of ProcessGroupNCCL.cpp behind that of the work, which alone names the group.
void World::SayGroup(int rank, double t) {
  const auto sequence = static_cast<long long>(collectives_ + 1);
  Say(rank, t,
      Text("[rank%d]:[E%s ProcessGroupNCCL.cpp:2268] [PG ID 0 PG GUID 0(default_pg) Rank %d]  "
           "failure detected by watchdog at work sequence id: %lld PG status: last enqueued work: "
           "%lld, last completed work: %lld",
           rank, Calendar(Wall(t), "%m%d %H:%M:%S.%f000").c_str(), rank, sequence, sequence + 1,
           sequence - 1),
      true);
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
    SayGroup(rank, at + 0.01);
    Say(rank, at + 1, head + "To avoid data inconsistency, we are taking the entire process down.",
        true);
    Signal(at + 1.1, rank, kAbort, -6, KeyOf(rank), "python3", plan.uid, "");
  }
  if (first < 0) first = plan.first_local();
  if (plan.flight_recorder) FlightRecords(what, t + 0.9);
  t_ = t + 1.4;
  std::vector<int> aborting;
  for (const auto& [rank, index] : life_of_)
    if (std::find(what.ranks.begin(), what.ranks.end(), rank) == what.ranks.end())
      aborting.push_back(rank);
  for (const int rank : aborting) Die(t_ + 0.1 * random.Unit(), rank, kAbort);
  CleanUp(t_ + 0.2, first, kAbort);
}

// With TORCH_NCCL_DUMP_ON_TIMEOUT the watchdog of each rank writes what it knows of the group.
void World::FlightRecords(const Interruption& what, double t) {
  for (const auto& [rank, index] : life_of_) {
    const bool stuck = std::find(what.ranks.begin(), what.ranks.end(), rank) != what.ranks.end();
    const int64_t done = collectives_;
    std::vector<KeyValue> str = {{"version", "2.10"},
                                 {"nccl", "2.27.5"},
                                 {"group", "0"},
                                 {"description", "default_pg"},
                                 {"members", Text("0-%d", plan.ranks - 1)}};
    std::vector<IntKeyValue> num = {
        {"rank", rank},          {"index", 0},
        {"groups", 1},           {"cut", 0},
        {"written_ns", Wall(t)}, {"enqueued", stuck ? done : done + 1},
        {"completed", done},     {"entries", std::min<int64_t>(2000, done + 1)}};
    if (!stuck) {
      str.insert(str.end(), {{"operation", "all_reduce"},
                             {"sizes", "[[25165824]]"},
                             {"dtype", "BFloat16"},
                             {"state", "scheduled"}});
      num.push_back({"pending", done + 1});
      num.push_back({"created_ns", Wall(t - plan.nccl_timeout)});
    }
    Happen(t + 0.1 * random.Unit(), Source::kNcclDumps, EventType::kFlightRecord, rank,
           std::move(str), std::move(num));
  }
}

}  // namespace rankscope::generator
