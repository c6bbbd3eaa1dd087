// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/probes/wait/wait_book.h"

#include <algorithm>

namespace rankscope::probes {
namespace {

struct ClassRow {
  SignalId signal;
  WaitClass first;
  WaitClass second;  // counted under the same name; the same = none
};

constexpr std::array kRows = {
    ClassRow{SignalId::kRunningSeconds, WaitClass::kRunning, WaitClass::kRunning},
    ClassRow{SignalId::kRunnableSeconds, WaitClass::kRunnable, WaitClass::kRunnable},
    ClassRow{SignalId::kWaitFutexSeconds, WaitClass::kFutex, WaitClass::kFutex},
    ClassRow{SignalId::kWaitSocketSeconds, WaitClass::kSocket, WaitClass::kSocket},
    ClassRow{SignalId::kWaitNetworkFileSeconds, WaitClass::kNetworkFile, WaitClass::kNetworkFile},
    ClassRow{SignalId::kWaitBlockSeconds, WaitClass::kBlock, WaitClass::kFileLock},
    ClassRow{SignalId::kWaitGpuSeconds, WaitClass::kGpu, WaitClass::kGpu},
    ClassRow{SignalId::kWaitSleepSeconds, WaitClass::kSleep, WaitClass::kSleep},
    ClassRow{SignalId::kStoppedSeconds, WaitClass::kStopped, WaitClass::kStopped},
    ClassRow{SignalId::kWaitOtherSeconds, WaitClass::kOther, WaitClass::kChild},
};

bool EndedByDevice(const ThreadTimes& thread) {
  return thread.uninterruptible || thread.state == WaitClass::kNetworkFile ||
         thread.state == WaitClass::kBlock || thread.state == WaitClass::kGpu ||
         thread.state == WaitClass::kFileLock;
}

}  // namespace

void WaitBook::Update(const std::vector<ProcessKey>& processes,
                      std::span<const ThreadTimes> threads, Timestamp now) {
  for (auto& [key, page] : pages_) page.seen = false;
  std::map<int32_t, Page*> by_pid;
  for (const ProcessKey& key : processes) {
    Page& page = pages_[key];
    page.seen = true;
    page.now = {};
    for (int i = 0; i < kWaitClasses; ++i)
      page.now.seconds[static_cast<size_t>(i)] = page.ended.spent[static_cast<size_t>(i)].seconds();
    page.now.silent_seconds = page.ended.silent.seconds();
    by_pid[key.pid] = &page;
  }
  std::erase_if(pages_, [](const auto& entry) { return !entry.second.seen; });
  for (const ThreadTimes& thread : threads) {
    const auto found = by_pid.find(thread.tgid);
    if (found == by_pid.end()) continue;
    Page& page = *found->second;
    ProcessTimes& sum = page.now;
    for (int i = 0; i < kWaitClasses; ++i) {
      const auto of = static_cast<size_t>(i);
      const Duration spent =
          thread.ended ? thread.spent[of] : thread.Spent(static_cast<WaitClass>(i), now);
      sum.seconds[of] += spent.seconds();
      if (thread.ended) page.ended.spent[of] = page.ended.spent[of] + spent;
    }
    sum.silent_seconds += thread.Silent(now).seconds();
    if (thread.ended) {
      page.ended.silent = page.ended.silent + thread.silent;
      continue;
    }
    ++sum.threads;
    if (thread.uninterruptible) ++sum.uninterruptible;
    if (EndedByDevice(thread))
      sum.oldest_wait_seconds = std::max(sum.oldest_wait_seconds, thread.Waited(now).seconds());
    if (thread.tid != thread.tgid) continue;
    sum.main = thread.state;
    sum.main_wait_seconds = thread.Waited(now).seconds();
    sum.main_running_seconds = thread.Spent(WaitClass::kRunning, now).seconds();
    sum.main_runnable_seconds = thread.Spent(WaitClass::kRunnable, now).seconds();
  }
}

const ProcessTimes* WaitBook::Find(const ProcessKey& process) const {
  const auto found = pages_.find(process);
  return found == pages_.end() || found->second.now.threads == 0 ? nullptr : &found->second.now;
}

std::vector<Sample> WaitBook::TakeSamples(const ProcessKey& process) {
  std::vector<Sample> samples;
  const ProcessTimes* const times = Find(process);
  if (times == nullptr) return samples;
  Page& page = pages_.find(process)->second;
  const auto tell = [&](SignalId signal, double value, bool always = false) {
    const auto [told, fresh] = page.told.try_emplace(signal, value);
    if (!fresh && !always && told->second == value) return;
    told->second = value;
    samples.push_back({signal, value});
  };
  for (const ClassRow& row : kRows) {
    double seconds = times->seconds[static_cast<size_t>(row.first)];
    if (row.second != row.first) seconds += times->seconds[static_cast<size_t>(row.second)];
    tell(row.signal, seconds);
  }
  tell(SignalId::kSilentRunningSeconds, times->silent_seconds);
  tell(SignalId::kOldestWaitSeconds, times->oldest_wait_seconds);
  tell(SignalId::kUninterruptibleThreads, times->uninterruptible);
  tell(SignalId::kMainRunningSeconds, times->main_running_seconds);
  tell(SignalId::kMainRunnableSeconds, times->main_runnable_seconds);
  tell(SignalId::kMainWaitSeconds, times->main_wait_seconds);
  tell(SignalId::kMainWaitClass, static_cast<double>(times->main), true);  // the sign that it lives
  return samples;
}

}  // namespace rankscope::probes
