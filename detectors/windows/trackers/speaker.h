// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Whose event or number it is, in a job. Any thread.
#pragma once

#include <cstdint>
#include <string_view>

#include "detectors/model/ids.h"
#include "detectors/model/time.h"

namespace rankscope::windows {

struct Speaker {
  int32_t rank = -1;           // -1: a process of the job that is no rank, or the whole job or node
  int32_t local_rank = -1;     // -1: not known
  ProcessKey process = {};     // pid 0: not a process
  int32_t worker_of = -1;      // the rank below which this process was started; -1: it is none's
  std::string_view comm = {};  // of the process, as its last exec named it; borrowed
  bool foreign = false;        // a process of another job or of none
  // Nobody listened up to here: what grew over it tells no pause of the job. 0 = somebody always
  // did.
  Timestamp unheard_until = {};
};

}  // namespace rankscope::windows
