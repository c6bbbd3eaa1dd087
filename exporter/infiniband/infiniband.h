// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The source of what the node's RDMA ports count: bytes for the whole host, since its jobs are
// watched (a counter since boot would leave no precision for a run), and per port what has gone
// wrong, told to each job when it is first seen and when something has changed. Not applicable
// where there is no device. Loop thread only; the files are read on a worker.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "detectors/model/observation.h"
#include "exporter/infiniband/infiniband_ports.h"
#include "exporter/loop/event_loop.h"
#include "exporter/loop/worker.h"
#include "exporter/processes/process_table.h"
#include "exporter/source.h"

namespace rankscope::collectors {

class Infiniband final : public exporter::Source {
 public:
  Infiniband(std::shared_ptr<ProcessTable> table, Duration interval, std::string sys_root = "/sys");
  ~Infiniband() override;

  Status Start(exporter::EventLoop& loop, Sink& sink) override;
  void Stop() override;

 private:
  // A counter that may wrap, be reset or stop at its largest value, as one that rises.
  struct Rising {
    int64_t last = kNotCounted;
    int64_t total = 0;
    void Add(int64_t value);
  };
  struct Port {
    bool up = false;
    std::string link;
    std::string state;
    Rising received, sent;
    std::array<Rising, kPortCounterKinds.size()> counts;
    int64_t version = 0;  // of what is told of it
    // Since then: looks, and whether a fault or anything else was counted.
    int64_t looks = kQuietLooks;
    bool fault = false, other = false;
  };
  // A port that counts faults without end is told once in so many looks, one that counts what is
  // daily life far less often: a job's facts have 8 MiB in its recording.
  static constexpr int64_t kStateLooks = 2;
  static constexpr int64_t kFaultLooks = 12;
  static constexpr int64_t kQuietLooks = 240;

  using PortName = std::pair<std::string, std::string>;  // device and port

  void Look();
  void Apply(const std::vector<PortReading>& readings);
  void TellPorts();

  std::shared_ptr<ProcessTable> table_;
  Duration interval_;
  std::string sys_root_;
  std::unique_ptr<exporter::Worker> worker_;
  exporter::EventLoop::TimerId timer_ = 0;
  bool late_ = false;
  std::map<PortName, Port> ports_;
  // What each job was told: by the process that stands for it, the version of each port.
  std::map<ProcessKey, std::map<PortName, int64_t>> told_;
};

}  // namespace rankscope::collectors
