// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What the daemon's sources sample of a simulated job, at their own intervals: exporter/README.md,
// "Sources". Single thread.
#pragma once

#include <array>
#include <map>
#include <vector>

#include "tests/generator/world.h"

namespace rankscope::generator {

inline constexpr double kGiBytes = 1073741824.0;

class Sampler {
 public:
  explicit Sampler(World& world);

  // Adds the samples and ticks of the whole recording.
  void Run(double until);

 private:
  struct Totals {  // of one process
    double cpu = 0, read = 0, written = 0, major_faults = 0;
    double launches = 0, sync = 0, sync_calls = 0, copies = 0, copied = 0;
    double enqueued = 0, completed = 0, bytes = 0, queries = 0, inside = 0;
    double checkpoint_written = 0, checkpoint_read = 0, data_read = 0, data_seconds = 0;
    double write_seconds = 0, blocked = 0, first_launch = -1;
    double retransmits = 0, sent = 0, received = 0;
    double allocated = 0;
    std::array<double, 20> gaps{};
    std::array<double, 12> waits{};
    double main_running = 0, runnable = 0, silent = 0;
    double last_launch = -1;
    bool first = true;
  };
  struct Gpu {
    double temperature = 0, energy = 0, throttled = 0, nvlink = 0, pcie = 0;
    double identity_told = -100, holder_told = -100, holder_bytes = 0;
    int32_t holder = 0;
    bool lost_told = false;
  };

  const Life* Alive(int rank, double t) const;
  void OfProcess(const Life& life, double t);
  void Calls(const Life& life, const Second& second, Totals& totals, double t);
  void Collectives(const Life& life, const Second& second, Totals& totals, double t);
  void Waits(const Life& life, const Second& second, Totals& totals, double t, double runnable);
  void Files(const Life& life, const Second& second, Totals& totals, double t,
             const ProcessSecond& process);
  GpuSecond Reading(int rank, const Life* life, double t);
  void OfGpu(int rank, const Life* life, double t);
  void GpuFacts(int rank, const Life* life, const GpuSecond& gpu, double t);
  void OfHost(double t);
  void OfPorts(const HostSecond& host, double t);
  void Ras(double t);
  void Inspect(double t);

  World& world_;
  Random random_;
  std::map<int32_t, Totals> totals_;  // by pid
  std::map<int, Gpu> gpus_;
  double oom_kills_ = 0, job_oom_kills_ = 0;
  double cpu_waiting_ = 0, memory_waiting_ = 0, io_waiting_ = 0;
  double rdma_sent_ = 0;
  struct Port {
    double timeouts = 0, out_of_sequence = 0, symbols = 0, request_errors = 0, downs = 0;
    bool up = true;
    double told = -1e9, told_faults = 0;
    bool told_up = true;
  };
  std::array<Port, 4> ports_;
  size_t inspected_ = 0;  // of the steps
};

}  // namespace rankscope::generator
