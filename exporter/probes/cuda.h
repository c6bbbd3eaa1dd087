// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The source of what ranks ask of CUDA: launches and the gaps between them, synchronisation,
// copies, allocations and those that fail. Loop thread only.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "exporter/probes/calls.h"
#include "exporter/probes/cuda_numbers.h"

namespace rankscope::probes {

class Cuda final : public Calls {
 public:
  Cuda(std::shared_ptr<collectors::ProcessTable> processes, std::shared_ptr<TrackedMap> tracked,
       bool force);
  ~Cuda() override;

 protected:
  void Report(const ProcessKey& process, int64_t now_ns, bool gone) override;
  void OnCall(const ProcessKey& process, const rs_call& call) override;
  void Forget(const ProcessKey& process) override;

 private:
  std::map<ProcessKey, CudaNumbers> numbers_;
  LaunchWatch watch_;
};

}  // namespace rankscope::probes
