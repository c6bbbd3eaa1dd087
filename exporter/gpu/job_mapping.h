// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The source of which job was given which GPU, as a prolog writes it for dcgm-exporter's
// --hpc-job-mapping-dir: a directory of files named by a GPU's index, or by an index and an
// instance ("0", "0.3"), each with a job id per line; an epilog empties or removes them. So an
// allocated GPU is its job's although no process of the job stands on the node. Loop thread only;
// the files are read on a worker.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "exporter/loop/event_loop.h"
#include "exporter/loop/worker.h"
#include "exporter/processes/process_table.h"
#include "exporter/source.h"

namespace rankscope::collectors {

class JobMapping final : public exporter::Source {
 public:
  using Jobs = std::map<std::string, std::set<std::string>>;  // job id -> names of its GPUs
  static constexpr size_t kMaxFiles = 1024;                   // 16 GPUs of 7 instances are 128
  static constexpr size_t kFileCap = 4096;  // a shared GPU has some ids of 10 digits

  JobMapping(std::string directory, Duration interval, std::shared_ptr<ProcessTable> table);
  ~JobMapping() override;

  Status Start(exporter::EventLoop& loop, Sink& sink) override;
  void Stop() override;
  // Files that were not believed, at the last look.
  int64_t lost() const override { return lost_; }

  // Whether the directory can be read, and what its files say; names and lines that are none are
  // passed over. Only what root (or who runs the daemon) alone can have written is believed.
  struct Reading {
    bool readable = false;
    bool open_to_all = false;  // anybody could replace its files
    int64_t foreign = 0;       // files that another user owns, or that all may write
    Jobs jobs;
  };
  static Reading Read(const std::string& directory);

 private:
  void Look();
  void Apply(const Reading& reading);
  void TellNewState(Availability state, std::string reason);
  void TellJob(const std::string& job, const std::set<std::string>& gpus);

  std::string directory_;
  Duration interval_;
  std::shared_ptr<ProcessTable> table_;
  std::unique_ptr<exporter::Worker> worker_;
  exporter::EventLoop::TimerId timer_ = 0;
  Availability state_ = Availability::kUnspecified;
  Jobs told_;
  int64_t lost_ = 0;
};

}  // namespace rankscope::collectors
