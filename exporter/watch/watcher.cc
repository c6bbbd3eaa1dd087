// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/watch/watcher.h"

#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <limits>
#include <utility>

#include "detectors/document/text_layout.h"
#include "exporter/loop/boot_clock.h"
#include "exporter/slurm/step_ledger.h"
#include "exporter/slurm/told.h"

namespace rankscope::watch {
namespace {

constexpr Duration kTick = Seconds(1);
constexpr Duration kPollInterval = Seconds(2);
constexpr Duration kRoundDeadline = Seconds(60);
constexpr Duration kReadDeadline = Seconds(30);
constexpr size_t kPieceBytes = size_t{1} << 20;

}  // namespace

Watcher::Watcher(exporter::EventLoop& loop, exporter::slurm::Commands commands,
                 WatchOptions options, Print print)
    : loop_(loop),
      commands_(std::move(commands)),
      options_(std::move(options)),
      print_(std::move(print)),
      readers_(loop) {
  for (const JobChoice& choice : options_.choices) choices_.push_back({choice});
}

void Watcher::Start() {
  slurm_ = std::make_unique<exporter::Worker>(loop_);
  clocks_.now = loop_.Now();
  clocks_.wall_offset_ns =
      exporter::ReadClock(CLOCK_REALTIME) - exporter::ReadClock(CLOCK_MONOTONIC);
  judge_.SetClock(clocks_.wall_offset_ns, clocks_.now);
  judge_.TellSlurm(true, {}, clocks_.now);
  next_ask_ = next_poll_ = clocks_.now;
  loop_.Every(kTick, [this] { Tick(); });
  Ask();
}

void Watcher::Tick() {
  clocks_.now = loop_.Now();
  const bool poll = clocks_.now >= next_poll_;
  if (poll) next_poll_ = clocks_.now + kPollInterval;
  for (auto& [id, job] : jobs_) {
    if (job.done) continue;
    Follow(job);
    if (poll && job.begun() && !job.concluded()) PollFiles(job);
  }
  judge_.Tick(clocks_.now);
  for (auto& [id, job] : jobs_) {
    if (job.done || !job.begun()) continue;
    TellOutput(job);
    if (job.concluded()) {
      TellEnd(job);
    } else {
      TellVerdict(job);
    }
  }
  if (IsOver()) return Finish();
  if (!asking_ && clocks_.now >= next_ask_) {
    TellProgress();
    Ask();
  }
}

void Watcher::Follow(WatchedJob& job) {
  const Stage stage = job.course().stage();
  if (!job.begun()) {
    if (stage != Stage::kRunning && stage != Stage::kEnded) return;
    if (!job.held && held_ >= JobJudge::kMaxJobs) return;  // it waits for a place
    if (!std::exchange(job.held, true)) ++held_;
    job.BeginRun(judge_, clocks_);
    if (stage == Stage::kRunning) return;
    job.EndRun(false, clocks_);
    if (!job.known() && !job.course().lost())
      job.Know(exporter::slurm::RecordOf(job.course().job(), job.origin));
  }
  if (job.over() && !job.concluded() && job.IsDrained(clocks_)) job.Conclude(judge_, clocks_);
}

// Slurm.

void Watcher::Ask() {
  Asking asking;
  for (const Choice& choice : choices_) {
    const bool open = !choice.unknown &&
                      (!choice.found || std::any_of(jobs_.begin(), jobs_.end(), [&](auto& job) {
                        const JobCourse& course = job.second.course();
                        return course.stage() != Stage::kEnded && !job.second.done &&
                               choice.choice.Matches(course.job());
                      }));
    if (open) asking.choices.push_back(choice.choice);
    if (!choice.found && !choice.unknown) asking.unfound.push_back(choice.choice.number);
  }
  if (asking.choices.empty()) return;  // what is left is to be read, not to be asked
  for (const auto& [id, job] : jobs_) {
    const bool goes = !job.done && job.course().stage() != Stage::kEnded;
    (goes ? asking.going : asking.ended).push_back(id);
  }
  for (const auto& [uid, identity] : identities_) asking.owners.push_back(uid);
  asking_ = slurm_->Submit(
      [this, asking = std::move(asking)]() -> std::function<void()> {
        auto round = std::make_shared<Round>(AskSlurm(commands_, asking));
        return [this, round] { OnRound(std::move(*round)); };
      },
      kRoundDeadline, {});
  asked_ = clocks_.now;
  next_ask_ = asked_ + options_.interval;
}

void Watcher::OnRound(Round round) {
  asking_ = false;
  clocks_.now = loop_.Now();
  identities_.merge(round.identities);
  TellSlurm(round);
  if (!round.answered) {
    // No configuration, no right to ask: that does not pass by itself.
    if (!answered_once_ && !round.away) Finish();
    return;
  }
  answered_once_ = true;
  confirmed_ = asked_;
  TakeQueue(round);
  TakeAccounting(round);
  if (!round.whole) return;
  TakeMissing(round);
  TakeUnknown(round);
}

void Watcher::TellSlurm(const Round& round) {
  const std::string why = round.answered ? std::string() : round.complaint;
  if (why.empty() == away_.empty()) return;
  away_ = why;
  judge_.TellSlurm(why.empty(), why, clocks_.now);
  if (why.empty()) return Say(SlurmLine(true, {}, clocks_.wall_ns()));
  const bool again = answered_once_ || round.away;
  Say(SlurmLine(false, why + (again ? "; it is asked again" : ""), clocks_.wall_ns()));
}

void Watcher::TakeQueue(const Round& round) {
  for (const exporter::slurm::SlurmJob& job : round.jobs) Update(job, "squeue");
}

void Watcher::TakeAccounting(const Round& round) {
  const auto in_queue = [&round](const std::string& id) {
    return std::any_of(round.jobs.begin(), round.jobs.end(),
                       [&id](const auto& job) { return job.job_id == id; });
  };
  std::map<std::string, size_t> steps;
  for (const exporter::slurm::SlurmJob& row : round.accounted) {
    const bool chosen = std::any_of(choices_.begin(), choices_.end(), [&row](const Choice& choice) {
      return choice.choice.Matches(row);
    });
    auto found = jobs_.find(row.job_id);
    if (!row.step_id.empty()) {
      if (found == jobs_.end() || found->second.concluded()) continue;
      if (++steps[row.job_id] > exporter::slurm::StepLedger::kMaxStepsOfJob) continue;
      for (SchedulerFact& fact : exporter::slurm::StepTold(
               row.job_id, exporter::slurm::StepFacts(row), row.state, row.end, "sacct"))
        found->second.Know(std::move(fact));
      continue;
    }
    const bool ended = StageOf(row) == Stage::kEnded;
    if (!chosen || (!ended && !exporter::slurm::IsRequeued(row))) continue;
    if (ended && !in_queue(row.job_id)) Update(row, "sacct");
    found = jobs_.find(row.job_id);
    if (found == jobs_.end() || found->second.concluded()) continue;
    WatchedJob& job = found->second;
    if (job.course().stage() != Stage::kEnded) continue;
    job.course().Explain(row);
    job.Know(exporter::slurm::RecordOf(row, "sacct"));
  }
}

// Jobs that squeue does not show any more, and of which accounting does not know the end.
void Watcher::TakeMissing(const Round& round) {
  constexpr int kMaxMissed = 10;  // rounds: accounting may be minutes behind
  for (auto& [id, job] : jobs_) {
    if (job.done || job.course().stage() == Stage::kEnded) continue;
    const bool shown = std::any_of(round.jobs.begin(), round.jobs.end(),
                                   [&id = id](const auto& each) { return each.job_id == id; });
    if (shown) {
      job.missed = 0;
      continue;
    }
    // Its tasks have numbers of their own by now.
    if (IsBundle(job.course().job()) && round.accounting_complaint.empty()) {
      job.Finish(0);
      continue;
    }
    ++job.missed;
    if (round.no_accounting || job.missed >= kMaxMissed) {
      Apply(job, job.course().Lose(), "squeue");
    } else if (job.missed == 1) {
      const std::string& why = round.accounting_complaint;
      Say(NoteLine(ToldOf(job), "has left the queue, and accounting does not tell its end yet" +
                                    (why.empty() ? "" : ": " + why)));
    }
  }
}

void Watcher::TakeUnknown(const Round& round) {
  constexpr int kMaxMissed = 3;  // rounds in which accounting did not answer
  for (Choice& choice : choices_) {
    choice.found =
        choice.found || std::any_of(jobs_.begin(), jobs_.end(), [&choice](const auto& job) {
          return choice.choice.Matches(job.second.course().job());
        });
    if (choice.found || choice.unknown) continue;
    const bool answered = round.asked_accounting && round.accounting_complaint.empty();
    if (!answered && !round.no_accounting && ++choice.missed < kMaxMissed) continue;
    choice.unknown = true;
    const std::string why = answered ? "neither slurmctld nor accounting knows it"
                            : round.no_accounting
                                ? "slurmctld does not know it, and there is no accounting to ask"
                                : "slurmctld does not know it; " + round.accounting_complaint;
    Say(UnknownLine(choice.choice.text, why, clocks_.wall_ns()));
  }
}

void Watcher::Update(const exporter::slurm::SlurmJob& job, std::string_view origin) {
  auto found = jobs_.find(job.job_id);
  if (found == jobs_.end()) {
    if (jobs_.size() >= kMaxJobs) {
      if (!std::exchange(too_many_, true))
        Say(UnknownLine(job.job_id,
                        "more jobs than are watched at once: this one and others are not",
                        clocks_.wall_ns()));
      return;
    }
    found = jobs_.try_emplace(job.job_id, job.job_id).first;
  }
  WatchedJob& watched = found->second;
  // A bundle that is gone may be the last of its tasks now.
  if (watched.done && !IsBundle(watched.course().job())) return;
  watched.done = false;
  Apply(watched, watched.course().Update(job), origin);
}

void Watcher::Apply(WatchedJob& job, const JobCourse::News& news, std::string_view origin) {
  job.origin = origin;
  if (news.state && job.course().stage() != Stage::kEnded) Say(StateLine(ToldOf(job)));
  if (!news.run_over || !job.begun() || job.over()) return;
  job.EndRun(news.put_back, clocks_);
  if (job.course().lost()) return;
  SchedulerRecord record = exporter::slurm::RecordOf(job.course().job(), origin);
  if (news.put_back) {  // which it was, whether anybody looked then or not
    record.state = "PENDING";
    record.start = 0;
  }
  job.Know(std::move(record));
}

// Output files.

exporter::UserIdentity Watcher::ReaderOf(const WatchedJob& job) const {
  const uint32_t own = geteuid();
  const int64_t uid = job.course().job().uid.value_or(own);
  if (own != 0 || uid < 0 || uid >= std::numeric_limits<uint32_t>::max()) return {own};
  const auto known = identities_.find(uid);
  if (known != identities_.end()) return known->second;
  return {static_cast<uint32_t>(uid)};
}

void Watcher::PollFiles(WatchedJob& job) {
  const exporter::UserIdentity reader = ReaderOf(job);
  for (size_t i = 0; i < job.files().size(); ++i) {
    FollowedFile& file = job.files()[i];
    if (file.reading) continue;
    OutputRequest request = file.request;
    request.most = kPieceBytes;
    request.foreign = reader.uid != 0 && geteuid() == 0;
    file.reading = readers_.Submit(
        reader,
        [this, id = job.id(), i, request = std::move(request)]() -> std::function<void()> {
          auto piece = std::make_shared<OutputPiece>(ReadOutput(request));
          return [this, id, i, piece] { OnPiece(id, i, *piece); };
        },
        kReadDeadline,
        [this, id = job.id(), i] {
          const auto found = jobs_.find(id);
          if (found != jobs_.end() && i < found->second.files().size())
            found->second.files()[i].error = "its file system does not answer";
        });
    if (!file.reading && !readers_.obstacle().empty()) file.error = readers_.obstacle();
  }
}

void Watcher::OnPiece(const std::string& id, size_t file, const OutputPiece& piece) {
  const auto found = jobs_.find(id);
  if (found == jobs_.end() || found->second.done) return;
  clocks_.now = loop_.Now();
  const bool more = piece.bytes.size() == kPieceBytes;
  found->second.OnPiece(file, piece, judge_, clocks_);
  if (more) PollFiles(found->second);
}

// What is told.

void Watcher::TellOutput(WatchedJob& job) {
  const WatchedJob::Output output = job.OutputNow(clocks_);
  if (output.paths.empty() && output.error.empty()) return;
  std::string told = Join(output.paths, "\n") + '\n' + output.error;
  if (told == job.told_output) return;
  job.told_output = std::move(told);
  Say(OutputLine(ToldOf(job), output.paths, output.error));
}

void Watcher::TellVerdict(WatchedJob& job) {
  const proto::Verdict* const verdict = judge_.Find(job.id());
  if (verdict == nullptr || job.over() || !job.HasCaughtUp()) return;
  std::string now = verdict->code() + "/" + verdict->sub();
  if (now != job.verdict) {
    job.verdict = now;
    job.verdict_since = clocks_.now;
  }
  if (now == job.told_verdict) return;
  // Of a run that has said little nothing is known yet; that is no news.
  const bool well =
      verdict->code() == "G1" && (verdict->sub() == "healthy" || verdict->sub() == "slow");
  const bool tells = well || (verdict->code() != "G1" && verdict->code() != "U0");
  if (!tells && job.told_verdict.empty()) return;
  // A job that has ended is silent too: until Slurm was asked whether it runs.
  constexpr Duration kUnconfirmed = Seconds(90);
  const bool confirmed = confirmed_ >= job.verdict_since ||
                         (!away_.empty() && clocks_.now - job.verdict_since >= kUnconfirmed);
  if (!well && !confirmed) return;
  job.told_verdict = std::move(now);
  Say(VerdictLine(ToldOf(job), *verdict));
}

void Watcher::TellProgress() {
  for (auto& [id, job] : jobs_) {
    if (job.done || !job.begun() || job.over() || !job.HasCaughtUp()) continue;
    const auto summary = judge_.Summarize(id, clocks_.now);
    if (!summary || summary->records == job.told_records) continue;
    job.told_records = summary->records;
    Say(ProgressLine(ToldOf(job), *summary));
  }
}

void Watcher::TellEnd(WatchedJob& job) {
  // The judge takes a few ticks; it may have had no place for the job.
  constexpr Duration kJudged = Seconds(20);
  const proto::Verdict* verdict = judge_.Find(job.id());
  if (verdict != nullptr && verdict->state() != proto::FINAL) verdict = nullptr;
  if (verdict == nullptr && clocks_.now - job.concluded_at() < kJudged) return;
  const bool put_back = job.put_back();
  Say(EndLine(ToldOf(job), verdict, put_back));
  const bool alone = jobs_.size() == 1 && options_.choices.size() == 1;
  if (!options_.json && verdict != nullptr && (alone || verdict->code() != "G1")) {
    std::string text = VerdictToText(*verdict, options_.detail);
    while (text.ends_with('\n')) text.pop_back();
    print_('\n' + text + '\n');
  }
  if (put_back) return job.Leave();
  job.Finish(job.course().lost() ? kUnknownStatus : StatusOf(job.course().job()));
  --held_;
  judge_.Forget(job.id(), clocks_.now);
}

bool Watcher::IsOver() const {
  if (!answered_once_) return false;
  const bool settled = std::all_of(choices_.begin(), choices_.end(), [](const Choice& choice) {
    return choice.found || choice.unknown;
  });
  return settled &&
         std::all_of(jobs_.begin(), jobs_.end(), [](const auto& job) { return job.second.done; });
}

void Watcher::Finish() {
  if (std::exchange(finished_, true)) return;
  Totals totals;
  for (const Choice& choice : choices_) totals.unknown += choice.unknown ? 1 : 0;
  for (const auto& [id, job] : jobs_) {
    if (IsBundle(job.course().job()) && job.course().stage() != Stage::kEnded) continue;
    ++totals.jobs;
    const bool completed =
        !job.course().lost() && job.course().job().state == "COMPLETED" && job.status == 0;
    ++(job.course().lost() ? totals.unknown : completed ? totals.completed : totals.others);
  }
  totals.jobs += std::count_if(choices_.begin(), choices_.end(),
                               [](const Choice& choice) { return choice.unknown; });
  totals.status = status();
  if (options_.json || totals.jobs > 1) Say(TotalsLine(totals, clocks_.wall_ns()));
  loop_.Stop();
}

void Watcher::PrintStands() {
  clocks_.now = loop_.Now();
  for (const auto& [id, job] : jobs_) {
    if (job.done) continue;
    const auto summary = judge_.Summarize(id, clocks_.now);
    Say(StandsLine(ToldOf(job), summary && job.begun() ? &*summary : nullptr,
                   job.begun() ? judge_.Find(id) : nullptr));
  }
}

int Watcher::status() const {
  int worst = too_many_ ? kUnknownStatus : 0;
  for (const Choice& choice : choices_) {
    if (choice.unknown || !choice.found) worst = std::max(worst, kUnknownStatus);
  }
  for (const auto& [id, job] : jobs_) worst = std::max(worst, job.status);
  return worst;
}

}  // namespace rankscope::watch
