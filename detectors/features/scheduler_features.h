// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What the scheduler's record says of the job and its nodes, and what an end from outside has cost:
// for the families whose run was ended by somebody else. Plain data.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "detectors/features/evidence.h"

namespace rankscope::features {

// A run of the job, of which a job that is put back into the queue has several.
struct RecordedRun {
  std::string state;  // Slurm's word
  bool ended = false;
  double seconds = std::numeric_limits<double>::quiet_NaN();
  EvidenceRef evidence = kNoEvidence;
};

// A node that was in every run of the job that failed soon. A claim, and no cause: Slurm chooses
// nodes by weight and by name, and may choose the same one first each time.
struct SuspectNode {
  std::string node;    // empty: none
  int64_t runs = 0;    // that failed soon, all of which it was in
  int64_t failed = 0;  // of them, those that the record says it failed in
  EvidenceRef evidence = kNoEvidence;
};

struct SchedulerFeatures {
  static constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();

  std::vector<RecordedRun> runs;  // the newest that the record has, oldest first; few
  int32_t judged = -1;            // of `runs`: the one that the verdict is of; -1 = not known

  // What became of the job after the run that is judged.
  //   completed | failed | running | waiting | held | cancelled; empty: not told
  std::string rerun;
  std::string rerun_state;  // Slurm's word
  EvidenceRef rerun_evidence = kNoEvidence;

  double limit_seconds = kNoNumber;
  EvidenceRef limit_evidence = kNoEvidence;
  int64_t gpus = 0;  // of the whole job; 0 = not known

  // How often it was put back, where that is more than was seen here.
  int64_t restarts = -1;
  EvidenceRef restarts_evidence = kNoEvidence;
  double judged_seconds = kNoNumber;  // that the judged run took, or the newest
  int64_t runs_in_half_hour = 0;      // that ended in the half hour before the last end
  bool runs_told = false;             // two runs at least: their times are no guess
  SuspectNode suspect;

  std::string end_state;  // of the judged run or of a step, where it is a bad one: "OUT_OF_MEMORY"

  // The node that failed, as far as the record names it.
  std::string failed_node;
  std::string node_state, node_reason, node_class;
  EvidenceRef node_evidence = kNoEvidence;
  enum class Boot : uint8_t { kUnknown, kSame, kAnother };
  Boot boot = Boot::kUnknown;  // of the node that failed, since the run began
  EvidenceRef boot_evidence = kNoEvidence;
};

// What is lost with a run that is ended from outside: what was trained since the newest checkpoint
// that was completed had been begun.
struct LostWork {
  double seconds = std::numeric_limits<double>::quiet_NaN();  // NaN: not known
  bool saved = false;                                         // else it is all that was trained
  bool sure = true;        // false: no checkpoint was seen, where only text could have told of one
  double gpu_seconds = 0;  // 0 = not known
  EvidenceRef evidence = kNoEvidence;

  // The end came in the middle of a save.
  bool in_save = false;
  bool save_cut = false;  // a file of it was left behind unfinished, the kernel says
  EvidenceRef save_evidence = kNoEvidence;
};

}  // namespace rankscope::features
