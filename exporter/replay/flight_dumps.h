// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Flight Recorder's dumps among the files of a job that is over: which files are dumps, whose each
// is, and what it says, as the events that a daemon would have sent of it. Blocks on files; any
// thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "detectors/model/observation.h"

namespace rankscope::replay {

struct FlightDumps {
  std::vector<Event> events;       // of rank after rank; `rank` is set in each
  std::vector<std::string> read;   // the files they come from
  std::vector<std::string> notes;  // what could not be read, and whose number is a guess
  int32_t world_size = 0;          // as the members of their groups tell
};

// Takes the dumps out of `files`. A dump is known by its first bytes: a pickle, or a JSON object
// with the members of one. A damaged pickle is taken out too and noted: it is no text.
FlightDumps TakeFlightDumps(std::vector<std::string>& files);

}  // namespace rankscope::replay
