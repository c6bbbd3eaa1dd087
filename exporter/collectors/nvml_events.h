// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What is told of one GPU besides its numbers: which card it is and whether it answers, and who
// computes on it. At once when it changes, and now and then again, for a run that begins later, or
// begins anew, has heard none of it. Loop thread only.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "detectors/model/gpu_reading.h"
#include "detectors/model/observation.h"
#include "exporter/collectors/process_table.h"

namespace rankscope::collectors::nvml {

class Events {
 public:
  // Of the newest look; `table` knows the processes that belong to runs.
  std::vector<Event> Of(const GpuStatus& gpu, ProcessTable& table, Timestamp now);

 private:
  struct Holder {
    ProcessKey key;
    std::string name;
    double bytes = 0;
    Timestamp told;
  };

  void TellIdentity(const GpuStatus& gpu, Timestamp now, std::vector<Event>& out);
  void TellHolders(const GpuStatus& gpu, ProcessTable& table, Timestamp now,
                   std::vector<Event>& out);

  bool known_ = false;
  GpuIdentity identity_;
  GpuState state_{};
  Timestamp identity_told_;
  std::map<int32_t, Holder> holders_;  // by pid
};

}  // namespace rankscope::collectors::nvml
