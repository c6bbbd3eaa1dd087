// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// How Slurm's nodes are, when that changed, and for how long each was out of service while it was
// looked at. Pure and bounded; single writer.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "detectors/model/slurm_report.h"
#include "exporter/slurm/records.h"

namespace rankscope::exporter::slurm {

class NodeLedger {
 public:
  static constexpr size_t kMaxNodes = 16'384;

  // Takes up an event told in an earlier life.
  void Remember(const SlurmEvent& event);

  // What a look at all nodes at `now` (seconds since 1970) tells that is new: node_down, node_drain
  // and node_up, with the time at which Slurm gave its reason, if it says. Numbers are not set.
  std::vector<SlurmEvent> Update(const std::vector<SlurmNode>& nodes, int64_t now,
                                 std::string_view source);

  // By name, those of the last look.
  std::vector<SlurmNodeState> States() const;

 private:
  struct Known {
    SlurmNodeState state;
    int64_t looked = 0;  // 0 = only remembered
    int64_t told = 0;    // time of the newest event
  };
  std::map<std::string, Known> nodes_;
  int64_t last_look_ = 0;
};

}  // namespace rankscope::exporter::slurm
