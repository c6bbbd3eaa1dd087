// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Numbers of what ranks ask of the CUDA runtime and driver: launches, synchronisation, copies,
// allocations, for the families. Plain data.
#pragma once

#include <limits>
#include <vector>

#include "detectors/features/evidence.h"

namespace rankscope::features {

inline constexpr double kNotCounted = std::numeric_limits<double>::quiet_NaN();

struct RankLaunches {
  int32_t rank = -1;
  ProcessKey process;
  double launches = 0;              // kernels and graphs, since they are counted
  double seconds_since_launch = 0;  // up to now
  double longest_pause = 0;         // the second longest between launches that came to an end
  double rate_before = 0;           // launches a second in the last minute in which it launched
  double rate = 0;                  // launches a second of late, of ten to twenty seconds
  double usual_rate = 0;            // launches a second since it is counted
  double sync_seconds = 0;          // of the synchronisation that it is in; 0 = in none
  double counted_share = 1;         // of the time, in which calls are counted at all, of late
  // Shares of the wall in the newest pieces of the window.
  double launch_share = 0;
  double sync_share = 0;
  double copy_share = 0;
  double allocation_share = 0;
  double syncs_per_launch = 0;
  double launch_call_seconds = 0;  // of one, mean
  double cpu_share = kNotCounted;  // of one core; by the process source
  int32_t stalls = 0;              // gaps of 2 s and more between launches, spent in no call
  double stall_seconds = 0;        // their sum
};

// Where the time of a window goes: of pieces of ten seconds in which every call that is timed was
// seen, of the newest 300 s.
struct LaunchFeatures {
  std::vector<RankLaunches> ranks;  // by rising rank; empty: nobody's launches are counted
  bool exact = false;               // each launch of the window is counted
  double window_seconds = 0;
  double launches = 0;  // in the window, of the median rank

  // No rank has launched anything for at least this long; NaN where none ever did.
  double seconds_since_launch = kNotCounted;
  double rate_before = 0;           // launches a second of the median rank, before that
  double sync_seconds = 0;          // the longest that a rank is in a synchronisation; 0 = none is
  std::vector<int32_t> idle_ranks;  // that stand longer than they ever did twice before
  EvidenceRef idle_evidence = kNoEvidence;  // the launches, when the last one was

  // Medians over the ranks.
  double launch_share = 0;
  double sync_share = 0;
  double copy_share = 0;
  double allocation_share = 0;
  double host_share = 0;  // the rest: in no call
  double syncs_per_launch = 0;
  double launch_call_seconds = 0;
  double cpu_share = kNotCounted;
  int32_t stalls = 0;
  double stall_seconds = 0;
  bool in_turns = false;  // every rank launches as much between any two of its stalls
  EvidenceRef calls_evidence = kNoEvidence;
  bool launch_blocking = false;  // CUDA_LAUNCH_BLOCKING=1 in a rank's environment
  EvidenceRef launch_blocking_evidence = kNoEvidence;

  // The rank that waits less than its peers, in most pieces.
  int32_t slow_rank = -1;
  double slow_ratio = 1;     // its own busy time over that of the median peer
  double slow_z = 0;         // robust, of its share of waiting among the ranks'
  double slow_identity = 0;  // share of the pieces in which it is the one that waits least
  int32_t slow_pieces = 0;
  EvidenceRef slow_evidence = kNoEvidence;
  EvidenceRef peers_evidence = kNoEvidence;

  // Allocations that the card refused.
  double allocation_failures = 0;
  double last_failed_bytes = kNotCounted;
  int32_t failed_rank = -1;
  double seconds_since_failure = kNotCounted;
  double launches_since_failure = 0;  // of that rank
  EvidenceRef allocation_evidence = kNoEvidence;
  double cuda_errors = 0;
  EvidenceRef error_evidence = kNoEvidence;
};

}  // namespace rankscope::features
