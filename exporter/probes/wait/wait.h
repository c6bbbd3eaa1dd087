// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The source that says why a process does not move: what its threads wait for, each second; when it
// is stopped and goes on; and its stacks when it stands still. Counted in the kernel where programs
// can run there, else by looking into /proc each second. Loop thread only.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "exporter/loop/event_loop.h"
#include "exporter/loop/worker.h"
#include "exporter/probes/attach/tracked_map.h"
#include "exporter/probes/wait/hang_watch.h"
#include "exporter/probes/wait/thread_sampler.h"
#include "exporter/probes/wait/wait_book.h"
#include "exporter/probes/wait/wait_programs.h"
#include "exporter/processes/process_table.h"
#include "exporter/source.h"

namespace rankscope::probes {

class Wait final : public exporter::Source {
 public:
  enum class Kernel : uint8_t { kOff, kAuto, kForce };

  Wait(std::shared_ptr<collectors::ProcessTable> table, std::shared_ptr<TrackedMap> tracked,
       Kernel kernel, Duration interval);
  ~Wait() override;

  Status Start(exporter::EventLoop& loop, Sink& sink) override;
  void Stop() override;
  int64_t lost() const override;

 private:
  struct Stopped {
    Timestamp since;
    bool told = false;
  };

  std::string LoadPrograms();  // why not; empty: they are there
  void Tick();
  void TickKernel(const std::vector<ProcessKey>& processes);
  void TickSampling(std::vector<ProcessKey> processes);
  void SeedNew(const std::vector<ProcessKey>& processes);
  void Apply(const std::vector<ProcessKey>& processes, std::span<const ThreadTimes> threads,
             Timestamp now);
  void FollowStop(const ProcessKey& process, const ProcessTimes& times, Timestamp now);
  void TellStop(const ProcessKey& process, Timestamp since, std::string tracer);
  void LookAt(const ProcessKey& process);

  std::shared_ptr<collectors::ProcessTable> table_;
  std::shared_ptr<TrackedMap> tracked_;
  Kernel kernel_;
  Duration interval_;
  std::unique_ptr<WaitPrograms> programs_;
  std::shared_ptr<ThreadSampler> sampler_;
  std::unique_ptr<exporter::Worker> worker_;     // each second's looks
  std::unique_ptr<exporter::Worker> snapshots_;  // and the long ones
  exporter::EventLoop::TimerId timer_ = 0;
  WaitBook book_;
  HangWatch hangs_;
  std::map<ProcessKey, Stopped> stopped_;
  std::set<ProcessKey> seeded_;
  std::string py_spy_;
  int64_t idle_ticks_ = 0;
  int64_t lost_before_ = 0;  // by programs of earlier starts
  int64_t lost_looks_ = 0;
};

}  // namespace rankscope::probes
