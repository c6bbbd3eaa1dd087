// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The source that has the kernel count processes: each exec with its environment and cgroup, each
// child of a tracked process, how each ended, who sent it a fatal signal, and what the kernel's
// out-of-memory killer did. Nothing is missed for being short-lived. Takes the place of the process
// connector while it runs. Loop thread only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "bpf/events/process.h"
#include "exporter/loop/worker.h"
#include "exporter/probes/attach/probe_source.h"
#include "exporter/probes/process/oom_log.h"
#include "exporter/probes/process/process_programs.h"
#include "exporter/processes/proc_reader.h"

namespace rankscope::probes {

// Whether an environment variable may leave the process.
using collectors::KeepKey;

// bpf/events/process.h in the words of detectors/model. Pure.
std::string CgroupPath(const rs_cgroup& cgroup, uint32_t from_level = 0);
collectors::ProcessFacts FactsOf(const rs_exec& exec, KeepKey keep);

class Process final : public ProbeSource {
 public:
  Process(collectors::ProcReader reader, KeepKey keep,
          std::shared_ptr<collectors::ProcessTable> table, std::shared_ptr<TrackedMap> tracked,
          bool force);
  ~Process() override;

  Status Start(exporter::EventLoop& loop, Sink& sink) override;
  void Stop() override;
  int64_t lost() const override;

 private:
  // A kill by the kernel whose reason follows.
  struct KernelKill {
    ProcessKey target;
    int64_t limit_bytes = 0;  // 0 = the process stands at no limit
    int64_t used_bytes = 0;
    std::string limit_owner;
    bool v1 = false;
  };

  void OnEvent(std::span<const std::byte> bytes);
  void OnFork(const rs_fork& event);
  void OnExec(const rs_exec& event);
  void OnExit(const rs_exit& event);
  void OnSignal(const rs_signal& event);
  void OnOom(const rs_oom& event);
  void ReadFacts(const ProcessKey& key);
  void OnFacts(collectors::ProcessFacts facts, Timestamp t);

  collectors::ProcReader reader_;
  KeepKey keep_;
  std::unique_ptr<ProcessPrograms> programs_;
  std::unique_ptr<exporter::Worker> worker_;
  OomLog oom_log_;
  // Of the moments between a kill and its reason; bounded, for kernels that give none.
  static constexpr size_t kMaxKernelKills = 256;
  std::map<int32_t, KernelKill> kernel_kills_;
  // Those whose facts a worker reads, at most as many as it takes; with their end, when it came
  // first.
  std::map<ProcessKey, std::optional<rs_exit>> awaited_;
  int64_t lost_before_ = 0;  // by programs of earlier starts
  int64_t malformed_ = 0;
};

}  // namespace rankscope::probes
