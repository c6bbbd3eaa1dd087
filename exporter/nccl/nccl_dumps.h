// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The source that takes in what a job's libraries leave behind on disk: PyTorch's Flight Recorder
// (written by each rank's watchdog when a collective has timed out, or on request) and the log of
// NCCL Inspector (written all along where a job has switched it on). Looked for where each rank's
// environment says and at the known default places; a file is read when it has not changed between
// two looks, or its rank has ended. Loop thread only; the files of each user are read by a thread
// with his rights.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "detectors/model/observation.h"
#include "exporter/loop/event_loop.h"
#include "exporter/loop/user_identity.h"
#include "exporter/loop/user_workers.h"
#include "exporter/loop/worker.h"
#include "exporter/nccl/nccl_dump_reader.h"
#include "exporter/nccl/rank_roster.h"
#include "exporter/processes/process_table.h"
#include "exporter/source.h"

namespace rankscope::collectors {

class NcclDumps final : public exporter::Source {
 public:
  NcclDumps(std::shared_ptr<ProcessTable> table, Duration interval,
            std::string proc_root = "/proc");
  ~NcclDumps() override;

  Status Start(exporter::EventLoop& loop, Sink& sink) override;
  void Stop() override;
  // Dumps that could not be read, and events past a job's budget.
  int64_t lost() const override { return lost_; }

 private:
  struct Scout;
  struct Seen;
  struct Round;
  struct Rank {
    std::optional<exporter::UserIdentity> who;
    RankDumps dumps;    // what is known, but while a look has it
    bool busy = false;  // a look is under way
  };

  void Look();
  void OnSeen(const Seen& seen);
  void PlanLook(const RankProcess& process, bool gone,
                std::map<exporter::UserIdentity, Round>& rounds);
  void Submit(const exporter::UserIdentity& who, Round planned);
  void OnLook(DumpLook& look);
  void TellTroubles();

  std::shared_ptr<ProcessTable> table_;
  Duration interval_;
  std::string proc_root_;
  std::shared_ptr<Scout> scout_;  // the worker's, while it works
  std::unique_ptr<exporter::Worker> worker_;
  std::unique_ptr<exporter::UserWorkers> users_;
  exporter::EventLoop::TimerId timer_ = 0;
  std::map<ProcessKey, Rank> ranks_;
  std::map<std::pair<uint32_t, std::string>, int64_t> budgets_;  // events told, by user and job
  std::set<uint32_t> late_;                                      // users whose files do not answer
  bool stuck_ = false;                                           // the first worker does not return
  std::string told_;                                             // the reason that was told last
  int64_t lost_ = 0;
};

}  // namespace rankscope::collectors
