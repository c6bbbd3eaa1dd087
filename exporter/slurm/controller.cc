// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/slurm/controller.h"

#include <algorithm>
#include <iterator>
#include <span>
#include <utility>

#include "detectors/logs/text/redactor.h"
#include "exporter/slurm/json_reader.h"
#include "exporter/slurm/queue_summary.h"
#include "exporter/slurm/text_reader.h"
#include "exporter/slurm/user_names.h"

namespace rankscope::exporter::slurm {
namespace {

// At the end, for events that are on their way to the disk.
constexpr Duration kDiskPatience = Milliseconds(100);

// A line of sacct's columns is some 300 bytes, and a command line has its own limit.
constexpr size_t kJobsOfOneCall = 100;
// slurmrestd is asked of one job at a time, one after the other.
constexpr size_t kJobsOfRest = 20;

bool ByRest(const Commands& commands) {
  return commands.asked() == Asked::kRest;
}

std::string_view SourceOf(const Commands& commands) {
  return ByRest(commands) ? "slurmrestd" : "scontrol";
}

// People put keys and passwords on command lines.
void Mask(SlurmEvent& event) {
  for (KeyValue& fact : event.facts) logs::Redact(std::span(fact.value.data(), fact.value.size()));
  logs::Redact(std::span(event.was.data(), event.was.size()));
  logs::Redact(std::span(event.is.data(), event.is.size()));
  logs::Redact(std::span(event.reason.data(), event.reason.size()));
}

// A run of a job is over, whether the job goes on or not.
bool IsEnd(const SlurmEvent& event) {
  return !event.job_id.empty() && !event.kind.starts_with("step_") &&
         (!EndOf(event.is).empty() || event.kind == "requeued");
}

// At slurmrestd's place something else may answer, with success.
void FailUnlessWhole(bool whole, CommandOutcome& call) {
  if (whole) return;
  call.end = CommandOutcome::End::kFailed;
  call.complaint = "the answer is not JSON, or is truncated";
}

struct Accounts {
  CommandOutcome call;  // the last one
  Read<SlurmJob> jobs;
};

// Accounting's rows of these jobs; `call`: kAccounting or kComment. A worker's thread.
Accounts AskAccounts(const Commands& commands, Call call, std::vector<std::string> ids) {
  const bool rest = ByRest(commands);
  if (!rest) {
    std::string all;
    for (const std::string& id : ids) all += (all.empty() ? "" : ",") + id;
    ids = {all};
  }
  Accounts accounts;
  for (const std::string& id : ids) {
    const std::string separator = NewSeparator();
    accounts.call = commands.Run(call, id, Controller::kDeadline, 0, separator);
    if (accounts.call.end == CommandOutcome::End::kDone) {
      Read<SlurmJob> read = rest ? ReadAccountingJson(std::move(accounts.call.output))
                                 : ReadAccountingText(accounts.call.output, separator);
      FailUnlessWhole(read.whole, accounts.call);
      accounts.jobs.unreadable += read.unreadable;
      std::move(read.records.begin(), read.records.end(),
                std::back_inserter(accounts.jobs.records));
    }
    accounts.call.output = {};
    if (accounts.call.end != CommandOutcome::End::kDone) break;
  }
  NameCancellers(accounts.jobs.records);
  return accounts;
}

SlurmController Describe(const SlurmDiag& diag) {
  SlurmController told;
  told.server_threads = diag.server_threads.value_or(-1);
  told.agent_queue = diag.agent_queue.value_or(-1);
  told.dbd_agent_queue = diag.dbd_agent_queue.value_or(-1);
  told.submitted = diag.submitted.value_or(-1);
  told.started = diag.started.value_or(-1);
  told.completed = diag.completed.value_or(-1);
  told.cancelled = diag.cancelled.value_or(-1);
  told.failed = diag.failed.value_or(-1);
  told.cycle_seconds = diag.cycle_seconds.value_or(-1);
  told.cycle_max_seconds = diag.cycle_max_seconds.value_or(-1);
  told.cycle_mean_seconds = diag.cycle_mean_seconds.value_or(-1);
  told.backfill_seconds = diag.backfill_seconds.value_or(-1);
  told.backfill_mean_seconds = diag.backfill_mean_seconds.value_or(-1);
  told.backfill_depth = diag.backfill_depth.value_or(-1);
  told.queue_length = diag.queue_length.value_or(-1);
  // The most frequent ones: types come with each release.
  constexpr size_t kMostTypes = 40;
  std::vector<RpcCount> rpcs = diag.rpcs;
  std::stable_sort(rpcs.begin(), rpcs.end(),
                   [](const RpcCount& a, const RpcCount& b) { return a.calls > b.calls; });
  if (rpcs.size() > kMostTypes) rpcs.resize(kMostTypes);
  for (const RpcCount& rpc : rpcs) told.rpcs.push_back({rpc.name, rpc.calls, rpc.seconds});
  return told;
}

}  // namespace

// What one round has brought: one answer after the other, none where the one before has failed,
// for a controller that does not answer is not asked twice.
struct Controller::Round {
  CommandOutcome jobs_call, queue_call, nodes_call, diagnostics_call, steps_call;
  Read<SlurmJob> jobs, steps;
  Read<SlurmNode> nodes;
  SlurmDiag diagnostics;
  SlurmQueue queue;
  size_t jobs_bytes = 0;
  bool nodes_asked = false, diagnostics_asked = false, steps_asked = false, queue_asked = false;
};

Controller::Controller(Commands commands, Duration interval, std::string events_file,
                       WallClock wall_now, OnSummary on_summary)
    : commands_(std::move(commands)),
      interval_(std::max(interval, kLeastInterval)),
      events_file_(std::move(events_file)),
      wall_now_(std::move(wall_now)),
      on_summary_(std::move(on_summary)),
      book_(commands_.asked()) {}

Controller::~Controller() {
  Stop();
}

Status Controller::Start(EventLoop& loop, Sink& sink) {
  loop_ = &loop;
  sink_ = &sink;
  if (auto found = commands_.Find(); !found) return found;
  disk_ = std::make_unique<DiskThread>(loop);
  if (opened_ && !events_file_.empty()) store_.Reopen(*disk_);
  if (!opened_ && !events_file_.empty()) {
    static_cast<void>(store_.Open(events_file_, *disk_));  // see trouble()
    for (const auto& event : *store_.events()) {
      ledger_.Remember(*event);
      steps_.Remember(*event);
      nodes_.Remember(*event);
      // What ended while nobody was here, as far as its comment may still be on its way.
      const int64_t ended = event->wall_ns / 1'000'000'000;
      if (IsEnd(*event) && ended + CommentQueue::kAgain > wall_now_() / 1'000'000'000)
        comments_.Add(event->job_id, ended);
    }
  }
  opened_ = true;
  worker_ = std::make_unique<Worker>(loop);
  timer_ = loop.Every(interval_, [this] { Ask(); });
  Publish();
  Ask();
  return {};
}

void Controller::Stop() {
  if (loop_ == nullptr) return;
  loop_->Cancel(std::exchange(timer_, 0));
  worker_.reset();
  store_.Close();
  disk_->Stop(kDiskPatience);
  disk_.reset();
  loop_ = nullptr;
}

std::vector<Source::Count> Controller::counts() const {
  return {{"unreadable", unreadable_}, {"steps_left_out", steps_.left_out()}};
}

void Controller::Ask() {
  if (worker_->pending() > 0) return;  // one in flight
  const bool submitted = worker_->Submit(
      // Jobs come and go, and most of them stay.
      [this, commands = commands_,
       expects = jobs_bytes_ + jobs_bytes_ / 8]() -> std::function<void()> {
        auto round = std::make_shared<Round>();
        const bool rest = ByRest(commands);
        round->jobs_call = commands.Run(Call::kJobs, {}, kDeadline, expects);
        round->jobs_bytes = round->jobs_call.output.size();
        if (round->jobs_call.end == CommandOutcome::End::kDone) {
          round->jobs = rest ? ReadJobJson(std::move(round->jobs_call.output))
                             : ReadJobText(round->jobs_call.output);
          round->jobs_call.output = {};
          FailUnlessWhole(round->jobs.whole, round->jobs_call);
        }
        if (round->jobs_call.end == CommandOutcome::End::kDone && commands.has_queue()) {
          const std::string separator = NewSeparator();
          round->queue_call = commands.Run(Call::kQueue, {}, kDeadline, expects, separator);
          round->queue_asked = true;
          Read<SlurmJob> sure = ReadQueueText(round->queue_call.output, separator);
          round->jobs.records = Confirm(sure.records, round->jobs.records);
          round->jobs.unreadable = sure.unreadable;
          round->queue_call.output = {};
          if (round->queue_call.end != CommandOutcome::End::kDone)
            round->jobs_call = round->queue_call;
        }
        if (round->jobs_call.end == CommandOutcome::End::kDone) {
          round->nodes_call = commands.Run(Call::kNodes, {}, kDeadline);
          round->nodes_asked = true;
          round->nodes = rest ? ReadNodeJson(std::move(round->nodes_call.output))
                              : ReadNodeText(round->nodes_call.output);
          round->nodes_call.output = {};
          FailUnlessWhole(round->nodes.whole, round->nodes_call);
        }
        if (round->nodes_call.end == CommandOutcome::End::kDone) {
          round->diagnostics_call = commands.Run(Call::kDiagnostics, {}, kDeadline);
          round->diagnostics_asked = true;
          round->diagnostics = rest ? ReadDiagJson(std::move(round->diagnostics_call.output))
                                    : ReadDiagText(round->diagnostics_call.output);
          FailUnlessWhole(round->diagnostics.whole, round->diagnostics_call);
        }
        if (round->diagnostics_call.end == CommandOutcome::End::kDone && commands.has_queue()) {
          const std::string separator = NewSeparator();
          round->steps_call = commands.Run(Call::kSteps, {}, kDeadline, 0, separator);
          round->steps_asked = true;
          round->steps = ReadStepText(round->steps_call.output, separator);
          round->steps_call.output = {};
        }
        round->queue = Summarize(round->jobs.records, round->nodes.records);
        return [this, round] { Apply(*round); };
      },
      // Each call has its own deadline: this one is for a command that cannot even be killed.
      {6 * kDeadline.ns},
      [this] {
        TellState(Availability::kDown, "a command of Slurm's does not end, not even after SIGKILL");
      });
  if (!submitted) return;  // cannot be: nothing was pending
}

void Controller::Apply(const Round& round) {
  const int64_t now = wall_now_() / 1'000'000'000;
  book_.Note(Call::kJobs, round.jobs_call);
  if (round.queue_asked) book_.Note(Call::kQueue, round.queue_call);
  if (round.nodes_asked) book_.Note(Call::kNodes, round.nodes_call);
  if (round.diagnostics_asked) book_.Note(Call::kDiagnostics, round.diagnostics_call);
  if (round.steps_asked) book_.Note(Call::kSteps, round.steps_call);
  unreadable_ += round.jobs.unreadable + round.nodes.unreadable + round.steps.unreadable;
  if (round.jobs_call.end != CommandOutcome::End::kDone) {
    TellState(Availability::kDown, Complaint(Call::kJobs, round.jobs_call, commands_.asked()));
    Publish();
    return;
  }
  jobs_bytes_ = round.jobs_bytes;
  queue_ = std::make_shared<const SlurmQueue>(round.queue);
  last_answer_wall_seconds_ = static_cast<double>(now);
  Keep(ledger_.Update(round.jobs.records, now, SourceOf(commands_)));
  std::string partly = Complaint(Call::kNodes, round.nodes_call, commands_.asked());
  if (partly.empty()) {
    Keep(nodes_.Update(round.nodes.records, now, SourceOf(commands_)));
    partly = Complaint(Call::kDiagnostics, round.diagnostics_call, commands_.asked());
    diagnosed_ = partly.empty();
    if (diagnosed_) diagnostics_ = Describe(round.diagnostics);
  }
  if (partly.empty() && round.steps_asked) {
    partly = Complaint(Call::kSteps, round.steps_call, commands_.asked());
    if (partly.empty()) Keep(steps_.Update(round.steps.records, now, "squeue"));
  }
  partly_ = std::move(partly);
  TellUp();
  Publish();
  AskAccounting();
}

void Controller::TellUp() {
  TellState(Availability::kUp, !partly_.empty()             ? partly_
                               : !accounting_error_.empty() ? accounting_error_
                                                            : store_.trouble());
}

void Controller::AskAccounting() {
  if (accounting_rest_ > 0) {
    --accounting_rest_;
    return;
  }
  const size_t most = ByRest(commands_) ? kJobsOfRest : kJobsOfOneCall;
  const std::vector<std::string> ids = ledger_.TakeUnexplained(most);
  const std::vector<std::string> about_steps =
      no_accounting_ ? std::vector<std::string>() : steps_.TakeDue(most - ids.size());
  std::vector<std::string> all = ids;
  all.insert(all.end(), about_steps.begin(), about_steps.end());
  if (all.empty()) return AskComments();
  const bool submitted = worker_->Submit(
      [this, commands = commands_, ids, about_steps, all]() -> std::function<void()> {
        auto accounts = std::make_shared<Accounts>(AskAccounts(commands, Call::kAccounting, all));
        return [this, accounts, ids, about_steps] {
          unreadable_ += accounts->jobs.unreadable;
          ApplyAccounting(accounts->call, accounts->jobs.records, ids, about_steps);
        };
      },
      {static_cast<int64_t>(all.size() + 1) * kDeadline.ns}, {});
  if (!submitted) return;  // the round has just ended: the queue is empty
}

// Accounting may be off for good: it is asked less and less often, at last every ten minutes.
void Controller::NoteAccounting(Call call, const CommandOutcome& outcome) {
  constexpr int kMostFailures = 5;
  constexpr int kMostRest = 19;
  book_.Note(call, outcome);
  accounting_error_ = Complaint(call, outcome, commands_.asked());
  if (accounting_error_.empty()) {
    accounting_failures_ = accounting_rest_ = 0;
  } else {
    accounting_rest_ = std::min((1 << accounting_failures_) - 1, kMostRest);
    accounting_failures_ = std::min(accounting_failures_ + 1, kMostFailures);
  }
  TellUp();
}

// What accounting does not know though it answers is not known: but when it has been away, the
// controller has kept its records and sends them in its own time, so that it is asked once more.
void Controller::ApplyAccounting(const CommandOutcome& outcome, const std::vector<SlurmJob>& jobs,
                                 const std::vector<std::string>& asked,
                                 const std::vector<std::string>& about_steps) {
  const bool was_away = accounting_failures_ > 0;
  // A cluster without accounting lacks nothing where its steps alone were asked for.
  no_accounting_ = outcome.complaint.find("accounting storage is disabled") != std::string::npos;
  if (no_accounting_ && asked.empty()) return AskComments();
  NoteAccounting(Call::kAccounting, outcome);
  const bool is_away = outcome.end != CommandOutcome::End::kDone;
  if (is_away || was_away) ledger_.PutBack(asked);
  if (is_away) steps_.PutBack(about_steps);
  if (is_away && jobs.empty()) return;
  const int64_t now = wall_now_() / 1'000'000'000;
  const std::string_view source = ByRest(commands_) ? "slurmrestd" : "sacct";
  std::vector<SlurmJob> unexplained, rows;
  for (const SlurmJob& job : jobs) {
    const auto among = [&job](const std::vector<std::string>& ids) {
      return std::find(ids.begin(), ids.end(), job.job_id) != ids.end();
    };
    if (among(asked)) unexplained.push_back(job);
    if (among(asked) || among(about_steps)) rows.push_back(job);
  }
  Keep(ledger_.Explain(unexplained, now, source));
  Keep(steps_.Explain(rows, now, source));
  Keep(ledger_.NameCancellers(rows, source));
  if (!is_away) steps_.Settle(about_steps, rows);
  Publish();
  if (!is_away) AskComments();
}

void Controller::AskComments() {
  if (!on_summary_) return;
  const int64_t now = wall_now_() / 1'000'000'000;
  const std::vector<std::string> ids =
      ByRest(commands_) ? comments_.TakeDue(now, kJobsOfRest) : comments_.TakeDue(now);
  if (ids.empty()) return;
  const bool submitted = worker_->Submit(
      [this, commands = commands_, ids]() -> std::function<void()> {
        auto accounts = std::make_shared<Accounts>(AskAccounts(commands, Call::kComment, ids));
        return
            [this, accounts, ids] { ApplyComments(accounts->call, accounts->jobs.records, ids); };
      },
      {static_cast<int64_t>(ids.size() + 1) * kDeadline.ns}, {});
  if (!submitted) return;  // the call before has just ended: the queue is empty
}

// A comment is its writer's words: what is no summary of that very job says nothing.
void Controller::ApplyComments(const CommandOutcome& outcome, const std::vector<SlurmJob>& jobs,
                               const std::vector<std::string>& asked) {
  NoteAccounting(Call::kComment, outcome);
  if (!accounting_error_.empty()) comments_.PutBack(asked, wall_now_() / 1'000'000'000);
  for (const SlurmJob& job : jobs) {
    if (const std::optional<JobSummary> summary = SummaryInComment(job)) {
      comments_.Done(job.job_id);
      on_summary_(*summary);
    }
  }
}

void Controller::Keep(std::vector<SlurmEvent> events) {
  if (events.empty()) return;
  for (SlurmEvent& event : events) {
    if (IsEnd(event)) {
      comments_.Add(event.job_id, event.wall_ns / 1'000'000'000);
      steps_.NoteEnd(event.job_id);
    }
    Mask(event);
  }
  store_.Add(std::move(events));
}

void Controller::Publish() {
  auto report = std::make_shared<SlurmReport>();
  report->events = store_.events();
  report->first_kept = store_.first_kept();
  report->counts = store_.counts();
  report->nodes = nodes_.States();
  report->steps.assign(steps_.newest().begin(), steps_.newest().end());
  report->controller = diagnostics_;
  report->controller_known = diagnosed_;
  report->queue = queue_;
  report->last_answer_wall_seconds = last_answer_wall_seconds_;
  report_ = std::move(report);
}

}  // namespace rankscope::exporter::slurm
