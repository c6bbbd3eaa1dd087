// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The source that hears of every fork, exec and exit from the kernel, with the exit status that
// otherwise only the parent learns. Needs CAP_NET_ADMIN and the machine's first pid namespace: the
// kernel counts by ids of that one. In a container with the host's network but pids of its own,
// what other programs have subscribed to arrives here as well, and their ids are other processes'
// here, so that nothing is believed before the kernel has answered our own request. Tells
// about tracked processes and their children; a stranger's exec is looked at, within a budget,
// because a rank may live shorter than a scan's interval. Loop thread only.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "exporter/loop/event_loop.h"
#include "exporter/loop/worker.h"
#include "exporter/processes/proc_event.h"
#include "exporter/processes/proc_reader.h"
#include "exporter/processes/process_table.h"
#include "exporter/source.h"

namespace rankscope::collectors {

class ProcConnector final : public exporter::Source {
 public:
  ProcConnector(ProcReader reader, std::shared_ptr<ProcessTable> table);
  ~ProcConnector() override;

  Status Start(exporter::EventLoop& loop, Sink& sink) override;
  void Stop() override;
  int64_t lost() const override { return lost_; }

 private:
  Status Fail(Availability state, std::string reason);
  void Receive();
  void Handle(const ProcEvent& event);
  void OnFork(const ProcEvent& event);
  void OnExec(const ProcEvent& event);
  void OnExit(const ProcEvent& event);
  void AskFacts(StatLine stat);
  void OnFacts(const ProcessKey& key, std::optional<ProcessFacts> facts);

  ProcReader reader_;
  std::shared_ptr<ProcessTable> table_;
  std::unique_ptr<exporter::Worker> worker_;
  exporter::EventLoop::TimerId ack_timer_ = 0;
  int fd_ = -1;
  uint32_t request_ = 0;  // the number of our subscription
  bool acknowledged_ = false;
  int64_t lost_ = 0;
  int64_t looks_second_ = 0;  // the second that looks_left_ is the budget of
  int looks_left_ = 0;
};

}  // namespace rankscope::collectors
