// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// An exit status of 0 that is not that of the program that trained. A pipe ends with the status of
// its last command, a script with that of its last line, and a program before it may have died of
// an exception. Its text, and the kernel of its ranks, tell. Pure.
#pragma once

#include "detectors/features/job_features.h"
#include "detectors/windows/job_window.h"

namespace rankscope::features {

// Whether the run's exit status of 0 may be another program's than the one that trained.
bool MayBeOfAnother(const windows::JobWindow& job, const JobFeatures& f);

// The training records around an exception.
struct Around {
  bool before = false;                        // one stands before it
  int64_t after = 0;                          // so many came behind it
  const windows::CitedPoint* last = nullptr;  // of all
};

// Whether a rank ended by what nobody caught and no other process has taken its place: that its
// peers train on, each for itself, does not undo it.
bool ItsRankIsGone(const windows::Candidate& said, const windows::JobWindow& job,
                   const JobFeatures& f);

// Whether it was noted that the status of 0 may be another's than that of what failed.
bool ExitIsDoubtful(const JobFeatures& f);

// Whether the program ended by what it said there, whatever the status of the command is.
bool EndedTheProgram(const windows::Candidate& said, const Around& around,
                     const windows::JobWindow& job, const JobFeatures& f);

// Marks the evidence of the exit status where it may be another's and something failed.
void NoteDoubtfulExit(const windows::JobWindow& job, JobFeatures& f);

}  // namespace rankscope::features
