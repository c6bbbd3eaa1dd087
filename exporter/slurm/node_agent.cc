// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/slurm/node_agent.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "detectors/model/job_summary.h"
#include "exporter/loop/http_url.h"
#include "exporter/slurm/comment_queue.h"
#include "exporter/slurm/event_json.h"
#include "exporter/slurm/job_ledger.h"
#include "exporter/slurm/notify_comment.h"
#include "exporter/slurm/step_ledger.h"
#include "exporter/slurm/text_reader.h"
#include "exporter/slurm/told.h"
#include "exporter/slurm/user_names.h"
#include "exporter/slurm/values.h"

namespace rankscope::exporter::slurm {
namespace {

// What the controller's instance says of one step in a job's life.
SchedulerRecord RecordOf(const SlurmEvent& event, bool end) {
  SchedulerRecord record;
  for (const KeyValue& fact : event.facts) SetField(record, fact.key, fact.value);
  record.job_id = event.job_id;
  record.origin = event.source;
  record.wall_ns = event.wall_ns;
  if (!event.node.empty()) record.failed_node = event.node;
  if (!event.reason.empty()) record.reason = event.reason;
  if (event.reason == "cancelled_by") {
    record.state = "CANCELLED";
    record.by = event.is;
    return record;
  }
  record.event = end ? std::string() : event.kind;
  record.state = !end ? std::string() : event.kind == "requeued" ? "REQUEUED" : event.is;
  return record;
}

// A job that is requeued all night has some hundred events of 1 kB.
constexpr size_t kMostBytes = size_t{4} << 20;
constexpr size_t kMostTries = 12;

bool IsJobNumber(std::string_view id) {
  return !id.empty() && id.size() <= 10 &&
         std::all_of(id.begin(), id.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// "7", "7_3"
bool IsParent(std::string_view id) {
  const size_t sign = id.find('_');
  return IsJobNumber(id.substr(0, sign)) &&
         (sign == std::string_view::npos || IsJobNumber(id.substr(sign + 1)));
}

std::optional<uint32_t> OwnerIn(const Read<SlurmJob>& read, const std::string& job_id) {
  for (const SlurmJob& job : read.records) {
    if (job.job_id != job_id || !job.step_id.empty()) continue;
    if (!job.uid) return UidOf(job.user);
    if (*job.uid >= 0 && *job.uid < std::numeric_limits<uint32_t>::max())
      return static_cast<uint32_t>(*job.uid);
  }
  return std::nullopt;
}

// The answer to kOneJob or kAccounting.
Read<SlurmJob> ReadJobs(const Commands& commands, Call call, std::string_view text,
                        std::string_view separator) {
  if (call == Call::kAccounting) return ReadAccountingText(text, separator);
  return commands.has_queue() ? ReadQueueText(text, separator) : ReadJobText(text);
}

}  // namespace

NodeAgent::NodeAgent(Commands commands, std::string controller_url,
                     std::shared_ptr<Questions> questions, Patience patience, OnOwner on_owner,
                     OnWish on_wish)
    : commands_(std::move(commands)),
      url_text_(std::move(controller_url)),
      questions_(std::move(questions)),
      patience_(patience),
      on_owner_(std::move(on_owner)),
      on_wish_(std::move(on_wish)) {}

NodeAgent::~NodeAgent() {
  Stop();
}

Status NodeAgent::Start(EventLoop& loop, Sink& sink) {
  loop_ = &loop;
  sink_ = &sink;
  const Status found = commands_.Find();
  has_commands_ = found.ok();
  if (!url_text_.empty()) {
    if (const Status url = CheckHttpUrl(url_text_); !url)
      return Error{"slurm.controller_url: " + url.error()};
  } else {
    if (!found) {
      TellState(
          Availability::kNotApplicable,
          found.error() + "; or set slurm.controller_url to the instance with role controller");
      return {};
    }
  }
  questions_->set_tells_owners(has_commands_ && on_owner_);
  worker_ = std::make_unique<Worker>(loop);
  timer_ = loop.Every(Seconds(1), [this] { Beat(); });
  TellState(Availability::kUp, {});
  return {};
}

void NodeAgent::Stop() {
  if (loop_ == nullptr) return;
  loop_->Cancel(std::exchange(timer_, 0));
  questions_->set_tells_owners(false);
  worker_.reset();
  loop_ = nullptr;
}

void NodeAgent::Beat() {
  const bool away = loop_->Now() < owners_away_until_;
  questions_->set_tells_owners(has_commands_ && on_owner_ && !away);
  for (Question& question : questions_->Take()) {
    // Runs without Slurm have names of their own.
    if (!IsJobNumber(question.job_id)) continue;
    if (!question.parent.empty() && !IsParent(question.parent)) continue;
    const Timestamp now = loop_->Now();
    Pending pending;
    pending.due = question.ended ? now + patience_.settle : now;
    pending.deadline = now + patience_.give_up;
    pending.question = std::move(question);
    // Somebody waits for an owner, and for nothing else.
    if (pending.question.owner) {
      pending_.push_front(std::move(pending));
    } else {
      pending_.push_back(std::move(pending));
    }
    if (pending_.size() > Questions::kMost) {
      const auto oldest =
          std::find_if(pending_.begin(), std::prev(pending_.end()),
                       [](const Pending& waiting) { return !waiting.question.owner; });
      pending_.erase(oldest);
      ++lost_;
    }
  }
  Next();
}

// One call at a time.
void NodeAgent::Next() {
  if (worker_->pending() > 0) return;
  const auto due = std::find_if(pending_.begin(), pending_.end(),
                                [now = loop_->Now()](const Pending& p) { return p.due <= now; });
  if (due == pending_.end()) return;
  const Pending pending = std::move(*due);
  pending_.erase(due);
  if (pending.question.owner) {
    AskOwner(pending.question.job_id);
  } else if (!pending.question.parent.empty()) {
    AskParent(pending);
  } else if (url_text_.empty()) {
    AskSlurm(pending);
  } else {
    AskPage(pending);
  }
}

void NodeAgent::Again(Pending pending) {
  pending.due = loop_->Now() + patience_.retry;
  ++pending.tries;
  if (pending.due > pending.deadline || pending.tries > static_cast<int>(kMostTries)) {
    ++lost_;
    return;
  }
  pending_.push_back(std::move(pending));
}

// It waits, and may be held or cancelled before it runs again. The controller alone says why it
// waits; then it is asked a last time when a question would be given up.
void NodeAgent::AskLater(Pending pending) {
  constexpr int kTimes = 2;
  if (pending.later == kTimes) return;
  ++pending.later;
  const Timestamp soon = loop_->Now() + patience_.retry;
  pending.due = pending.later == kTimes ? std::max(soon, pending.deadline) : soon;
  pending_.push_back(std::move(pending));
}

// A path of the instance beside the controller; one that its URL has is that of a reverse proxy.
HttpRequest NodeAgent::PageRequest(std::string_view path, const std::string& job_id) const {
  HttpRequest request;
  request.url = url_text_;
  if (request.url.ends_with('/')) request.url.pop_back();
  request.url.append(path).append("?job_id=").append(job_id);
  request.accept = "text/plain;version=0.0.4";
  request.connect_timeout = request.timeout = patience_.call;
  request.max_bytes = kMostBytes;
  return request;
}

void NodeAgent::AskPage(const Pending& pending) {
  const bool submitted = worker_->Submit(
      [this, pending,
       request = PageRequest("/events", pending.question.job_id)]() -> std::function<void()> {
        auto page = std::make_shared<HttpAnswer>(HttpGet(request));
        return [this, page, pending] { OnPage(pending, *page); };
      },
      {2 * patience_.call.ns}, {});
  if (!submitted) return;  // cannot be: nothing was pending
}

void NodeAgent::AskParent(const Pending& pending) {
  const bool submitted = worker_->Submit(
      [this, pending, commands = commands_, by_page = !url_text_.empty(),
       request = PageRequest("/summary", pending.question.parent), by_command = has_commands_,
       deadline = patience_.call]() -> std::function<void()> {
        const std::string& parent = pending.question.parent;
        std::string line;
        if (by_page) {
          const HttpAnswer page = HttpGet(request);
          if (page.error.empty()) line = FindJobSummary(page.body);
        }
        std::string_view origin = "controller";
        auto outcome = std::make_shared<CommandOutcome>();
        const bool asked = line.empty() && by_command;
        if (asked) {
          const std::string separator = NewSeparator();
          *outcome = commands.Run(Call::kComment, parent, deadline, 0, separator);
          origin = "accounting";
          if (outcome->end == CommandOutcome::End::kDone)
            line = SummaryOf(ReadAccountingText(outcome->output, separator).records, parent);
          outcome->output = {};
        }
        return [this, pending, line, origin, asked, outcome] {
          if (asked) book_.Note(Call::kComment, *outcome);
          OnParent(pending, line, origin);
        };
      },
      {3 * patience_.call.ns}, {});
  if (!submitted) return;  // cannot be: nothing was pending
}

// The controller, and accounting where it has forgotten the job.
void NodeAgent::AskOwner(const std::string& job_id) {
  struct Answer {
    std::vector<std::pair<Call, CommandOutcome>> outcomes;
    std::optional<uint32_t> uid;
  };
  const bool submitted = worker_->Submit(
      [this, job_id, commands = commands_, deadline = patience_.call]() -> std::function<void()> {
        auto answer = std::make_shared<Answer>();
        for (const Call call : {Call::kOneJob, Call::kAccounting}) {
          const std::string separator = NewSeparator();
          CommandOutcome outcome = commands.Run(call, job_id, deadline, 0, separator);
          const Read<SlurmJob> read = ReadJobs(commands, call, outcome.output, separator);
          if (outcome.end == CommandOutcome::End::kDone) answer->uid = OwnerIn(read, job_id);
          outcome.output = {};
          answer->outcomes.emplace_back(call, std::move(outcome));
          if (answer->uid) break;
        }
        return [this, job_id, answer] {
          for (const auto& [call, outcome] : answer->outcomes) book_.Note(call, outcome);
          const CommandOutcome& first = answer->outcomes.front().second;
          const bool answered = first.end == CommandOutcome::End::kDone || IsNoSuchJob(first);
          if (!answered && !answer->uid) {
            owners_away_until_ = loop_->Now() + patience_.give_up;
            questions_->set_tells_owners(false);
          }
          on_owner_(job_id, answer->uid);
        };
      },
      {3 * patience_.call.ns}, {});
  if (!submitted) on_owner_(job_id, std::nullopt);  // cannot be: nothing was pending
}

void NodeAgent::OnParent(Pending pending, const std::string& line, std::string_view origin) {
  const std::string parent = pending.question.parent;
  if (!line.empty()) {
    TellFact(pending.question.job_id, "parent_summary", parent + " " + line, origin, 0, {});
    return;
  }
  // The comment is written within a minute of the end: at 10, 30 and 70 s it is looked for again.
  pending.due = loop_->Now() + Duration{patience_.retry.ns << std::min(pending.tries, 8)};
  ++pending.tries;
  if (pending.due <= pending.deadline) {
    pending_.push_back(std::move(pending));
    return;
  }
  TellFact(pending.question.job_id, "parent_summary", parent + " unknown", origin, 0, {});
}

void NodeAgent::OnPage(Pending pending, const HttpAnswer& page) {
  const auto events = page.error.empty() ? EventsFromJson(page.body) : std::nullopt;
  if (!events) {
    TellState(Availability::kDown, url_text_ + " " +
                                       (page.error.empty() ? "serves no /events" : page.error) +
                                       "; check slurm.controller_url");
    Again(std::move(pending));
    return;
  }
  TellState(Availability::kUp, {});
  bool ended = false, begun = false, steps = false, named = true, waits = false;
  if (told_.size() > 4 * Questions::kMost) told_.clear();
  int64_t& told = told_[pending.question.job_id];
  // Numbers begin anew where the controller's instance has lost its file.
  if (events->last < told) told = 0;
  for (const SlurmEvent& event : events->events) {
    const bool again = event.number <= told || pending.question.wish;
    if (event.job_id.empty() && !again) TellNode(pending.question.job_id, event);
    if (event.job_id != pending.question.job_id) continue;
    steps = steps || event.kind == "step_ended";
    if (event.kind.starts_with("step_")) {
      if (!again)
        TellStep(event.job_id, event.facts, event.is, event.wall_ns / 1'000'000'000, event.source);
      continue;
    }
    begun = begun || event.kind == "started";
    // Of a job that was begun anew since, it is the newest that counts.
    if (event.kind == "started") ended = false;
    const bool end = !EndOf(event.is).empty() || event.kind == "requeued";
    ended = ended || end;
    waits = event.kind == "requeued" || (waits && !end && event.kind != "started");
    if (event.kind == "cancelled") {
      named = std::any_of(event.facts.begin(), event.facts.end(),
                          [](const KeyValue& fact) { return fact.key == "by"; });
    }
    named = named || event.reason == "cancelled_by";
    for (const KeyValue& fact : event.facts) {
      if (fact.key == "notify") TellWish(event.job_id, fact.value);
    }
    if (again) continue;
    TellRecord(RecordOf(event, end));
  }
  if (pending.question.wish) return;
  told = events->last;
  if (pending.question.ended ? !ended : !begun) return Again(std::move(pending));
  if (pending.question.ended && (waits || pending.later > 0)) return AskLater(std::move(pending));
  // Steps, and who cancelled it, the controller's instance has from accounting, a round or two
  // later; or never.
  constexpr int kRoundsTries = 7;
  const bool later = pending.question.ended && (!steps || !named);
  if (later && pending.tries < kRoundsTries && loop_->Now() + patience_.retry <= pending.deadline)
    Again(std::move(pending));
}

// What befell a node of the job's.
void NodeAgent::TellNode(const std::string& job_id, const SlurmEvent& event) {
  if (event.node.empty()) return;
  const auto tell = [&](std::string field, const std::string& value) {
    TellFact(job_id, std::move(field), value, event.source, event.wall_ns, event.node);
  };
  tell("node_reason", event.reason);
  for (const KeyValue& fact : event.facts) {
    if (fact.key == "class") tell("node_reason_class", fact.value);
  }
  tell("node_state", event.is);
}

void NodeAgent::AskSlurm(const Pending& pending) {
  // Accounting is another server, and the only one that says who was preempted; the controller is
  // asked where there is none.
  const bool accounting = pending.question.ended && pending.tries < 3 && pending.later != 1;
  const Call call = accounting ? Call::kAccounting : Call::kOneJob;
  const bool submitted = worker_->Submit(
      [this, commands = commands_, call, pending,
       deadline = patience_.call]() -> std::function<void()> {
        const std::string separator = NewSeparator();
        auto outcome = std::make_shared<CommandOutcome>(
            commands.Run(call, pending.question.job_id, deadline, 0, separator));
        auto read = std::make_shared<Read<SlurmJob>>();
        if (outcome->end == CommandOutcome::End::kDone)
          *read = ReadJobs(commands, call, outcome->output, separator);
        NameCancellers(read->records);
        outcome->output = {};
        return [this, call, pending, outcome, read] {
          OnAnswer(pending, call, *outcome, read->records);
        };
      },
      {2 * patience_.call.ns}, {});
  if (!submitted) return;  // cannot be: nothing was pending
}

void NodeAgent::OnAnswer(Pending pending, Call call, const CommandOutcome& outcome,
                         const std::vector<SlurmJob>& jobs) {
  book_.Note(call, outcome);
  const bool done = outcome.end == CommandOutcome::End::kDone;
  const bool accounting = call == Call::kAccounting;
  const bool answered = done || (!accounting && IsNoSuchJob(outcome));
  if (answered) {
    if (!accounting) away_until_ = {};
    if (loop_->Now() >= away_until_) TellState(Availability::kUp, {});
  } else if (!accounting) {
    away_until_ = loop_->Now() + patience_.give_up;
    TellState(Availability::kDown, Complaint(call, outcome));
  }
  bool ended = false, waits = false, preempted = false;
  auto steps = std::count_if(jobs.begin(), jobs.end(), [&pending](const SlurmJob& job) {
    return job.job_id == pending.question.job_id && !job.step_id.empty();
  });
  for (const SlurmJob& job : jobs) {
    if (job.job_id != pending.question.job_id) continue;
    if (!job.step_id.empty()) {
      // Of thousands the last ones.
      if (steps-- > static_cast<int64_t>(StepLedger::kMaxStepsOfJob)) continue;
      TellStep(job.job_id, StepFacts(job), job.state, job.end, "sacct");
      continue;
    }
    TellWish(job.job_id, WishInComment(job.comment));
    if (pending.question.wish) return;
    TellRecord(RecordOf(job, accounting ? "sacct" : commands_.has_queue() ? "squeue" : "scontrol"));
    ended = !EndOf(job.state).empty() || IsRequeued(job) ||
            (job.state == "PENDING" && job.restarts.value_or(0) > 0);
    waits = job.state == "PENDING" || IsRequeued(job);
    preempted = job.state == "PREEMPTED";
  }
  if (preempted) pending.later = std::max(pending.later, 1);  // who takes nodes does not hold jobs
  if (pending.question.ended && (waits || pending.later > 0)) return AskLater(std::move(pending));
  // Slurm's controller is begun anew in seconds, and has not been asked yet.
  if (!accounting && IsNobodyThere(outcome)) return Again(std::move(pending));
  // The one call of the controller is spent, whatever it gave. Accounting may be behind, or off.
  if (!accounting || ended) {
    if (jobs.empty()) ++lost_;
    return;
  }
  if (!done) pending.tries = 3;
  Again(std::move(pending));
}

// Before the record: an end may be told as soon as it is known.
void NodeAgent::TellWish(const std::string& job_id, std::string wish) const {
  if (on_wish_ && !wish.empty()) on_wish_(job_id, std::move(wish));
}

void NodeAgent::TellStep(const std::string& job_id, const std::vector<KeyValue>& facts,
                         const std::string& state, int64_t end, std::string_view origin) {
  for (SchedulerFact& told : StepTold(job_id, facts, state, end, origin)) Tell(std::move(told));
}

void NodeAgent::TellRecord(SchedulerRecord record) {
  Redact(record);
  Observation observation;
  observation.kind = std::move(record);
  sink_->Accept(observation);
}

void NodeAgent::TellFact(const std::string& job_id, std::string field, std::string value,
                         std::string_view origin, int64_t wall_ns, const std::string& node) {
  SchedulerFact told;
  told.job_id = job_id;
  told.field = std::move(field);
  told.value = std::move(value);
  told.origin = origin;
  told.wall_ns = wall_ns;
  told.node = node;
  Tell(std::move(told));
}

}  // namespace rankscope::exporter::slurm
