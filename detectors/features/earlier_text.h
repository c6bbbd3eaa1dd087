// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What stands in a job's text and is not about the run that is judged: other runs that wrote to
// the same file, tools that a script called before, a print of the driver's log.
// Pure.
#pragma once

#include <functional>
#include <vector>

#include "detectors/features/cause.h"
#include "detectors/features/job_features.h"
#include "detectors/windows/job_window.h"

namespace rankscope::features {

// Whether the program could not be loaded: it imports at its top what it needs, before it does
// anything else.
bool FailsAtTheTop(const logs::Incident& incident);

// Whether a training follows this in the text, so that it is of a run before.
using TrainedOn = std::function<bool(const windows::Candidate&)>;

// What stands behind an incident in the text of one job.
class TextBehind {
 public:
  TextBehind(const windows::JobWindow& job, const windows::AttemptWindow& window,
             const JobFeatures& f)
      : job_(job), window_(window), f_(f) {}

  // Behind the end of a run, `after` records are those of the next one: more than whoever is told
  // to end still prints, or the text of a start stands between. What is told of a program's
  // arguments it has told before any record.
  bool IsOfTheNextRun(const windows::Candidate& end, int64_t after) const;

  // A launcher or a shell starts the program again behind this, and it trains for `after` records;
  // or it cannot even be loaded.
  bool StartsAgain(const windows::Candidate& said, int64_t after) const;

  // No buffer of the program that said this can have held back the records behind it: Python
  // writes its buffers out when it ends, so an error that is said behind them is another's; and a
  // program whose first lines cannot be imported has nothing to write.
  bool IsOfAnother(const windows::Candidate& said) const;

  // The line in front of a traceback, or the one behind it, says that the program goes on.
  bool IsPassedOver(const windows::Candidate& said) const;

 private:
  // One program speaks in this text.
  bool OneSpeaks(const windows::Candidate& said) const;
  bool Behind(const windows::MarkerSeen& seen, const windows::Candidate& said) const;
  double SecondsOf(int64_t records) const;  // NaN: not known

  const windows::JobWindow& job_;
  const windows::AttemptWindow& window_;
  const JobFeatures& f_;
};

// Of several runs that write to one file, jobs or commands of one script, the last one is judged,
// and what stands before the end of another is another's. That an end is another's shows by the
// number of the job that Slurm closes its text with, or by a training behind it. Where jobs are
// observed, a line names a job that is not this one (windows/another_job.h).
void SetEarlierRunsAside(std::vector<Cause>& causes, const JobFeatures& f,
                         const TrainedOn& trained_on, const TrainedOn& started_again);

// A tool that the script called before the program failed, and the script went on.
void SetToolsAside(std::vector<Cause>& causes, const JobFeatures& f);

// The driver's lines at the top of a job's own text are a script's print of its log; a failure that
// the program then names in words of its own, and that is none of the GPU's, is another.
void SetOldXidsAside(std::vector<Cause>& causes);

}  // namespace rankscope::features
