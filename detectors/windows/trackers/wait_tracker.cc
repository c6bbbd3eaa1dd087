// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/windows/trackers/wait_tracker.h"

#include <algorithm>
#include <cmath>

#include "detectors/model/event_types.h"

namespace rankscope::windows {
namespace {

// A process that runs for less than this of a second stands still: watchdogs and timers do that.
constexpr double kRanShare = 0.02;
constexpr double kHasRunSeconds = 0.5;

std::string_view Find(const Event& event, std::string_view key) {
  for (const KeyValue& pair : event.str) {
    if (pair.key == key) return pair.value;
  }
  return {};
}

int64_t FindNumber(const Event& event, std::string_view key) {
  for (const IntKeyValue& pair : event.num) {
    if (pair.key == key) return pair.value;
  }
  return 0;
}

// The growth of a running total; nothing at its first sight and when it began again.
float Advance(double& total, double now) {
  const double grown = now - total;
  total = now;
  return std::isfinite(grown) && grown > 0 ? static_cast<float>(grown) : 0;
}

// What has stopped it before does not explain its next stop.
void Resume(ProcessWaits& waits) {
  if (waits.stopped_since.ns == 0) return;
  waits.stopped_since = {};
  waits.stopper.clear();
  waits.stopper_pid = 0;
}

}  // namespace

ProcessWaits* WaitTracker::FindOrAdd(const Speaker& speaker, Timestamp t) {
  const bool worker = speaker.rank < 0;
  const int32_t rank = worker ? speaker.worker_of : speaker.rank;
  if (rank < 0 || speaker.process.pid == 0) return nullptr;
  auto found = processes_.find(speaker.process);
  if (found == processes_.end()) {
    if (processes_.size() >= kMost) {
      const auto oldest = std::min_element(
          processes_.begin(), processes_.end(),
          [](const auto& a, const auto& b) { return a.second.last < b.second.last; });
      // Who has just spoken stays; a newcomer of a crowd is not watched.
      if (t - oldest->second.last < Seconds(5)) return nullptr;
      processes_.erase(oldest);
    }
    found = processes_.emplace(speaker.process, ProcessWaits{}).first;
    found->second.process = speaker.process;
    found->second.first = t;
  }
  ProcessWaits& waits = found->second;
  waits.rank = rank;
  waits.worker = worker;
  if (waits.comm != speaker.comm) waits.comm = speaker.comm;
  return &waits;
}

void WaitTracker::OnEvent(const Event& event, const Speaker& speaker, Timestamp t) {
  const bool stop = event.type == WireType(EventType::kThreadStopped);
  const bool snapshot = event.type == WireType(EventType::kThreadSnapshot);
  if (!stop && !snapshot) return;
  ProcessWaits* const waits = FindOrAdd(speaker, t);
  if (waits == nullptr) return;
  if (stop) {
    const std::string_view what = Find(event, "what");
    if (what == "continued") {
      Resume(*waits);
    } else {
      waits->stopped_since = event.begin.ns != 0 ? event.begin : t;
    }
    waits->tracer = what == "traced" ? Find(event, "tracer").substr(0, 64) : std::string_view();
    return;
  }
  const auto text = [&event](std::string_view key) {
    return std::string(Find(event, key).substr(0, kTextCap));
  };
  ThreadSnapshot& to = waits->snapshot;
  to.t = t;
  to.wchan = text("wchan");
  to.syscall = text("syscall");
  to.fd = text("fd");
  to.stack = text("stack");
  to.python = text("python");
  to.holder = text(to.fd == "socket" ? "peer" : "holder");
  to.threads = FindNumber(event, "threads");
  to.tid = FindNumber(event, "tid");
}

void WaitTracker::OnRecord() {
  constexpr int64_t kMemory = 32;  // records: what a step costs may change with what it computes
  for (auto& [key, waits] : processes_) {
    if (!std::isfinite(waits.main_running)) continue;
    const double used = waits.main_running - waits.main_at_record;
    if (std::isfinite(used) && used >= 0) {
      waits.records = std::min(waits.records + 1, kMemory);
      const double before = waits.records == 1 ? used : waits.main_per_record;
      waits.main_per_record = before + (used - before) / static_cast<double>(waits.records);
    }
    waits.main_at_record = waits.main_running;
  }
}

void WaitTracker::OnStopSignal(const SignalSent& signal) {
  const auto found = processes_.find(signal.target);
  if (found == processes_.end()) return;
  found->second.stopper = signal.sender_comm.substr(0, 64);
  found->second.stopper_pid = signal.sender.pid;
  found->second.stopper_uid = signal.sender_uid;
}

void WaitTracker::OnSamples(const SampleBatch& batch, const Speaker& speaker, Timestamp t) {
  WaitSecond second;
  const Sample* main = nullptr;
  const Sample* state = nullptr;
  const Sample* frozen = nullptr;
  for (const Sample& sample : batch.samples) {
    if (sample.signal == SignalId::kMainWaitClass) main = &sample;
    if (sample.signal == SignalId::kProcessState) state = &sample;
    if (sample.signal == SignalId::kProcessFrozen) frozen = &sample;
  }
  if (main == nullptr && state == nullptr && frozen == nullptr) return;
  ProcessWaits* const waits = FindOrAdd(speaker, t);
  if (waits == nullptr) return;
  if (frozen != nullptr && !(frozen->value > 0)) {
    waits->frozen_since = {};
  } else if (frozen != nullptr && waits->frozen_since.ns == 0) {
    waits->frozen_since = t;
  }
  if (main == nullptr && state == nullptr) return;
  if (main == nullptr) {
    // Of a machine where nothing else tells of threads.
    constexpr double kStoppedState = 3;
    const bool stopped = state->value == kStoppedState;
    if (!stopped) {
      Resume(*waits);
    } else if (waits->stopped_since.ns == 0) {
      waits->stopped_since = t;
    }
    return;
  }
  for (const Sample& sample : batch.samples) {
    switch (sample.signal) {
      case SignalId::kRunningSeconds:
        second.running = Advance(waits->running, sample.value);
        break;
      case SignalId::kSilentRunningSeconds:
        second.silent = Advance(waits->silent, sample.value);
        break;
      case SignalId::kMainRunningSeconds:
        second.main_running = Advance(waits->main_running, sample.value);
        break;
      case SignalId::kMainRunnableSeconds:
        second.main_runnable = Advance(waits->main_runnable, sample.value);
        break;
      case SignalId::kMainWaitSeconds:
        waits->main_wait_seconds = sample.value;
        break;
      case SignalId::kOldestWaitSeconds:
        waits->oldest_wait_seconds = sample.value;
        break;
      case SignalId::kUninterruptibleThreads:
        waits->uninterruptible = static_cast<int32_t>(std::clamp(sample.value, 0.0, 1e6));
        break;
      default:
        break;
    }
  }
  const WaitClass now = WaitClassOf(main->value);
  waits->main = second.main = static_cast<uint8_t>(now);
  if (waits->last.ns != 0) {
    second.span = static_cast<float>((t - waits->last).seconds());
    if (second.running >= kRanShare * second.span) waits->ran = t;
    if (second.running >= kHasRunSeconds * second.span) waits->has_run = true;
    // What it did while nobody listened is of no second.
    if (waits->last >= speaker.unheard_until)
      waits->seconds[waits->written++ % ProcessWaits::kSeconds] = second;
  } else {
    waits->ran = t;  // not known: from here on
  }
  waits->last = t;
  if (now == WaitClass::kStopped) {
    if (waits->stopped_since.ns == 0)
      waits->stopped_since = t - Seconds(std::clamp(waits->main_wait_seconds, 0.0, 1e9));
  } else {
    Resume(*waits);
  }
}

}  // namespace rankscope::windows
