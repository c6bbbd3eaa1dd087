// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The source that asks the RAS service of each job on this node what it knows of all its ranks, on
// every node. One question at a time, on a worker: the service answers when its peers do, or never.
// A question makes all ranks of the job answer, so the node of rank 0 asks at each interval and the
// others at every fifth. Loop thread only.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "detectors/model/observation.h"
#include "exporter/loop/event_loop.h"
#include "exporter/loop/worker.h"
#include "exporter/nccl/nccl_ras_diary.h"
#include "exporter/nccl/rank_roster.h"
#include "exporter/processes/process_table.h"
#include "exporter/source.h"

namespace rankscope::collectors {

class NcclRas final : public exporter::Source {
 public:
  NcclRas(std::shared_ptr<ProcessTable> table, Duration interval, std::string proc_root = "/proc");
  ~NcclRas() override;

  Status Start(exporter::EventLoop& loop, Sink& sink) override;
  void Stop() override;
  int64_t lost() const override { return lost_; }  // reports past a job's budget

 private:
  struct Poll;
  struct Round;
  void Ask();
  void Apply(Round& round);

  std::shared_ptr<ProcessTable> table_;
  Duration interval_;
  std::string proc_root_;
  std::shared_ptr<Poll> poll_;  // the worker's, while it works
  std::unique_ptr<exporter::Worker> worker_;
  exporter::EventLoop::TimerId timer_ = 0;
  int64_t lost_ = 0;
  bool late_ = false;
};

}  // namespace rankscope::collectors
