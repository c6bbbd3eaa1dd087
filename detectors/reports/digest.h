// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// A dump of megabytes as events of some hundred bytes, because a recording keeps facts for good:
// of a Flight Recorder's dump how far the rank had come in each process group and what it waits
// for there, of Inspector's log what the newest operations of each communicator achieved. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "detectors/model/observation.h"
#include "detectors/reports/flight_recorder.h"

namespace rankscope::reports {

// Groups told of one dump, those with operations that have not completed first. A rank of a job in
// five dimensions of parallelism is in a dozen.
inline constexpr size_t kMaxToldGroups = 64;

// "0-7,9" and with a stride "0-56/8"; empty where it would be longer than a kilobyte.
std::string WriteRanks(const std::vector<int32_t>& ranks);

// One event per group, or a single one where there is none: that the rank has written is told too.
// `written_ns`: since 1970.
std::vector<Event> TellFlightDump(const FlightDump& dump, int32_t rank, const ProcessKey& process,
                                  int64_t written_ns);

// Lines of Inspector's log to one event per communicator; the rest of a line that has not ended is
// left over. `used`: bytes of `text` that are told.
std::vector<Event> TellInspectorLines(std::string_view text, const ProcessKey& process,
                                      size_t& used);

}  // namespace rankscope::reports
