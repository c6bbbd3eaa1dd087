// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The source that takes in what a job's libraries leave behind on disk: PyTorch's Flight Recorder
// (written by each rank's watchdog when a collective has timed out, or on request) and the log of
// NCCL Inspector (written all along where a job has switched it on). Looked for where each rank's
// environment says and at the known default places; a file is read when it has not changed between
// two looks, or its rank has ended. Loop thread only; files are read on a worker.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "detectors/model/observation.h"
#include "exporter/collectors/process_table.h"
#include "exporter/event_loop.h"
#include "exporter/source.h"
#include "exporter/worker.h"

namespace rankscope::collectors {

class NcclDumps final : public exporter::Source {
 public:
  NcclDumps(std::shared_ptr<ProcessTable> table, Duration interval,
            std::string proc_root = "/proc");
  ~NcclDumps() override;

  Status Start(exporter::EventLoop& loop, Sink& sink) override;
  void Stop() override;
  // Dumps that could not be read, and events past a job's budget.
  int64_t lost() const override { return lost_; }

 private:
  struct Reader;
  struct Found {
    std::vector<Event> events;
    int64_t lost = 0;  // since the beginning
  };
  void Look();
  void Tell(auto kind);

  std::shared_ptr<ProcessTable> table_;
  Duration interval_;
  std::string proc_root_;
  std::shared_ptr<Reader> reader_;  // the worker's, while it works
  exporter::EventLoop* loop_ = nullptr;
  Sink* sink_ = nullptr;
  std::unique_ptr<exporter::Worker> worker_;
  exporter::EventLoop::TimerId timer_ = 0;
  int64_t lost_ = 0;
  bool late_ = false;
};

}  // namespace rankscope::collectors
