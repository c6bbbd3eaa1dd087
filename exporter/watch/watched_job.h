// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// A job under watch: its course by Slurm's word, and the output files of the run that it is in,
// which the judge is fed with. Loop thread; the files are read elsewhere (output_reader.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "detectors/model/observation.h"
#include "exporter/slurm/records.h"
#include "exporter/watch/job_course.h"
#include "exporter/watch/job_judge.h"
#include "exporter/watch/output_reader.h"

namespace rankscope::watch {

// Where the wall clock lies on the clock of the observations.
struct Clocks {
  Timestamp now;
  int64_t wall_offset_ns = 0;  // wall time = t + wall_offset_ns

  int64_t wall_ns() const { return now.ns + wall_offset_ns; }
  Timestamp At(int64_t wall_seconds) const;  // not after now
};

struct FollowedFile {
  Stream stream;
  OutputRequest request;
  bool reading = false;
  bool seen = false;     // it was read
  int64_t past_end = 0;  // up to here it was written before it was found
  bool past_read = false;
  bool skipped = false;  // of what is too much the middle was passed over
  int quiet = 0;         // polls in a row, since the run was over, that brought nothing
  std::string error;
};

class WatchedJob {
 public:
  explicit WatchedJob(std::string id) : id_(std::move(id)) {}

  // A run is followed from now on; it may be over already.
  void BeginRun(JobJudge& judge, const Clocks& clocks);
  // What a poll of a file has brought.
  void OnPiece(size_t file, const OutputPiece& piece, JobJudge& judge, const Clocks& clocks);
  // The run is over; what is still in the files is to come.
  void EndRun(bool put_back, const Clocks& clocks);
  // Slurm's words about the end, for the judge; told when the run is.
  void Know(SchedulerRecord record) { records_.push_back(std::move(record)); }
  void Know(SchedulerFact fact) { facts_.push_back(std::move(fact)); }
  // When it was over, as far as is known; now, where it is not.
  Timestamp EndOf(const Clocks& clocks) const;
  // Whether all that the run wrote has been read, or cannot be.
  bool IsDrained(const Clocks& clocks) const;
  // Tells the judge the end and what is known of it.
  void Conclude(JobJudge& judge, const Clocks& clocks);
  // The run is judged; the job goes on.
  void Leave();
  // Nothing more is to come of it.
  void Finish(int its_status);

  const std::string& id() const { return id_; }
  JobCourse& course() { return course_; }
  const JobCourse& course() const { return course_; }
  std::vector<FollowedFile>& files() { return files_; }
  bool known() const { return !records_.empty(); }
  bool begun() const { return begun_; }        // the judge knows the run
  bool over() const { return over_; }          // and it has ended
  bool put_back() const { return put_back_; }  // but not the job
  bool concluded() const { return concluded_; }
  Timestamp concluded_at() const { return concluded_at_; }
  // Whether what was written before is read, so that what the judge says now is of all of it.
  bool HasCaughtUp() const;
  // What is read; or why nothing is, and what it would be.
  struct Output {
    std::vector<std::string> paths;
    std::string error;  // empty: they are read, or it is too early to say
  };
  Output OutputNow(const Clocks& clocks) const;

  // What was printed last.
  std::string told_output, told_verdict;
  std::string verdict;      // as it is now: "C2/..."
  Timestamp verdict_since;  // then it became that
  int64_t told_records = 0;
  std::string origin;  // who told its newest word: squeue, sacct
  int missed = 0;      // rounds in which nobody knew it
  bool held = false;   // the judge has it
  bool done = false;   // nothing more is to come
  int status = kUnknownStatus;

 private:
  void AddFile(const std::string& printed);

  std::string id_;
  JobCourse course_;
  std::vector<FollowedFile> files_;
  std::vector<SchedulerRecord> records_;
  std::vector<SchedulerFact> facts_;
  uint32_t streams_ = 0;
  bool begun_ = false, over_ = false, put_back_ = false, concluded_ = false;
  // The run that is judged may be an earlier one than the course tells of.
  exporter::slurm::SlurmJob run_;
  Timestamp begin_, over_since_, concluded_at_;
};

}  // namespace rankscope::watch
