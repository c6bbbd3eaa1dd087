// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The books of a job's checkpoints at one moment: from the files that its ranks were seen to write,
// and where none were seen, from what it printed. Pure.
#pragma once

#include "detectors/windows/job_window.h"

namespace rankscope::windows {

struct CheckpointSummary {
  bool files = false;  // seen as files; else from text, which knows no bytes
  int64_t saves = 0;
  // The newest save of which every file is complete; absent where there is none.
  bool saved = false;
  Timestamp begin, end;
  double seconds = logs::kAbsent;  // that it took
  double bytes = logs::kAbsent;
  bool newest_whole = true;  // the newest save is that one, or under way
  double interval_seconds = logs::kAbsent;
  double free_bytes = logs::kAbsent;
  // Until the file system is full at the rate of the saves so far, deleted ones taken off; absent
  // where it does not fill.
  double full_in_seconds = logs::kAbsent;
  // What a failure now would lose: time since the newest whole save began, or since training did,
  // times ranks. Absent where nothing was trained, or the command has ended well.
  double work_at_risk_seconds = logs::kAbsent;
};

CheckpointSummary SummarizeCheckpoints(const JobWindow& job, Timestamp now);

}  // namespace rankscope::windows
