// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The source that finds training processes in /proc, samples them each interval, and tells their
// birth and death. The reading happens on a worker: a process stuck in its driver must not stop the
// daemon. Loop thread only.
#pragma once

#include <memory>

#include "exporter/loop/event_loop.h"
#include "exporter/loop/worker.h"
#include "exporter/processes/proc_scanner.h"
#include "exporter/processes/process_table.h"
#include "exporter/source.h"

namespace rankscope::collectors {

class Procfs final : public exporter::Source {
 public:
  Procfs(ProcReader reader, std::shared_ptr<ProcessTable> table, Duration interval);
  ~Procfs() override;

  Status Start(exporter::EventLoop& loop, Sink& sink) override;
  void Stop() override;
  int64_t lost() const override;

 private:
  void Scan();
  void Apply(ScanResult result);

  ProcReader reader_;
  std::shared_ptr<ProcScanner> scanner_;
  std::shared_ptr<ProcessTable> table_;
  Duration interval_;
  std::unique_ptr<exporter::Worker> worker_;
  exporter::EventLoop::TimerId timer_ = 0;
  bool late_ = false;
  int64_t unseen_ = 0;  // looks that failed for reasons of our own
};

}  // namespace rankscope::collectors
