// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/probes/wait/thread_sampler.h"

#include <algorithm>

#include "bpf/events/sched.h"

namespace rankscope::probes {
namespace {

// Of a second; below it the thread was woken and went on to wait for the same.
constexpr double kMoved = 0.001;
// A thread that waits for less than this of a second runs.
constexpr double kWaits = 0.05;

void Add(ThreadTimes& times, WaitClass of, Duration more) {
  Duration& total = times.spent[static_cast<size_t>(of)];
  if (more.ns > 0) total = total + more;
}

}  // namespace

ThreadTimes FirstSight(int32_t pid, const ThreadLook& look, Timestamp now) {
  ThreadTimes times;
  times.tid = look.tid;
  times.tgid = pid;
  times.state = look.wait_class();
  times.since = times.counted_to = now;
  times.call = look.call ? look.call->number : -1;
  times.uninterruptible = look.state == 'D';
  return times;
}

void ThreadSampler::Count(const ThreadLook& look, Timestamp now, Seen& seen) const {
  ThreadTimes& times = seen.times;
  const Duration passed = now - times.counted_to;
  const bool counted = look.ran.ns >= 0 && seen.ran.ns >= 0;
  const WaitClass state = look.wait_class();
  Duration ran{counted ? look.ran.ns - seen.ran.ns : 0};
  const Duration runnable{counted ? look.runnable.ns - seen.runnable.ns : 0};
  if (!counted && state == WaitClass::kRunning) ran = passed;
  const Duration rest{std::max<int64_t>(0, passed.ns - ran.ns - runnable.ns)};
  Add(times, WaitClass::kRunning, ran);
  Add(times, WaitClass::kRunnable, runnable);
  // Who runs at this moment has waited for what it was last seen to wait for.
  const WaitClass waited = !IsOnCpu(state)         ? state
                           : !IsOnCpu(times.state) ? times.state
                                                   : WaitClass::kOther;
  Add(times, waited, rest);
  const double share = passed.ns > 0 ? 1.0 / passed.seconds() : 0;
  if (rest.seconds() * share < kWaits) {
    times.run = times.run + ran;
  } else {
    if (times.run.ns >= RS_SILENT_NS) times.silent = times.silent + times.run;
    times.run = {};
  }
  if (state != times.state || ran.seconds() * share > kMoved)
    times.since = IsOnCpu(state) ? now : now - (state == times.state ? Duration{} : rest);
  times.state = state;
  times.counted_to = now;
  times.call = look.call ? look.call->number : -1;
  times.uninterruptible = look.state == 'D';
}

std::vector<ThreadTimes> ThreadSampler::Sample(const std::vector<int32_t>& pids, Timestamp now) {
  ++round_;
  std::vector<ThreadTimes> all;
  const size_t each = pids.empty() ? 0 : std::max<size_t>(1, kMostThreads / pids.size());
  for (const int32_t pid : pids) {
    if (all.size() >= kMostThreads) break;
    for (const int32_t tid : reader_.Threads(pid, each)) {
      const auto look = reader_.Look(pid, tid);
      if (!look) continue;
      const auto [found, fresh] = seen_.try_emplace(tid);
      Seen& seen = found->second;
      if (fresh || seen.times.tgid != pid) {
        seen = {};
        seen.times = FirstSight(pid, *look, now);
      } else {
        Count(*look, now, seen);
      }
      seen.ran = look->ran;
      seen.runnable = look->runnable;
      seen.round = round_;
      all.push_back(seen.times);
    }
  }
  std::erase_if(seen_, [this](const auto& entry) { return entry.second.round != round_; });
  return all;
}

}  // namespace rankscope::probes
