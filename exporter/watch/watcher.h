// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// `rankscope watch`: follows jobs that somebody else has submitted until all of them are over, by
// what Slurm tells of them and by their output files; the nodes need no daemon. Slurm is asked
// about all jobs at once, at most every kMinInterval, and may be away. Files are read on threads of
// their own. Loop thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "detectors/document/verdict_json.h"
#include "exporter/loop/event_loop.h"
#include "exporter/loop/user_identity.h"
#include "exporter/loop/user_workers.h"
#include "exporter/loop/worker.h"
#include "exporter/slurm/commands.h"
#include "exporter/watch/job_choice.h"
#include "exporter/watch/lines.h"
#include "exporter/watch/slurm_round.h"
#include "exporter/watch/watched_job.h"

namespace rankscope::watch {

struct WatchOptions {
  std::vector<JobChoice> choices;
  Duration interval;
  bool json = false;
  Detail detail = Detail::kShort;
};

class Watcher {
 public:
  static constexpr Duration kMinInterval = Seconds(30);
  static constexpr size_t kMaxJobs = 4096;  // tasks of arrays among them

  // `print` takes a line of output, or the lines of a verdict, without the last end.
  using Print = std::function<void(const std::string& text)>;

  Watcher(exporter::EventLoop& loop, exporter::slurm::Commands commands, WatchOptions options,
          Print print);

  // Until all jobs are over: then the loop is stopped.
  void Start();
  // Prints what stands now.
  void PrintStands();
  // The worst that a job ended with; kUnknownStatus counts as such.
  int status() const;

 private:
  struct Choice {
    JobChoice choice;
    bool found = false, unknown = false;
    int missed = 0;
  };

  void Tick();
  void Ask();
  void OnRound(Round round);
  void TakeQueue(const Round& round);
  void TakeAccounting(const Round& round);
  void TakeMissing(const Round& round);
  void TakeUnknown(const Round& round);
  void Update(const exporter::slurm::SlurmJob& job, std::string_view origin);
  void Apply(WatchedJob& job, const JobCourse::News& news, std::string_view origin);
  void TellSlurm(const Round& round);

  void PollFiles(WatchedJob& job);
  void OnPiece(const std::string& id, size_t file, const OutputPiece& piece);
  void Follow(WatchedJob& job);
  void TellOutput(WatchedJob& job);
  void TellVerdict(WatchedJob& job);
  void TellProgress();
  void TellEnd(WatchedJob& job);
  bool IsOver() const;
  void Finish();

  exporter::UserIdentity ReaderOf(const WatchedJob& job) const;
  Told ToldOf(const WatchedJob& job) const { return {&job.course(), clocks_.wall_ns()}; }
  void Say(const Line& line) { print_(options_.json ? line.json : line.text); }

  exporter::EventLoop& loop_;
  const exporter::slurm::Commands commands_;
  const WatchOptions options_;
  const Print print_;
  std::unique_ptr<exporter::Worker> slurm_;
  exporter::UserWorkers readers_;
  std::map<int64_t, exporter::UserIdentity> identities_;
  JobJudge judge_;
  Clocks clocks_;
  std::vector<Choice> choices_;
  std::map<std::string, WatchedJob> jobs_;  // by number
  int32_t held_ = 0;                        // by the judge
  Timestamp next_ask_, next_poll_;
  Timestamp asked_, confirmed_;  // Slurm, the last time; and when it was asked what it has answered
  bool asking_ = false, answered_once_ = false;
  std::string away_;  // why Slurm does not answer; empty: it does
  bool too_many_ = false, finished_ = false;
};

}  // namespace rankscope::watch
