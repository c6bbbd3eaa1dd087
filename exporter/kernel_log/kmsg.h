// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The source that reads the kernel's log: Xids, machine checks, hung tasks, file servers that do
// not answer. Every line of a kind is counted; the engine is told of each GPU's and each process's
// first one at once, and of those that follow at most one a second: a driver in trouble writes
// thousands. What the NVIDIA driver says is believed where that driver is there, and of a GPU that
// is one of its own. Of what was logged before the source began only the Xids are kept, for what
// the GPUs carry along: nothing of it is counted or told. Loop thread only; never waits.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "exporter/gpu/xid_ledger.h"
#include "exporter/kernel_log/kernel_line.h"
#include "exporter/loop/event_loop.h"
#include "exporter/loop/owned_fd.h"
#include "exporter/processes/process_table.h"
#include "exporter/source.h"

namespace rankscope::collectors {

class Kmsg final : public exporter::Source {
 public:
  explicit Kmsg(std::shared_ptr<ProcessTable> table,
                std::shared_ptr<XidLedger> xids = std::make_shared<XidLedger>(),
                std::string path = "/dev/kmsg", std::string driver = "/proc/driver/nvidia");
  ~Kmsg() override;

  Status Start(exporter::EventLoop& loop, Sink& sink) override;
  void Stop() override;
  // Records that the kernel overwrote before they were read, or of more GPUs and processes than
  // are told of.
  int64_t lost() const override { return lost_; }
  // Lines by kind, all of them, and "unconfirmed" ones.
  std::vector<Count> counts() const override;

 private:
  using Subject =
      std::tuple<KernelEventType, int32_t, std::string, int32_t>;  // kind, code, GPU, pid

  void Read();
  void Take(std::string_view record);
  void Believe(const KernelLine& line, Timestamp now);
  // Of a line that is the rest of another: the library tells the same, or does not listen.
  bool IsWitnessed(const KernelLine& line, Timestamp now) const;
  void Hold(KernelLine line, Timestamp now);
  void AskLibraryAgain();
  void TakeXid(const KernelLine& line, Timestamp now);
  void Tell(const KernelLine& line);
  bool IsConfirmed(const KernelLine& line, Timestamp now);
  bool AsksDriver(const std::string& card) const;

  std::shared_ptr<ProcessTable> table_;
  std::shared_ptr<XidLedger> xids_;
  std::string path_;
  std::string driver_;  // a folder that its module makes
  OwnedFd fd_;
  int64_t sequence_ = -1;  // of the newest record; -1 = none was read yet
  int64_t lost_ = 0;
  std::array<int64_t, kKernelLogTypes> lines_{};
  std::map<Subject, Timestamp> told_;
  int64_t unconfirmed_ = 0;
  // Whether a GPU is the driver's, and when that was asked.
  struct Answer {
    bool its = false;
    Timestamp asked;
  };
  std::map<std::string, Answer> answers_;
  struct Held {
    KernelLine line;
    Timestamp t;
  };
  std::deque<Held> held_;  // until the library tells the same
  bool old_ = true;        // what is read was logged before the source began
  std::string long_loss_;  // the GPU of a message in several records
  int64_t long_loss_sequence_ = 0;
};

}  // namespace rankscope::collectors
