// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What is told of one GPU besides its numbers: which GPU it is, whether it answers and what its
// Xids ask for, and who computes on it. At once when it changes, and again for each run that
// begins, which has heard none of it, and now and then for one that begins anew. Loop thread only.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "detectors/model/event_types.h"
#include "detectors/model/gpu_reading.h"
#include "detectors/model/observation.h"
#include "exporter/processes/process_table.h"

namespace rankscope::collectors::nvml {

class Events {
 public:
  // Of the newest look; `table` knows the processes that belong to runs.
  std::vector<Event> Of(const GpuStatus& gpu, const XidPending& pending, ProcessTable& table,
                        Timestamp now);

 private:
  struct Holder {
    ProcessKey key;
    std::string name;
    double bytes = 0;
    Timestamp told;
  };

  Event OfCard(EventType type, const GpuStatus& gpu) const;
  Event OfHolder(const GpuStatus& gpu, const ProcessKey& key) const;
  void TellIdentity(const GpuStatus& gpu, int64_t begun, Timestamp now, std::vector<Event>& out);
  void TellHolders(const GpuStatus& gpu, ProcessTable& table, Timestamp now,
                   std::vector<Event>& out);

  bool known_ = false;
  GpuIdentity identity_;
  GpuState state_{};
  int32_t xid_ = 0;  // the GPU waits for what it asks for; 0 = for nothing
  Timestamp xid_since_;
  std::vector<IntKeyValue> facts_;  // as they were told last
  int64_t begun_ = 0;               // runs, by then
  Timestamp identity_told_;
  std::map<int32_t, Holder> holders_;  // by pid
};

}  // namespace rankscope::collectors::nvml
