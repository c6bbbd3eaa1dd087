// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// One recording per job below DIR/jobs: which observation belongs to which job, the node's budget,
// and what is there to be read again after a crash. A disk that refuses costs the recordings, never
// the daemon. Loop thread only.
//
//     DIR/lock                held by the daemon that uses DIR
//     DIR/restoring           there while recordings are read at the start: still there at the next
//     start = that crashed DIR/jobs/JOB/           the recorder's files; `finished` once the
//     verdict is final DIR/jobs/JOB/suspect    there while this recording is judged alone: still
//     there at the next start = it is the culprit DIR/quarantine/JOB/     recordings that crashed
//     the engine twice
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "detectors/attribution/attribution.h"
#include "detectors/model/observation.h"
#include "detectors/recording.h"
#include "exporter/logger.h"
#include "exporter/replay/recorder.h"

namespace rankscope::exporter {

class JobRecordings {
 public:
  struct Options {
    std::string directory;  // state.dir
    int64_t job_bytes = 0;
    int64_t total_bytes = 0;
    recording::Header header;
  };

  JobRecordings(Options options, Logger& log);
  ~JobRecordings();

  // Makes and locks the directory. An error: nothing will be recorded; everything else works.
  Status Open();

  // Reads the recordings of jobs that had no final verdict, merged by time, each tick once. `sane`
  // judges one recording by itself and is asked only after a start that did not end. To be called
  // before the first Accept.
  void Restore(const std::function<void(const Observation&)>& deliver,
               const std::function<void(const std::string& directory)>& sane);

  // Attributes, and appends to the job's recording; what belongs to the node goes to every live
  // one.
  void Accept(const Observation& observation);
  // What every recording begins with: the clock and the sources' states.
  void SetPreamble(std::vector<Observation> preamble) { preamble_ = std::move(preamble); }

  void Flush();
  // The verdict is final. What may still come goes behind it: what Slurm tells late, and the job's
  // next attempt.
  void Finish(const std::string& job_id);
  // That verdict is on the disk: the next start need not judge the job again.
  void MarkFinished(const std::string& job_id);
  // The engine has forgotten the job: whoever comes with its id is another.
  void Forget(const std::string& job_id);
  // Removes the oldest finished recordings until all fit.
  void EnforceTotal();

  // Processes of live jobs, alive as far as the recordings say.
  std::vector<attribution::ProcessInfo> LiveProcesses() const;
  // Whether the process belongs to a job.
  bool Knows(const ProcessKey& key) const { return attribution_.Find(key) != nullptr; }
  // Null: of no job. Good until the next observation.
  const attribution::ProcessInfo* Find(const ProcessKey& key) const {
    return attribution_.Find(key);
  }
  std::vector<std::string> LiveJobs() const;
  // The last sequence number restored of this wrapper's (the slot counts the wrappers of one job);
  // below zero: none. It is the wrapper's that comes back first: the next one numbers from the
  // beginning.
  int64_t TakeWrapperSeq(const std::string& job_id, int slot);
  int64_t bytes() const { return closed_bytes_ + OpenBytes(); }
  int64_t errors() const;
  // Why nothing is recorded now; empty when all is well.
  std::string trouble() const;

 private:
  replay::Recorder* RecorderOf(const std::string& job_id, const Observation& first);
  bool IsNextAttempt(const std::string& job_id, const Observation& observation) const;
  void NoteRestart(const std::string& job_id, const Observation& observation);
  std::vector<std::string> Unfinished() const;
  void CheckSuspects(const std::function<void(const std::string&)>& sane);
  int64_t OpenBytes() const;

  Options options_;
  Logger& log_;
  std::string trouble_;  // of the directory itself
  int lock_fd_ = -1;
  attribution::Attribution attribution_;
  std::string boot_id_;
  std::vector<Observation> preamble_;
  std::map<std::string, std::unique_ptr<replay::Recorder>> live_;     // null: could not be opened
  std::map<std::string, std::unique_ptr<replay::Recorder>> resting_;  // finished, never null
  std::set<std::string> told_;               // of resting_: since the last Flush
  std::set<std::string> unmarked_;           // finished, and their verdicts not on the disk yet
  std::map<std::string, int32_t> restarts_;  // of live_ and resting_, where a wrapper has told it
  std::map<std::pair<std::string, int>, int64_t> wrapper_seq_;  // by job and slot
  int64_t closed_bytes_ = 0;
  int64_t closed_errors_ = 0;
  int64_t own_errors_ = 0;
};

}  // namespace rankscope::exporter
