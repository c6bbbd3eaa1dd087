// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The source that has the kernel watch what training processes do with files: checkpoints written,
// read, looked for and not found, calls that fail, syncs that hang; and looks how much room their
// file systems have left, on a worker with a deadline, for a file server that is gone takes its
// callers with it. Loop thread only.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "bpf/events/io.h"
#include "exporter/loop/user_workers.h"
#include "exporter/loop/worker.h"
#include "exporter/probes/attach/probe_source.h"
#include "exporter/probes/attach/told.h"
#include "exporter/probes/io/io_programs.h"

namespace rankscope::probes {

class Io final : public ProbeSource {
 public:
  Io(std::shared_ptr<collectors::ProcessTable> table, std::shared_ptr<TrackedMap> tracked,
     bool force);
  ~Io() override;

  Status Start(exporter::EventLoop& loop, Sink& sink) override;
  void Stop() override;
  int64_t lost() const override;

 private:
  struct KeyOrder {
    bool operator()(const rs_io_failure_key& a, const rs_io_failure_key& b) const;
  };
  struct Known {
    ProcessKey key;
    rs_io_process last{};
    std::string checkpoints;  // the directory that it last wrote one to; empty = none
    Timestamp hang_told;
  };

  void Look();
  void TellFailures();
  void TellNumbers();
  void TellHangs();
  void ForgetEnded();
  void OnEvent(const rs_io_event& event);
  void OnClosed(const rs_io_event& event, const ProcessKey& process);
  void FindDirectory(const rs_io_event& event, const ProcessKey& process);
  void LookForSpace();
  void AskSpace(const ProcessKey& process, const char* file_system, std::string directory,
                SignalId signal);
  std::optional<ProcessKey> Resolve(uint32_t pid, uint64_t start_ns);

  exporter::EventLoop::TimerId timer_ = 0;
  std::unique_ptr<IoPrograms> programs_;
  std::unique_ptr<exporter::Worker> worker_;          // for links of /proc
  std::unique_ptr<exporter::UserWorkers> users_;      // for what users have chosen
  std::map<uint32_t, Known> known_;                   // as many as the kernel's map holds
  std::map<rs_io_failure_key, Told, KeyOrder> told_;  // as many as the kernel's map holds
  int64_t looks_ = 0;
  int64_t lost_before_ = 0;
  int64_t dropped_ = 0;
};

}  // namespace rankscope::probes
