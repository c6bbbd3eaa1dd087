// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What one rank's Flight Recorder wrote when PyTorch's watchdog asked for it (a pickle, or JSON
// with the same members; versions 2.0 to 2.10 of the dump, tolerant of others). Per process group:
// how far the rank had come, and the operation that had not completed.
//
// The dump names a group twice: `pg_status` by a number that is local to the process, `pg_config`
// by the group's name. Only the entries hold both (`pg_id` and `process_group[0]`), so the two are
// joined through them; a group without entries has no status that could be told apart. A status
// holds the number of whatever was enqueued last, and sends and receives are numbered by
// themselves: behind one of those it says nothing of collectives. Of a batch of sends and receives
// only the entry of the whole batch is ever marked as completed. Any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "detectors/model/result.h"

namespace rankscope::reports {

// An operation as the recorder keeps it.
struct FlightOperation {
  int64_t sequence = -1;  // within the group; of sends and receives by themselves
  int64_t operation_id = -1;
  std::string name;   // "all_reduce": without the backend before it
  std::string sizes;  // of the inputs, "[[4096]]"
  std::string dtype;
  std::string state;   // scheduled | started | completed
  std::string caller;  // file:line function of the innermost frame outside of torch; may be empty
  int64_t created_ns = 0;  // since 1970
  int64_t timeout_ms = 0;  // after which the watchdog gives it up; 0 = not told
};

struct FlightGroup {
  std::string name;
  std::string description;  // "default_pg", "undefined"
  int64_t local_id = -1;
  std::vector<int32_t> ranks;  // members, global; empty = the dump does not tell
  int64_t last_enqueued = -1;  // sequence numbers of collectives; -1 = none
  int64_t last_started = -1;   // -1 throughout unless events are timed: never required
  int64_t last_completed = -1;
  int64_t entries = 0;  // recorded operations of this group
  bool has_pending = false;
  FlightOperation pending;     // the oldest collective that has not completed
  FlightOperation exchange;    // the oldest send or receive, or batch of them, that has not
  std::vector<int32_t> peers;  // the ranks, global, that it waits for; empty = there is none
};

struct FlightDump {
  std::string version;  // of the dump's form
  std::string nccl_version;
  int64_t entries = 0;
  bool cut = false;
  std::vector<FlightGroup> groups;  // by name
};

// Groups of a rank: one per dimension of parallelism, and some hundred where a framework splits
// eagerly.
inline constexpr size_t kMaxFlightGroups = 1024;
inline constexpr int64_t kMaxFlightEntries = 65536;

Result<FlightDump> ReadFlightDump(std::string_view bytes);

}  // namespace rankscope::reports
