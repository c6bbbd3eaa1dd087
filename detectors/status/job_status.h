// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What the exporter shows of one job: plain data.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "detectors/attribution/process_info.h"
#include "detectors/model/ids.h"
#include "detectors/model/launch_gaps.h"
#include "detectors/model/port_counters.h"
#include "detectors/model/signal_table.h"
#include "detectors/model/time.h"
#include "detectors/proto/verdict.pb.h"
#include "detectors/status/gpu_history.h"

namespace rankscope {

inline constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();  // absent: no series

struct TrainingStatus {
  bool recognised = false;  // progress lines in a dialect we know
  std::string framework;    // empty = none
  int64_t records = 0;
  int64_t nonfinite_loss = 0;  // records
};

// The books of the job's checkpoints; absent numbers are not known.
struct CheckpointStatus {
  int64_t saves = 0;
  bool files_seen = false;              // else from what the job printed
  bool newest_whole = true;             // meaningful with files_seen
  double last_wall_seconds = kUnknown;  // when the newest whole one ended
  double last_seconds = kUnknown;       // that it took
  double last_bytes = kUnknown;
  double interval_seconds = kUnknown;
  double free_bytes = kUnknown;
  double full_in_seconds = kUnknown;
  double work_at_risk_seconds = kUnknown;  // time times ranks
};

// The node's RDMA ports since the job's attempt began.
struct RdmaStatus {
  double received_bytes = kUnknown;
  double sent_bytes = kUnknown;
  double ports_down = kUnknown;
  std::array<double, kPortCounterKinds.size()> errors{};  // by kind; below 0 = no port counts it
};

// Where a rank runs, as its cgroup and its environment say; empty or below 0: not said.
struct RankPlace {
  std::string step_id;
  int32_t node_rank = -1;
  int32_t world_size = 0;
  std::string node;  // Slurm's name for it
  std::string container_id;
  std::string pod_uid;
  std::string master_addr;
};

struct RankStatus {
  int32_t rank = -1;
  int32_t local_rank = -1;
  RankPlace place;
  ProcessKey process;
  bool alive = false;
  bool exit_known = false;
  int32_t wait_status = 0;
  RankSignals signals;
  double cuda_attached = kUnknown;  // 0 or 1
  bool launch_gaps_counted = false;
  LaunchGapCounts launch_gaps{};  // meaningful with launch_gaps_counted
};

// A card of the node that is the job's.
struct JobGpuStatus {
  int32_t index = -1;
  std::string uuid;
  std::string_view source;     // devices | slurm | container | uuid | ordinal | mapping | process
  bool attached = false;       // a process of the job computes on it
  std::vector<int32_t> ranks;  // that compute on it, have, or should
};

struct LogStatus {
  std::string stream;  // stdout | stderr | a file's name
  int64_t lines = 0;
  int64_t bytes = 0;
  int64_t lost_bytes = 0;
  int64_t redactions = 0;
};

// Whether the job is suspended on this node; absent where nobody tells of its processes' states.
struct SuspensionStatus {
  double now = kUnknown;  // 0 or 1
  double total_seconds = kUnknown;
};

// Something that happened to the job, for people to look at.
struct JobMark {
  double wall_seconds = kUnknown;
  std::string_view kind;  // of kJobMarkKinds, or of kSlurmEventKinds
  std::string text;       // what more is known; may be anything
};
inline constexpr std::string_view kJobMarkKinds[] = {"submitted", "began",   "started",
                                                     "suspended", "resumed", "restarted",
                                                     "told",      "judged",  "ended"};

// A stretch of the job's time on this node. `until` NaN: it goes on.
struct JobSpan {
  double from_wall_seconds = kUnknown, until_wall_seconds = kUnknown;
  bool suspended = false;  // within an attempt; else an attempt
  int32_t attempt = 0;
  std::string code;  // of an attempt that is over: its verdict
};

struct JobTimeline {
  std::vector<JobMark> marks;  // by time
  std::vector<JobSpan> spans;  // attempts, then suspensions, each by time
};

struct JobStatus {
  std::string job_id;
  int64_t uid = -1;     // of the job's owner; -1 = not known
  bool watched = true;  // false: `verdict` says only why it is not
  std::string user;     // uid as text when no name is known
  attribution::JobFacts facts;
  std::string command;     // argv, redacted, at most 200 bytes
  int32_t world_size = 0;  // 0 = not known
  Attempt attempt;
  bool running = true;
  int64_t incidents = 0;
  int64_t verdict_changes = 0;
  TrainingStatus training;
  JobSignals signals;
  CheckpointStatus checkpoints;
  RdmaStatus rdma;
  SuspensionStatus suspension;
  JobTimeline timeline;
  std::vector<RankStatus> ranks;
  std::vector<GpuHistory> gpu_history;  // that it computes on or has, by index
  std::vector<JobGpuStatus> gpus;       // by index
  std::vector<LogStatus> logs;
  proto::Verdict verdict;  // the whole answer: families[] has every family's state and score
};

}  // namespace rankscope
