// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The source of what ranks ask of NCCL: collectives entered, communicators made and ended, and what
// the watchdog of PyTorch learns of work in flight. Loop thread only.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "exporter/probes/calls/calls.h"

namespace rankscope::probes {

class Nccl final : public Calls {
 public:
  Nccl(std::shared_ptr<collectors::ProcessTable> processes, std::shared_ptr<TrackedMap> tracked,
       bool force);
  ~Nccl() override;

  std::vector<exporter::ProbeUse> probes() const override;

 protected:
  void Report(const ProcessKey& process, int64_t now_ns, bool gone) override;
  void OnCall(const ProcessKey& process, const rs_call& call) override;
  void Forget(const ProcessKey& process) override;
  void OnSecond(int64_t now_ns) override;

 private:
  std::map<ProcessKey, int64_t> told_unknown_;  // when it was last told
  std::map<ProcessKey, uint64_t> calls_;        // as last seen
  uint64_t total_calls_ = 0;                    // of all callers there ever were
};

}  // namespace rankscope::probes
