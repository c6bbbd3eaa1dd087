// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The source of what ranks ask of CUDA: launches and the gaps between them, synchronisation,
// copies, allocations and those that fail, and whether they use it at all. Loop thread only.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "exporter/probes/calls/calls.h"
#include "exporter/probes/calls/cuda_numbers.h"
#include "exporter/probes/calls/launch_windows.h"

namespace rankscope::probes {

class Cuda final : public Calls {
 public:
  // `budget`: of one core, for each process.
  Cuda(std::shared_ptr<collectors::ProcessTable> processes, std::shared_ptr<TrackedMap> tracked,
       bool force, double budget);
  ~Cuda() override;

  void Stop() override;
  std::vector<exporter::ProbeUse> probes() const override;

 protected:
  void Report(const ProcessKey& process, int64_t now_ns, bool gone) override;
  void OnCall(const ProcessKey& process, const rs_call& call) override;
  void Forget(const ProcessKey& process) override;
  void OnSecond(int64_t now_ns) override;
  void OnAttached() override;
  std::string Shortcoming() const override;

 private:
  struct Caller {
    CudaNumbers numbers;
    ProbeRuns runs;       // as last seen
    bool worked = false;  // see CudaNumbers::HasWorked
  };
  struct Use {
    double told = 0;
    int64_t at_ns = 0;
  };

  CallerRuns ReadRuns() const;
  void Note(Caller& caller, const rs_cuda_counts& counts);
  void TellUses(int64_t now_ns);

  double budget_;
  std::map<ProcessKey, Caller> callers_;
  std::map<ProcessKey, Use> uses_;
  ProbeRuns total_;  // of all callers there ever were
  std::unique_ptr<LaunchWindows> windows_;
};

}  // namespace rankscope::probes
