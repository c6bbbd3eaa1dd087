// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/slurm/job_ledger.h"

#include <algorithm>
#include <utility>

#include "exporter/slurm/notify_comment.h"

namespace rankscope::exporter::slurm {
namespace {

struct EndRow {
  std::string_view state, kind;
};
constexpr EndRow kEnds[] = {{"COMPLETED", "completed"},         {"FAILED", "failed"},
                            {"CANCELLED", "cancelled"},         {"TIMEOUT", "timeout"},
                            {"NODE_FAIL", "node_fail"},         {"PREEMPTED", "preempted"},
                            {"BOOT_FAIL", "boot_fail"},         {"DEADLINE", "deadline"},
                            {"OUT_OF_MEMORY", "out_of_memory"}, {"LAUNCH_FAILED", "failed"}};

// slurmstepd's exit of a step that ran out of memory: SIG_OOM (253) in the seven bits of a signal.
constexpr int32_t kSignalOfOom = 253 & 0x7f;

constexpr size_t kFactCap = 512;
// Seconds between two questions of accounting about a job: from a minute to an hour, and a little
// less, for rounds are 30 s apart and not to the second.
constexpr int64_t kFirstWait = 56;
constexpr int64_t kDoublings = 6;
// No state of Slurm's: the job has left the controller's memory, and accounting was asked.
constexpr char kGone[] = "GONE";

bool Has(const std::vector<std::string>& flags, std::string_view flag) {
  return std::find(flags.begin(), flags.end(), flag) != flags.end();
}

enum class Stage { kWaits, kRuns, kEnded };

// What is known of the job besides at this stage, and worth a line.
std::vector<KeyValue> FactsOf(const SlurmJob& job, Stage stage) {
  std::vector<KeyValue> facts;
  const auto text = [&facts](std::string_view key, std::string_view value) {
    if (!value.empty()) facts.push_back({std::string(key), std::string(value.substr(0, kFactCap))});
  };
  const auto number = [&facts](std::string_view key, const std::optional<int64_t>& value) {
    if (value) facts.push_back({std::string(key), std::to_string(*value)});
  };
  const auto time = [&facts](std::string_view key, int64_t value) {
    if (value > 0) facts.push_back({std::string(key), std::to_string(value)});
  };
  text("name", job.name);
  text("user", job.user);
  text("account", job.account);
  text("partition", job.partition);
  text("qos", job.qos);
  text("array_job_id", job.array_job_id);
  text("array_task", job.array_task);
  text("het_job_id", job.het_job_id);
  if (stage != Stage::kWaits) {
    text("nodes", job.nodes);
    text("batch_host", job.batch_host);
  }
  number("node_count", job.node_count);
  number("gpus", job.gpus);
  number("restarts", job.restarts);
  number("priority", job.priority);
  number("time_limit_seconds", job.time_limit_seconds);
  text("dependency", job.dependency);
  time("submit", job.submit);
  if (stage != Stage::kWaits) time("start", job.start);
  if (stage == Stage::kEnded) {
    time("end", job.end);
    number("elapsed_seconds", job.elapsed_seconds);
    if (job.exit) text("exit", Text(*job.exit));
    if (job.derived_exit) text("derived_exit", Text(*job.derived_exit));
    text("failed_node", job.failed_node);
    text("by", job.state_by);
  }
  text("notify", WishInComment(job.comment));
  text("submit_line", job.submit_line);
  text("work_dir", job.work_dir);
  text("stdout", job.std_out);
  text("stderr", job.std_err);
  return facts;
}

std::string_view FactOf(const SlurmEvent& event, std::string_view key) {
  for (const KeyValue& fact : event.facts) {
    if (fact.key == key) return fact.value;
  }
  return {};
}

int64_t Whole(std::string_view text, int64_t absent) {
  int64_t value = 0;
  if (text.empty() || text.size() > 18) return absent;
  for (const char c : text) {
    if (c < '0' || c > '9') return absent;
    value = 10 * value + (c - '0');
  }
  return value;
}

}  // namespace

std::string_view EndOf(std::string_view state) {
  for (const EndRow& row : kEnds) {
    if (row.state == state) return row.kind;
  }
  return {};
}

// What one record says that is not known yet.
class JobLedger::Teller {
 public:
  Teller(const SlurmJob& job, Known& known, int64_t now, std::string_view source, bool accounted,
         std::vector<SlurmEvent>& events)
      : job_(job),
        known_(known),
        now_(now),
        source_(source),
        accounted_(accounted),
        events_(events) {}

  void Tell() {
    TellSubmission();
    TellStart();
    TellPause();
    TellEnd();
    TellWait();
    TellChanges();
    if (!job_.state.empty()) known_.state = job_.state;
    known_.seen = true;
  }

 private:
  SlurmEvent& Put(std::string_view kind, int64_t at, std::string was, std::string is,
                  std::string reason = {}) {
    SlurmEvent event;
    event.wall_ns = std::max<int64_t>(at, 0) * 1'000'000'000;
    event.job_id = job_.job_id;
    event.kind = kind;
    event.reason = std::move(reason);
    event.was = std::move(was);
    event.is = std::move(is);
    event.source = source_;
    return events_.emplace_back(std::move(event));
  }

  // A job that is requeued is submitted anew, under its number: its restart count says so, and for
  // rows of accounting the state of the run before.
  void TellSubmission() {
    const int64_t restarts = job_.restarts.value_or(known_.restarts);
    const bool again = known_.submit > 0 && restarts > known_.restarts;
    if (again) {
      // The time is the end of the run before, as near as this look knows it.
      SlurmEvent& event = Put("requeued", job_.submit > known_.submit ? job_.submit : now_,
                              known_.state, job_.state, job_.reason);
      event.facts = FactsOf(job_, Stage::kWaits);
      known_.suspended = false;
      known_.reason.clear();
      known_.submit = std::max(known_.submit, job_.submit);
    } else if (job_.submit > known_.submit && known_.submit > 0 && restarts > 0) {
      known_.submit = job_.submit;  // of the requeue that is told
    } else if (job_.submit > known_.submit) {
      known_ = Known{};
      Put("submitted", job_.submit, {}, "PENDING").facts = FactsOf(job_, Stage::kWaits);
      known_.submit = known_.first_submit = job_.submit;
    }
    known_.restarts = restarts;
  }

  // A start to come is an estimate of the scheduler's, and while a job that is requeued completes
  // its start is the end of the run before (22.05).
  void TellStart() {
    if (Waits() || Completes() || job_.start <= known_.start || job_.start > now_) return;
    // Cancelled while it waited: start and end are the same, and it never had a node.
    if (job_.nodes.empty() && job_.start == job_.end) return;
    Put("started", job_.start, "PENDING", "RUNNING").facts = FactsOf(job_, Stage::kRuns);
    known_.start = job_.start;
    known_.suspended = false;
  }

  void TellPause() {
    const bool suspended = job_.state == "SUSPENDED";
    if (suspended == known_.suspended) return;
    if (suspended) {
      Put("suspended", job_.suspend > 0 ? job_.suspend : now_, "RUNNING", "SUSPENDED");
    } else if (job_.state == "RUNNING") {
      Put("resumed", job_.suspend > 0 ? job_.suspend : now_, "SUSPENDED", "RUNNING");
    }
    known_.suspended = suspended;
  }

  void TellEnd() {
    std::string_view kind = EndOf(job_.state);
    // REQUEUED is accounting's word for the end of a run whose job goes on.
    const bool requeued = Has(job_.state_flags, "REQUEUED") && job_.state.empty();
    const bool earlier = IsOfAnEarlierRun();
    if ((kind.empty() && !requeued) || Completes() || (job_.end <= known_.end && !earlier)) return;
    if (requeued && known_.restarts > 0) {
      NoteEnd(known_, job_.end);  // told when its restart count rose
      return;
    }
    if (kind == "failed" && job_.derived_exit && job_.derived_exit->signal == kSignalOfOom)
      kind = "out_of_memory";
    if (requeued) kind = "requeued";
    // Nobody looked between its last state that was seen and the end.
    const bool unknown = known_.state.empty() || known_.state == kGone || earlier;
    const std::string was = unknown ? "RUNNING" : known_.state;
    SlurmEvent& event = Put(kind, job_.end, was, requeued ? "REQUEUED" : job_.state, job_.reason);
    event.facts = FactsOf(job_, Stage::kEnded);
    NoteEnd(known_, job_.end);
    if (!job_.state_by.empty()) known_.named_end = job_.end;
    if (!earlier) known_.suspended = false;
  }

  // Accounting may tell of a run late: the one after it has come to its end, and that was told.
  bool IsOfAnEarlierRun() const {
    const std::vector<int64_t>& ends = known_.earlier_ends;
    return accounted_ && known_.restarts > 0 && job_.end > 0 && job_.end < known_.end &&
           known_.first_submit > 0 && job_.submit >= known_.first_submit &&
           ends.size() < kMaxRuns && std::find(ends.begin(), ends.end(), job_.end) == ends.end();
  }

  // "None" of a moment's wait is no reason; the reader has made it empty.
  void TellWait() {
    known_.waits = Waits();
    if (!known_.waits || job_.reason.empty() || job_.reason == known_.reason) return;
    Put("blocked", now_, known_.reason, job_.reason, job_.reason).facts = {
        {"restarts", std::to_string(known_.restarts)}};
    if (!job_.dependency.empty())
      events_.back().facts.push_back({"dependency", job_.dependency.substr(0, kFactCap)});
    known_.reason = job_.reason;
  }

  void TellChanges() {
    const int64_t limit = job_.time_limit_seconds.value_or(-1);
    if (known_.told_limits && EndOf(job_.state).empty()) {
      if (limit != known_.time_limit)
        Put("updated", now_, Number(known_.time_limit), Number(limit), "time_limit");
      if (job_.partition != known_.partition)
        Put("updated", now_, known_.partition, job_.partition, "partition");
      // Slurm takes a dependency out itself once it is fulfilled.
      if (job_.dependency != known_.dependency && known_.waits && !job_.dependency.empty())
        Put("updated", now_, known_.dependency.substr(0, kFactCap),
            job_.dependency.substr(0, kFactCap), "dependency");
    }
    // Accounting rows may lack these fields.
    if (job_.partition.empty()) return;
    known_.told_limits = true;
    known_.time_limit = limit;
    known_.partition = job_.partition;
    known_.dependency = job_.dependency;
  }

  bool Completes() const { return Has(job_.state_flags, "COMPLETING"); }
  bool Waits() const {
    return job_.state == "PENDING" || job_.state == "REQUEUE_HOLD" || job_.state == "SPECIAL_EXIT";
  }

  static std::string Number(int64_t value) { return value < 0 ? "" : std::to_string(value); }

  const SlurmJob& job_;
  Known& known_;
  const int64_t now_;
  const std::string_view source_;
  const bool accounted_;  // a row for each run
  std::vector<SlurmEvent>& events_;
};

void JobLedger::NoteEnd(Known& known, int64_t end) {
  const int64_t earlier = std::min(known.end, end);
  known.end = std::max(known.end, end);
  if (earlier > 0 && earlier != known.end && known.earlier_ends.size() < kMaxRuns)
    known.earlier_ends.push_back(earlier);
}

void JobLedger::Remember(const SlurmEvent& event) {
  if (event.job_id.empty() || event.kind.starts_with("step_")) return;
  Known& known = jobs_[event.job_id];
  const int64_t at = event.wall_ns / 1'000'000'000;
  if (event.kind == "submitted") {
    known = Known{};
    known.submit = known.first_submit = at;
  } else if (event.kind == "started") {
    known.start = at;
  } else if (event.kind == "suspended" || event.kind == "resumed") {
    known.suspended = event.kind == "suspended";
  } else if (event.kind == "blocked") {
    known.reason = event.reason;
  } else if (event.kind == "requeued") {
    known.submit = std::max(known.submit, Whole(FactOf(event, "submit"), 0));
    known.suspended = false;
    known.reason.clear();
  } else if (event.reason == "cancelled_by") {
    known.named_end = at;
  } else if (!EndOf(event.is).empty()) {
    NoteEnd(known, at);
  }
  known.restarts = std::max(known.restarts, Whole(FactOf(event, "restarts"), known.restarts));
  if (event.kind != "updated" && event.kind != "blocked") known.state = event.is;
  MakeRoom();
}

std::vector<SlurmEvent> JobLedger::Update(const std::vector<SlurmJob>& jobs, int64_t now,
                                          std::string_view source) {
  return Tell(jobs, now, source, true);
}

std::vector<SlurmEvent> JobLedger::Explain(const std::vector<SlurmJob>& jobs, int64_t now,
                                           std::string_view source) {
  return Tell(jobs, now, source, false);
}

std::vector<SlurmEvent> JobLedger::NameCancellers(const std::vector<SlurmJob>& jobs,
                                                  std::string_view source) {
  std::vector<SlurmEvent> events;
  for (const SlurmJob& job : jobs) {
    const auto known = jobs_.find(job.job_id);
    if (known == jobs_.end() || !job.step_id.empty()) continue;
    if (job.state != "CANCELLED" || job.state_by.empty() || job.end <= 0) continue;
    if (job.end != known->second.end || known->second.named_end == job.end) continue;
    known->second.named_end = job.end;
    SlurmEvent& event = events.emplace_back();
    event.wall_ns = job.end * 1'000'000'000;
    event.job_id = job.job_id;
    event.kind = "updated";
    event.reason = "cancelled_by";
    event.is = job.state_by;
    event.source = source;
    event.facts = FactsOf(job, Stage::kEnded);
  }
  return events;
}

std::vector<SlurmEvent> JobLedger::Tell(const std::vector<SlurmJob>& jobs, int64_t now,
                                        std::string_view source, bool all) {
  std::vector<SlurmEvent> events;
  if (all) {
    for (auto& [id, known] : jobs_) known.seen = false;
  }
  for (const SlurmJob& job : jobs) {
    if (job.job_id.empty() || !job.step_id.empty()) continue;
    if (job.state.empty() && job.state_flags.empty()) continue;
    Known& known = jobs_[job.job_id];
    const int64_t restarts = known.restarts;
    const int64_t start = known.start;
    Teller(job, known, now, source, !all, events).Tell();
    // The run before has an end of its own that a look at the live jobs does not show.
    if (all && known.restarts > restarts && start > 0) unexplained_.push_back(job.job_id);
  }
  if (all) {
    for (auto& [id, known] : jobs_) {
      if (known.seen) known.asked = known.ask_again = 0;
      const bool goes_on = EndOf(known.state).empty() && !known.state.empty();
      if (known.seen || !goes_on || known.state == kGone || now < known.ask_again) continue;
      // Accounting may say that it runs, until its daemon has caught up or for ever ("runaway").
      known.ask_again = now + (kFirstWait << std::min<int64_t>(known.asked++, kDoublings));
      unexplained_.push_back(id);
      known.state = kGone;
    }
  }
  while (unexplained_.size() > kMaxUnexplained) unexplained_.pop_front();
  MakeRoom();
  // As they happened, not as the jobs are listed.
  std::stable_sort(events.begin(), events.end(),
                   [](const SlurmEvent& a, const SlurmEvent& b) { return a.wall_ns < b.wall_ns; });
  return events;
}

std::vector<std::string> JobLedger::TakeUnexplained(size_t most) {
  const size_t n = std::min(most, unexplained_.size());
  std::vector<std::string> taken(unexplained_.begin(),
                                 unexplained_.begin() + static_cast<ptrdiff_t>(n));
  unexplained_.erase(unexplained_.begin(), unexplained_.begin() + static_cast<ptrdiff_t>(n));
  return taken;
}

void JobLedger::PutBack(const std::vector<std::string>& ids) {
  unexplained_.insert(unexplained_.begin(), ids.begin(), ids.end());
  while (unexplained_.size() > kMaxUnexplained) unexplained_.pop_front();
}

void JobLedger::MakeRoom() {
  if (jobs_.size() <= kMaxJobs) return;
  // A tenth at once, so that a full table is not sorted with each job.
  const size_t excess = jobs_.size() - kMaxJobs + kMaxJobs / 10;
  std::vector<std::pair<int64_t, std::string_view>> oldest;
  for (const auto& [id, known] : jobs_) {
    const bool ended = !EndOf(known.state).empty() || known.state == kGone;
    oldest.emplace_back(ended ? known.end : INT64_MAX / 2 + known.submit, id);
  }
  std::sort(oldest.begin(), oldest.end());
  std::vector<std::string> victims;
  for (size_t i = 0; i < excess; ++i) victims.emplace_back(oldest[i].second);
  for (const std::string& id : victims) jobs_.erase(id);
  forgotten_ += static_cast<int64_t>(excess);
}

}  // namespace rankscope::exporter::slurm
