// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// One job as Slurm reports it, poll after poll: where it stands, what of that is news, and when a
// run of it begins and is over. A job that is put back into the queue has several runs. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "exporter/slurm/records.h"

namespace rankscope::watch {

enum class Stage : uint8_t { kNew, kWaiting, kRunning, kEnded };

// kNew: the words say nothing of where it stands, as of a job that completes.
Stage StageOf(const exporter::slurm::SlurmJob& job);

// The exit status of a command in its place: its script's code, 128 and the signal that ended it, 1
// where Slurm ended it and tells neither; `kUnknownStatus` where nobody knows.
inline constexpr int kUnknownStatus = 125;
int StatusOf(const exporter::slurm::SlurmJob& job);

class JobCourse {
 public:
  struct News {
    bool state = false;     // there is something to tell
    bool run_over = false;  // the run that was known is over
    bool put_back = false;  // which was put back into the queue
    bool run_begun = false;
  };
  News Update(const exporter::slurm::SlurmJob& job);
  // It has left the queue, and nobody knows how it ended.
  News Lose();
  // More of the end that is known: who cancelled it, which signal.
  void Explain(const exporter::slurm::SlurmJob& accounted);

  const exporter::slurm::SlurmJob& job() const { return job_; }  // as last told
  Stage stage() const { return stage_; }
  bool lost() const { return lost_; }

 private:
  exporter::slurm::SlurmJob job_;
  Stage stage_ = Stage::kNew;
  bool running_ = false;  // a run has begun and is not over
  bool lost_ = false;
  std::string told_;  // what was news last
  int64_t told_start_ = 0;
};

}  // namespace rankscope::watch
