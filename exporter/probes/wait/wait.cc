// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/probes/wait/wait.h"

#include <algorithm>
#include <utility>

#include "detectors/model/event_types.h"
#include "exporter/loop/command.h"
#include "exporter/probes/attach/kernel_gate.h"
#include "exporter/probes/wait/python_stack.h"
#include "exporter/probes/wait/thread_snapshot.h"

namespace rankscope::probes {
namespace {

// Looking at 512 threads takes 10 ms; beyond this a process holds its own memory map.
constexpr Duration kLookDeadline = Seconds(5);
constexpr Duration kSnapshotDeadline = Seconds(15);
// Programs stay attached over the pause between two jobs.
constexpr int64_t kIdleTicks = 30;
// Stopped for less, a process is only resumed by its shell.
constexpr Duration kStopped = Seconds(1);
constexpr size_t kMostSeededThreads = 512;

}  // namespace

Wait::Wait(std::shared_ptr<collectors::ProcessTable> table, std::shared_ptr<TrackedMap> tracked,
           Kernel kernel, Duration interval)
    : table_(std::move(table)),
      tracked_(std::move(tracked)),
      kernel_(kernel),
      interval_(interval) {}

Wait::~Wait() {
  Stop();
}

std::string Wait::LoadPrograms() {
  if (kernel_ == Kernel::kOff) return "ebpf.mode is off";
  if (kernel_ == Kernel::kAuto) {
    if (const auto obstacle = ObstacleForTracepoints(LookAtKernel())) return obstacle->text;
  }
  const Result<int> tracked = tracked_->Open();
  if (!tracked) return tracked.error();
  auto programs = WaitPrograms::Load(*tracked);
  if (!programs) return programs.error();
  programs_ = std::move(*programs);
  return {};
}

Status Wait::Start(exporter::EventLoop& loop, Sink& sink) {
  sink_ = &sink;
  const std::string why_not = LoadPrograms();
  loop_ = &loop;
  worker_ = std::make_unique<exporter::Worker>(loop);
  snapshots_ = std::make_unique<exporter::Worker>(loop);
  if (!programs_) sampler_ = std::make_shared<ThreadSampler>(ThreadReader());
  py_spy_ = exporter::FindProgram("py-spy", PySpyFolders());
  timer_ = loop.Every(interval_, [this] { Tick(); });
  if (!why_not.empty()) {
    TellState(Availability::kUp,
              "waits are sampled from /proc every second, not counted in the kernel: " + why_not);
  }
  return {};
}

void Wait::Stop() {
  if (loop_ == nullptr) return;
  loop_->Cancel(timer_);
  worker_.reset();
  snapshots_.reset();
  lost_before_ = lost() - lost_looks_;
  programs_.reset();
  sampler_.reset();
  seeded_.clear();
  stopped_.clear();
  hangs_ = {};
  book_ = {};
  idle_ticks_ = 0;
  loop_ = nullptr;
}

int64_t Wait::lost() const {
  return lost_before_ + lost_looks_ + (programs_ ? programs_->lost() : 0);
}

void Wait::Tick() {
  std::vector<ProcessKey> processes;
  processes.reserve(table_->processes().size());
  for (const auto& [pid, process] : table_->processes()) processes.push_back(process.key);
  if (programs_) {
    TickKernel(processes);
  } else {
    TickSampling(std::move(processes));
  }
}

void Wait::TickKernel(const std::vector<ProcessKey>& processes) {
  idle_ticks_ = processes.empty() ? idle_ticks_ + 1 : 0;
  if (processes.empty()) {
    if (idle_ticks_ >= kIdleTicks) programs_->Detach();
    if (!programs_->attached()) return;
  } else if (const Status status = programs_->Attach(); !status.ok()) {
    return TellState(Availability::kDown, status.error());
  }
  std::vector<int32_t> pids;
  pids.reserve(processes.size());
  for (const ProcessKey& key : processes) pids.push_back(key.pid);
  programs_->Watch(pids);
  SeedNew(processes);
  const std::vector<ThreadTimes> threads = programs_->Read();
  Apply(processes, threads, loop_->Now());
}

void Wait::SeedNew(const std::vector<ProcessKey>& processes) {
  std::vector<int32_t> fresh;
  for (const ProcessKey& key : processes) {
    if (seeded_.insert(key).second) fresh.push_back(key.pid);
  }
  if (seeded_.size() > processes.size()) {
    const std::set<ProcessKey> present(processes.begin(), processes.end());
    std::erase_if(seeded_, [&present](const ProcessKey& key) { return !present.contains(key); });
  }
  if (fresh.empty()) return;
  const bool submitted = worker_->Submit(
      [this, fresh = std::move(fresh), now = loop_->Now()]() -> std::function<void()> {
        const ThreadReader reader;
        std::vector<ThreadTimes> threads;
        for (const int32_t pid : fresh) {
          for (const int32_t tid : reader.Threads(pid, kMostSeededThreads)) {
            // Who runs comes by itself.
            if (const auto look = reader.Look(pid, tid); look && look->state != 'R')
              threads.push_back(FirstSight(pid, *look, now));
          }
        }
        return [this, threads = std::move(threads)] {
          for (const ThreadTimes& thread : threads) programs_->Seed(thread);
        };
      },
      kLookDeadline, {});
  if (!submitted) ++lost_looks_;
}

void Wait::TickSampling(std::vector<ProcessKey> processes) {
  if (processes.empty()) return;
  if (worker_->pending() > 0) {  // the last look has not come back
    ++lost_looks_;
    return;
  }
  const bool submitted = worker_->Submit(
      [this, sampler = sampler_, processes = std::move(processes),
       now = loop_->Now()]() -> std::function<void()> {
        std::vector<int32_t> pids;
        for (const ProcessKey& key : processes) pids.push_back(key.pid);
        return [this, processes, now, threads = sampler->Sample(pids, now)] {
          Apply(processes, threads, now);
        };
      },
      kLookDeadline, {});
  if (!submitted) ++lost_looks_;
}

void Wait::Apply(const std::vector<ProcessKey>& processes, std::span<const ThreadTimes> threads,
                 Timestamp now) {
  book_.Update(processes, threads, now);
  for (const ProcessKey& key : processes) {
    const ProcessTimes* const times = book_.Find(key);
    if (times == nullptr) continue;
    SampleBatch batch;
    batch.subject.kind = Subject::Kind::kProcess;
    batch.subject.process = key;
    batch.samples = book_.TakeSamples(key);
    Tell(std::move(batch));
    FollowStop(key, *times, now);
    if (hangs_.Due(key, *times, now)) LookAt(key);
  }
  hangs_.Forget(now - Seconds(60));
  std::erase_if(stopped_, [this](const auto& entry) { return book_.Find(entry.first) == nullptr; });
}

// An event when a process has been stopped for a moment, and one when it goes on.
void Wait::FollowStop(const ProcessKey& process, const ProcessTimes& times, Timestamp now) {
  const auto found = stopped_.find(process);
  if (times.main != WaitClass::kStopped) {
    if (found == stopped_.end()) return;
    if (found->second.told) {
      Event event;
      event.process = process;
      event.type = WireType(EventType::kThreadStopped);
      event.str = {{"what", "continued"}};
      event.num = {{"milliseconds", (now - found->second.since).ns / 1'000'000}};
      event.begin = found->second.since;
      Tell(std::move(event));
    }
    stopped_.erase(found);
    return;
  }
  Stopped& stopped = stopped_[process];
  if (stopped.since.ns == 0) stopped.since = now - Seconds(times.main_wait_seconds);
  if (stopped.told || now - stopped.since < kStopped) return;
  const bool submitted = snapshots_->Submit(
      [this, process, since = stopped.since]() -> std::function<void()> {
        return [this, process, since, tracer = ThreadReader().Tracer(process.pid)] {
          TellStop(process, since, tracer);
        };
      },
      kSnapshotDeadline, {});
  stopped.told = submitted;
}

void Wait::TellStop(const ProcessKey& process, Timestamp since, std::string tracer) {
  Event event;
  event.process = process;
  event.type = WireType(EventType::kThreadStopped);
  event.str = {{"what", tracer.empty() ? "stopped" : "traced"}};
  if (!tracer.empty()) event.str.push_back({"tracer", std::move(tracer)});
  event.begin = since;
  Tell(std::move(event));
}

void Wait::LookAt(const ProcessKey& process) {
  std::vector<int32_t> own;
  own.reserve(table_->processes().size());
  for (const auto& [pid, tracked] : table_->processes()) own.push_back(pid);
  const bool submitted = snapshots_->Submit(
      [this, process, py_spy = py_spy_, own = std::move(own)]() -> std::function<void()> {
        auto event = TakeSnapshot(ThreadReader(), py_spy, process, own);
        if (!event) return {};
        return [this, event = std::move(*event)] { Tell(event); };
      },
      kSnapshotDeadline, {});
  if (!submitted) ++lost_looks_;
}

}  // namespace rankscope::probes
