// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The source that reads the kernel's log from now on: Xids, machine checks, hung tasks, file
// servers that do not answer. Every line of a kind is counted; the engine is told of each card's
// and each process's first one at once, and of those that follow at most one a second: a driver in
// trouble writes thousands. Loop thread only; never waits.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "exporter/collectors/kernel_line.h"
#include "exporter/collectors/process_table.h"
#include "exporter/event_loop.h"
#include "exporter/owned_fd.h"
#include "exporter/source.h"

namespace rankscope::collectors {

class Kmsg final : public exporter::Source {
 public:
  explicit Kmsg(std::shared_ptr<ProcessTable> table, std::string path = "/dev/kmsg");
  ~Kmsg() override;

  Status Start(exporter::EventLoop& loop, Sink& sink) override;
  void Stop() override;
  // Records that the kernel overwrote before they were read.
  int64_t lost() const override { return lost_; }
  // Lines by kind, all of them.
  std::vector<Count> counts() const override;
  std::vector<XidCount> xids() const override;

 private:
  using Subject =
      std::tuple<KernelLineKind, int32_t, std::string, int32_t>;  // kind, code, card, pid

  void Read();
  void Take(std::string_view record);
  void CountXid(const KernelLine& line, Timestamp now);
  void Tell(const KernelLine& line);

  std::shared_ptr<ProcessTable> table_;
  std::string path_;
  exporter::EventLoop* loop_ = nullptr;
  Sink* sink_ = nullptr;
  OwnedFd fd_;
  int64_t sequence_ = -1;  // of the newest record; -1 = none was read yet
  int64_t lost_ = 0;
  std::array<int64_t, kKernelLineNames.size()> lines_{};
  std::map<Subject, Timestamp> told_;
  std::map<std::pair<std::string, int32_t>, XidCount> xids_;  // by card and code
};

}  // namespace rankscope::collectors
