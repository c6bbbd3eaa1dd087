// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The one instance beside the controller (`slurm.role: controller`): asks for all jobs, all nodes
// and the controller's own counts, one call at a time and a round at most every kLeastInterval, and
// keeps what has happened as events. Accounting, which is another server, is asked about a job that
// has left the controller's memory or was begun anew. Loop thread only; the calls run on a worker.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "detectors/model/job_summary.h"
#include "exporter/loop/disk_thread.h"
#include "exporter/loop/event_loop.h"
#include "exporter/loop/worker.h"
#include "exporter/slurm/commands.h"
#include "exporter/slurm/comment_queue.h"
#include "exporter/slurm/event_store.h"
#include "exporter/slurm/job_ledger.h"
#include "exporter/slurm/node_ledger.h"
#include "exporter/slurm/step_ledger.h"
#include "exporter/source.h"

namespace rankscope::exporter::slurm {

class Controller final : public Source {
 public:
  // The controller serves its users first: what a round costs it is a read lock of all jobs.
  static constexpr Duration kLeastInterval = Seconds(30);
  static constexpr Duration kDeadline = Seconds(10);  // of each call

  using WallClock = std::function<int64_t()>;  // ns since 1970; any thread

  // What is left of a job, as its comment tells it.
  using OnSummary = std::function<void(const JobSummary& summary)>;

  // `events_file`: empty = in memory only. `on_summary`: null = comments are not read.
  Controller(Commands commands, Duration interval, std::string events_file, WallClock wall_now,
             OnSummary on_summary = nullptr);
  ~Controller() override;

  Status Start(EventLoop& loop, Sink& sink) override;
  void Stop() override;
  int64_t lost() const override { return ledger_.forgotten(); }
  std::vector<Count> counts() const override;
  std::shared_ptr<const SlurmReport> slurm() const override { return report_; }
  std::vector<LibraryCall> library_calls() const override { return book_.calls(); }

 private:
  struct Round;

  void Ask();
  void Apply(const Round& round);
  void AskAccounting();
  void AskComments();
  void ApplyComments(const CommandOutcome& outcome, const std::vector<SlurmJob>& jobs,
                     const std::vector<std::string>& asked);
  // `about_steps`: of these jobs the steps are asked for, and who cancelled them.
  void ApplyAccounting(const CommandOutcome& outcome, const std::vector<SlurmJob>& jobs,
                       const std::vector<std::string>& asked,
                       const std::vector<std::string>& about_steps);
  void NoteAccounting(Call call, const CommandOutcome& outcome);
  void Keep(std::vector<SlurmEvent> events);
  void Publish();
  void TellUp();

  Commands commands_;
  const Duration interval_;
  const std::string events_file_;
  const WallClock wall_now_;
  const OnSummary on_summary_;
  CommentQueue comments_;
  std::unique_ptr<Worker> worker_;
  EventLoop::TimerId timer_ = 0;
  CallBook book_;  // of who is asked
  JobLedger ledger_;
  NodeLedger nodes_;
  StepLedger steps_;
  std::unique_ptr<DiskThread> disk_;  // of the events' file
  EventStore store_;
  SlurmController diagnostics_;
  std::shared_ptr<const SlurmQueue> queue_;  // of the last poll; null: none yet
  bool opened_ = false, diagnosed_ = false;
  double last_answer_wall_seconds_ = 0;
  size_t jobs_bytes_ = 0;  // of the last answer
  int64_t unreadable_ = 0;
  // Why it is up in part: nodes or counts that were not told, accounting that is away, the disk.
  std::string partly_, accounting_error_;
  bool no_accounting_ = false;  // this cluster keeps none
  // Since accounting last answered; rounds until it is asked again.
  int accounting_failures_ = 0, accounting_rest_ = 0;
  std::shared_ptr<const SlurmReport> report_;
};

}  // namespace rankscope::exporter::slurm
