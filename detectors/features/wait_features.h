// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Numbers of what the job's threads do when they do not run: wait classes, and snapshots of a
// standstill, for the families. Plain data.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include "detectors/features/evidence.h"
#include "detectors/features/stack_causes.h"
#include "detectors/model/ids.h"
#include "detectors/model/wait_class.h"

namespace rankscope::features {

// How much of the looks of the newest minute a main thread stood in a call on a file.
struct StorageWait {
  double share = 0;
  WaitClass kind = WaitClass::kBlock;  // or kNetworkFile: the larger part
};

// The process of one rank. Shares are of the wall time of the named window.
struct RankWait {
  int32_t rank = -1;
  ProcessKey process;
  WaitClass main = WaitClass::kRunning;  // its main thread, at the newest sample
  // The newest kRecentSeconds.
  double recent_seconds = 0;                      // as far as samples reach
  std::array<double, kWaitClasses> main_share{};  // of the samples: where the main thread stood
  double main_running_share = 0;
  double main_runnable_share = 0;  // it wanted a CPU and had none
  double running_share = 0;        // of all threads; may exceed 1
  double silent_share = 0;         // the same, without a wait
  // The newest minute.
  double window_seconds = 0;
  double window_running_share = 0;   // of the main thread
  double window_runnable_share = 0;  // the same: it wanted a CPU and had none
  StorageWait storage;               // of the main thread
  double window_socket_share = 0;    // of the looks at it: it waited for somebody else's word
  double still_seconds = 0;          // since a thread of it or of its workers last ran noticeably
  bool has_run = false;              // noticeably, since it is watched
  double main_wait_seconds = 0;
  double stopped_seconds = 0;  // 0 = it is not
  bool traced = false;         // and stopped by a debugger
  bool frozen = false;         // and held by the freezer of its cgroup
  // Seconds on a CPU of its main thread, since the newest training record and, in the mean, from
  // one to the next; NaN = not known.
  double cpu_since_record = std::numeric_limits<double>::quiet_NaN();
  double cpu_per_record = std::numeric_limits<double>::quiet_NaN();
  // The CPU quota of its cgroup, in CPUs (0 = none is known), and the share of the quota's periods
  // of the newest minute in which it was used up.
  double cpu_quota = 0;
  double throttled_share = 0;
  int32_t uninterruptible = 0;
  // Processes that it has started.
  int32_t workers = 0;
  std::array<int32_t, kWaitClasses> workers_in{};
  double workers_still_seconds = 0;  // since any of them last ran noticeably
  StorageWait worker_storage;        // of the one that waited longest
  StackCause cause =
      StackCause::kUnknown;  // of its newest snapshot, while it stands as it stood then
  EvidenceRef evidence = kNoEvidence;
  EvidenceRef stopped_evidence = kNoEvidence;
  EvidenceRef snapshot_evidence = kNoEvidence;
  EvidenceRef storage_evidence = kNoEvidence;
  EvidenceRef quota_evidence = kNoEvidence;

  // Since the newest record it has had more of a CPU than several steps take: whatever holds it up,
  // want of a CPU does not. The totals come once a second.
  bool OutranRecords() const {
    constexpr double kRecords = 3, kLateSeconds = 1;
    return cpu_since_record > kRecords * cpu_per_record + kLateSeconds;
  }
  double share(WaitClass of) const { return main_share[static_cast<size_t>(of)]; }
};

struct WaitFeatures {
  static constexpr double kRecentSeconds = 20;
  std::vector<RankWait> ranks;  // of this node, that have been heard of in the last seconds
  int32_t compilers = 0;        // that run below ranks now
  EvidenceRef compilers_evidence = kNoEvidence;
  // The last time that the whole node stood still, by a witness of it.
  double gap_seconds = 0;  // 0 = there was none
  double gap_age_seconds = 0;
  bool gap_printed = false;  // the job's own step time says so, too
  EvidenceRef gap_evidence = kNoEvidence;
  EvidenceRef gap_step_evidence = kNoEvidence;

  bool known() const { return !ranks.empty(); }
};

}  // namespace rankscope::features
