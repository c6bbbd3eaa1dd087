// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// One answer of the scheduler about one run of a job: what it was told when it was submitted, when
// it ran and how it ended. Plain data. Times are seconds since 1970, 0 = not known; numbers below 0
// and empty texts are not known.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace rankscope {

struct SchedulerRecord {
  std::string job_id;
  std::string origin;  // scontrol, sacct, controller ...
  std::string state;   // PREEMPTED, COMPLETED, RUNNING ...; empty = the record is of an event
  std::string event;   // "started"; other events say nothing of a state
  int64_t submit = 0, start = 0, end = 0;
  int64_t elapsed_seconds = -1, time_limit_seconds = -1, restarts = -1, gpus = -1, priority = -1;
  std::string by;      // who cancelled it: a uid or a name
  std::string reason;  // Slurm's word: "NonZeroExitCode", "Dependency" ...
  std::string nodes;   // a host list
  std::string failed_node;
  std::string exit, derived_exit;  // "code:signal"
  std::string partition, dependency, submit_line, work_dir;
  int64_t wall_ns = 0;  // when what it says happened, since 1970; 0 = not known

  bool operator==(const SchedulerRecord&) const = default;

  template <class A>
  void Fields(A& a) {
    a(job_id, origin, state, event, submit, start, end, elapsed_seconds, time_limit_seconds,
      restarts, gpus, priority, by, reason, nodes, failed_node, exit, derived_exit, partition,
      dependency, submit_line, work_dir, wall_ns);
  }
};

// Puts one value in by its name: "start", "by" ... A time or a count that is not one is not known.
// False: the record has no such value.
bool SetField(SchedulerRecord& record, std::string_view name, std::string_view value);

}  // namespace rankscope
