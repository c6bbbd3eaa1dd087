// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What the engine knows of one job, for those who show it: pointers into the engine's memory, valid
// until the next call of Accept or Tick. Loop thread only.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "detectors/model/time.h"
#include "detectors/proto/verdict.pb.h"

namespace rankscope::attribution {
class Attribution;
}
namespace rankscope::windows {
class JobWindow;
}

namespace rankscope::engine {

struct Assertion;

struct JobView {
  std::string_view job_id;
  int64_t uid = -1;                         // of its owner; -1 = not known
  bool running = true;                      // of a job that is not watched: as far as is known
  bool watched = true;                      // false: the verdict says only why it is not
  const proto::Verdict* verdict = nullptr;  // the newest; never null

  // Of a job that is watched and whose state is not packed; else null and empty.
  const windows::JobWindow* window = nullptr;
  const attribution::Attribution* processes = nullptr;
  const std::vector<Assertion>* assertions = nullptr;  // of the verdict, as long as it is watched
  int64_t verdict_changes = 0;
  int64_t wall_offset_ns = 0;    // from monotonic to wall time; 0 = not known
  Timestamp judged{};            // when it was last judged
  std::string_view why_fewer{};  // fewer jobs are watched than configured; empty = as many
};

}  // namespace rankscope::engine
