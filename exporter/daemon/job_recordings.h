// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// One recording per job below DIR/jobs: which observation belongs to which job, the node's budget,
// and what is there to be read again after a crash. Nothing here waits for the disk but the start:
// frames are written on a thread of its own, and one that refuses or hangs costs the recordings,
// never the daemon. Loop thread only.
//
//     DIR/lock                held by the daemon that uses DIR
//     DIR/restoring           there while recordings are read at the start: still there at the next
//     start = that crashed DIR/jobs/JOB/           the recorder's files; `finished` once the
//     verdict is final DIR/jobs/JOB/suspect    there while this recording is judged alone: still
//     there at the next start = it is the culprit DIR/quarantine/JOB/     recordings that crashed
//     the engine twice DIR/removed/    recordings that are being removed
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "detectors/attribution/attribution.h"
#include "detectors/model/observation.h"
#include "detectors/recording/recording.h"
#include "exporter/daemon/recording_room.h"
#include "exporter/daemon/recording_writer.h"
#include "exporter/loop/disk_thread.h"
#include "exporter/loop/event_loop.h"
#include "exporter/loop/logger.h"

namespace rankscope::exporter {

class JobRecordings {
 public:
  struct Options {
    std::string directory;  // state.dir
    int64_t job_bytes = 0;
    int64_t total_bytes = 0;
    recording::Header header;
    // Whether the engine watches the job; null: all are. Of others there is no recording.
    std::function<bool(const std::string& job_id)> watched = nullptr;
  };

  // `frames` writes what is recorded and does nothing else, so that it is quick; `slow` syncs and
  // removes.
  JobRecordings(Options options, Logger& log, DiskThread& frames, DiskThread& slow);
  ~JobRecordings();
  JobRecordings(const JobRecordings&) = delete;
  JobRecordings& operator=(const JobRecordings&) = delete;

  // Makes and locks the directory, which must be this user's alone. An error: nothing will be
  // recorded; everything else works. Waits for the disk.
  Status Open();

  // Reads the recordings of jobs that had no final verdict, merged by time, each tick once. `sane`
  // judges one recording by itself and is asked only after a start that did not end. To be called
  // before the first Accept. Waits for the disk.
  void Restore(const std::function<void(const Observation&)>& deliver,
               const std::function<void(const std::string& directory)>& sane);

  // Attributes, and appends to the job's recording; what belongs to the node goes to every live
  // one.
  void Accept(const Observation& observation);
  // What every recording begins with: the clock and the sources' states. Those that change are
  // followed.
  void SetPreamble(std::vector<Observation> preamble) { preamble_ = std::move(preamble); }

  // Hands over what was accepted, and waits for a moment until the kernel has it: what is said
  // after this can be found again when the daemon is killed. A disk that does not answer is not
  // waited for again until it does.
  void Flush();
  // The verdict is final. What may still come goes behind it: what Slurm tells late, and the job's
  // next attempt.
  void Finish(const std::string& job_id);
  // That verdict is on the disk: the next start need not judge the job again.
  void MarkFinished(const std::string& job_id);
  // The job is no longer watched: what was recorded of it goes, for it would never have an end, and
  // who begins jobs without end would fill the disk with folders.
  void Drop(const std::string& job_id);
  // The engine has forgotten the job: whoever comes with its id is another.
  void Forget(const std::string& job_id);
  // Gives each user's live recordings a fair share of the node's budget, and removes finished ones
  // until all fit.
  void EnforceTotal();

  // Processes of live jobs, alive as far as the recordings say.
  std::vector<attribution::ProcessInfo> LiveProcesses() const;
  // Whether the process belongs to a job.
  bool Knows(const ProcessKey& key) const { return attribution_.Find(key) != nullptr; }
  // Null: of no job. Good until the next observation.
  const attribution::ProcessInfo* Find(const ProcessKey& key) const {
    return attribution_.Find(key);
  }
  // What the environment of a job's processes says of it; null: nothing.
  const attribution::JobFacts* FactsOf(std::string_view job_id) const {
    return attribution_.FindJob(job_id);
  }
  std::vector<std::string> LiveJobs() const;
  // The last sequence number restored of this wrapper's (the slot counts the wrappers of one job);
  // below zero: none. It is the wrapper's that comes back first: the next one numbers from the
  // beginning.
  int64_t TakeWrapperSeq(const std::string& job_id, int slot);
  // The same without taking it, of a job that had one wrapper; nothing of a job that had several.
  std::optional<int64_t> WrapperSeq(const std::string& job_id) const;
  // More of that wrapper's was heard, by another way than from itself.
  void NoteWrapperSeq(const std::string& job_id, int64_t seq) { wrapper_seq_[{job_id, 0}] = seq; }
  int64_t bytes() const { return totals_->bytes; }
  int64_t errors() const { return totals_->errors + own_errors_; }
  // Observations that no recording has.
  int64_t lost() const { return totals_->lost + lost_; }
  // Why nothing is recorded now; empty when all is well.
  std::string trouble() const;
  // Whether what is recorded of the job replays to what was judged. True of those that are not
  // known.
  bool Exact(const std::string& job_id) const;

 private:
  struct Job {
    std::shared_ptr<RecordingWriter> writer;  // null: it is not recorded
    RecordedFrames frames;                    // not handed over yet
    std::optional<uint32_t> uid;              // its owner
    int64_t budget = 0;                       // bytes
    bool exact = true;                        // nothing was lost on the way to the disk
  };
  using Batches = std::vector<std::pair<std::shared_ptr<RecordingWriter>, RecordedFrames>>;

  Job* JobWith(const std::string& job_id, const Observation& first);
  Job Begin(const std::string& job_id, const Observation& first);
  void Add(Job& job, const Observation& observation);
  void HandOver(const std::vector<Job*>& jobs);
  // On the thread that writes frames, in order with them.
  void Tell(const Job& job, std::function<void(RecordingWriter&)> what);
  void NoteState(const Observation& observation);
  void Sync(const Job& job);
  void ShareRoom();
  void Remove(std::vector<RecordingFolder> gone);
  void OnScanned(std::vector<RecordingFolder> folders);
  bool IsNextAttempt(const std::string& job_id, const Observation& observation) const;
  void NoteRestart(const std::string& job_id, const Observation& observation);
  std::vector<std::string> Unfinished() const;
  void CheckSuspects(const std::function<void(const std::string&)>& sane);
  std::string DirectoryOf(const std::string& job_id) const;

  Options options_;
  Logger& log_;
  DiskThread& frames_;
  DiskThread& slow_;
  std::string trouble_;  // of the directory itself
  int lock_fd_ = -1;
  attribution::Attribution attribution_;
  std::string boot_id_;
  std::vector<Observation> preamble_;
  std::map<std::string, Job> live_;
  std::map<std::string, Job> resting_;       // finished
  std::set<std::string> told_;               // of resting_: since the last Flush
  std::map<std::string, Job> unmarked_;      // finished, and their verdicts not on the disk yet
  std::set<std::string> unrecorded_;         // live, and too many
  std::map<std::string, int32_t> restarts_;  // of live_ and resting_, where a wrapper has told it
  std::map<std::pair<std::string, int>, int64_t> wrapper_seq_;  // by job and slot
  std::shared_ptr<RecordingTotals> totals_ = std::make_shared<RecordingTotals>();
  int64_t own_errors_ = 0;
  int64_t lost_ = 0;             // for which there was no room on the way to the disk
  std::set<int64_t> with_room_;  // owners of recordings at the last scan
  size_t shared_among_ = 0;      // live jobs, when room was last shared
  bool scanning_ = false;
  bool scan_again_ = false;               // more has ended meanwhile
  std::shared_ptr<JobRecordings*> self_;  // null for results that come after it is gone
};

}  // namespace rankscope::exporter
