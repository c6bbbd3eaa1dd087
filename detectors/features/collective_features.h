// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Numbers of communicators and collectives as the calls into NCCL show them, for the families.
// Plain data.
#pragma once

#include <vector>

#include "detectors/features/evidence.h"

namespace rankscope::features {

struct RankCollectives {
  int32_t rank = -1;
  ProcessKey process;
  double entered = 0;                // since they are counted
  double seconds_since_entered = 0;  // up to now
  double in_flight = 0;              // by the watchdog's questions; 0 where it asks none
  double wait_seconds = 0;   // of the oldest one in flight, or of the synchronisation it is in
  bool asked = false;        // a watchdog asks, and still does
  bool flight_known = true;  // it is known what it has in flight
  bool waits = false;        // is in a collective, or behind one, since it entered its last
  double behind = 0;         // collectives less than the first, where all are counted exactly
  double written_bytes = 0;  // to files, since it entered its last
  double cpu_share = 0;      // of a core, since then
  double seconds_since_launch = 0;
};

struct CollectiveFeatures {
  std::vector<RankCollectives> ranks;  // by rising rank; empty: nobody's collectives are counted
  bool exact = false;  // every rank is counted from its communicator's beginning, without a gap
  bool flight_known = true;  // of every rank
  bool asked = false;        // watchdogs ask whether collectives are through
  double entered = 0;        // the most of a rank
  double completed = 0;      // the same, of those that a watchdog saw end

  // No rank has entered or ended a collective for at least this long.
  double seconds_since_advance = 0;
  int32_t advances = 0;      // looks that found one further on, of the median rank; at most 64
  double usual_pause = 0;    // median of the pauses between advances, as seconds show them
  double longest_pause = 0;  // the second longest pause that came to an end

  // Alive ranks that are in a collective, and those that are not: at a standstill the former wait
  // for the latter.
  std::vector<int32_t> waiting;
  std::vector<int32_t> absent;
  double wait_seconds = 0;   // how long the first of `waiting` has
  bool by_sequence = false;  // absent by exact counts; else by what is in flight or synchronised
  // Of the absent ranks, the most.
  double absent_written_bytes = 0;
  double absent_cpu_share = 0;
  double absent_since_launch = 0;  // the least; since when none of them launches

  EvidenceRef waiting_evidence = kNoEvidence;
  EvidenceRef absent_evidence = kNoEvidence;
  EvidenceRef advance_evidence = kNoEvidence;

  double communicators = 0;    // the most of a rank
  double inits_in_flight = 0;  // communicators that are being made, of all ranks
  double init_seconds = 0;     // since when the oldest of them is
  double aborts = 0;
  EvidenceRef communicator_evidence = kNoEvidence;
};

}  // namespace rankscope::features
