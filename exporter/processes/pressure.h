// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Pressure stall information: the time for which tasks waited for CPU, memory or I/O, of the host
// (/proc/pressure, Linux 4.20 with CONFIG_PSI) and of each job's cgroup (version 2 only). Some
// distributions have it switched off until the kernel is booted with psi=1; the files are then
// absent, or reading them fails with EOPNOTSUPP. Loop thread; files are read on a worker.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "detectors/model/observation.h"
#include "exporter/loop/event_loop.h"
#include "exporter/loop/worker.h"
#include "exporter/processes/process_table.h"
#include "exporter/source.h"

namespace rankscope::collectors {

// Seconds since boot, or since the cgroup was made.
struct StallTime {
  std::optional<double> some;  // at least one task waited
  std::optional<double> full;  // all tasks that were not idle waited
};

// "some avg10=0.00 avg60=0.00 avg300=0.00 total=1234\nfull ... total=567\n"; totals are
// microseconds. Linux before 5.13 has no "full" line for the CPU. Pure.
StallTime ParsePressure(std::string_view text);
// Of a file; empty where it is absent or cannot be read.
StallTime ReadPressure(const std::string& path);

class Pressure final : public exporter::Source {
 public:
  Pressure(std::shared_ptr<ProcessTable> table, Duration interval, std::string proc_root = "/proc",
           std::string cgroup_root = "/sys/fs/cgroup");
  ~Pressure() override;

  Status Start(exporter::EventLoop& loop, Sink& sink) override;
  void Stop() override;

 private:
  using Jobs = std::map<std::string, std::string>;  // job -> directory of its cgroup

  void Poll();
  Jobs JobDirectories() const;
  void Apply(const std::vector<SampleBatch>& batches);

  std::shared_ptr<ProcessTable> table_;
  Duration interval_;
  std::string proc_root_;
  std::string cgroup_root_;
  exporter::EventLoop::TimerId timer_ = 0;
  std::unique_ptr<exporter::Worker> worker_;
};

}  // namespace rankscope::collectors
