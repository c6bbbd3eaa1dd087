// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/slurm/step_ledger.h"

#include <algorithm>
#include <utility>

#include "exporter/slurm/job_ledger.h"
#include "exporter/slurm/values.h"

namespace rankscope::exporter::slurm {
namespace {

constexpr size_t kFactCap = 512;
constexpr std::string_view kStarted = "step_started", kEnded = "step_ended";

// Slurm's own container of what it adopts is no step of the job's.
bool IsStep(const SlurmJob& row) {
  return !row.job_id.empty() && !row.step_id.empty() && row.step_id != "extern";
}

std::string FactOf(const SlurmEvent& event, std::string_view key) {
  for (const KeyValue& fact : event.facts) {
    if (fact.key == key) return fact.value;
  }
  return {};
}

}  // namespace

std::vector<KeyValue> StepFacts(const SlurmJob& step) {
  std::vector<KeyValue> facts;
  const auto text = [&facts](std::string_view key, std::string_view value) {
    if (!value.empty()) facts.push_back({std::string(key), std::string(value.substr(0, kFactCap))});
  };
  text("step_id", step.step_id);
  text("name", step.name);
  text("nodes", step.nodes);
  if (step.tasks) text("tasks", std::to_string(*step.tasks));
  if (step.start > 0) text("start", std::to_string(step.start));
  if (!EndOf(step.state).empty()) {
    if (step.end > 0) text("end", std::to_string(step.end));
    if (step.elapsed_seconds) text("elapsed_seconds", std::to_string(*step.elapsed_seconds));
    if (step.exit) text("exit", Text(*step.exit));
    text("by", step.state_by);
  }
  return facts;
}

StepLedger::Known* StepLedger::Find(const SlurmJob& step) {
  if (jobs_.size() >= kMaxJobs && !jobs_.contains(step.job_id)) {
    jobs_.erase(std::min_element(jobs_.begin(), jobs_.end(), [](const auto& a, const auto& b) {
      return a.second.touched < b.second.touched;
    }));
  }
  Steps& steps = jobs_[step.job_id];
  steps.touched = ++clock_;
  if (const auto known = steps.all.find(step.step_id); known != steps.all.end())
    return &known->second;
  if (steps.all.size() >= kMaxStepsOfJob) {
    ++left_out_;
    return nullptr;
  }
  return &steps.all[step.step_id];
}

void StepLedger::Show(const SlurmJob& step) {
  std::erase_if(newest_, [&](const SlurmStepState& shown) {
    return shown.job_id == step.job_id && shown.step_id == step.step_id;
  });
  newest_.push_back({step.job_id, step.step_id, step.name.substr(0, kFactCap), step.nodes,
                     step.exit ? Text(*step.exit) : std::string(), step.state});
  if (newest_.size() > kMostShown) newest_.pop_front();
}

void StepLedger::Tell(const SlurmJob& step, int64_t now, std::string_view source,
                      std::vector<SlurmEvent>& events) {
  Known* const known = Find(step);
  if (known == nullptr) return;
  const auto put = [&](std::string_view kind, int64_t at, std::string_view was) {
    SlurmEvent& event = events.emplace_back();
    event.wall_ns = std::max<int64_t>(at, 0) * 1'000'000'000;
    event.job_id = step.job_id;
    event.kind = kind;
    event.was = was;
    event.is = step.state;
    event.source = source;
    event.facts = StepFacts(step);
    Show(step);
  };
  const bool ended = !EndOf(step.state).empty();
  if (step.start > known->start && step.start <= now) {
    known->start = step.start;
    put(kStarted, step.start, "");
    if (ended) {
      SlurmJob running = step;
      running.state = events.back().is = "RUNNING";
      events.back().facts = StepFacts(running);
    }
  }
  known->runs = !ended && step.state == "RUNNING";
  known->seen = true;
  if (!ended || step.end <= known->end) return;
  known->end = step.end;
  put(kEnded, step.end, "RUNNING");
}

// Slurm's times are whole seconds, and it lists a job's script behind the steps that the script
// began: within a second it begins before them and ends behind them.
void StepLedger::TellAll(const std::vector<SlurmJob>& rows, int64_t now, std::string_view source,
                         std::vector<SlurmEvent>& events) {
  std::vector<SlurmEvent> scripts, others;
  for (const SlurmJob& row : rows) {
    if (IsStep(row)) Tell(row, now, source, row.step_id == "batch" ? scripts : others);
  }
  const auto ends =
      std::stable_partition(scripts.begin(), scripts.end(),
                            [](const SlurmEvent& event) { return event.kind == kStarted; });
  events.assign(scripts.begin(), ends);
  events.insert(events.end(), others.begin(), others.end());
  events.insert(events.end(), ends, scripts.end());
  std::stable_sort(events.begin(), events.end(),
                   [](const SlurmEvent& a, const SlurmEvent& b) { return a.wall_ns < b.wall_ns; });
}

void StepLedger::Remember(const SlurmEvent& event) {
  if (event.kind != kStarted && event.kind != kEnded) return;
  SlurmJob step;
  step.job_id = event.job_id;
  step.step_id = FactOf(event, "step_id");
  if (!IsStep(step)) return;
  Known* const known = Find(step);
  if (known == nullptr) return;
  const int64_t at = event.wall_ns / 1'000'000'000;
  (event.kind == kStarted ? known->start : known->end) = at;
  known->runs = event.kind == kStarted;
}

std::vector<SlurmEvent> StepLedger::Update(const std::vector<SlurmJob>& steps, int64_t now,
                                           std::string_view source) {
  std::vector<SlurmEvent> events;
  for (auto& [job, known] : jobs_) {
    for (auto& [id, step] : known.all) step.seen = false;
  }
  TellAll(steps, now, source, events);
  for (auto& [job, known] : jobs_) {
    bool gone = false;
    for (auto& [id, step] : known.all) {
      gone = gone || (step.runs && !step.seen);
      step.runs = step.runs && step.seen;
    }
    if (gone) Wait(job, 0);
  }
  return events;
}

std::vector<SlurmEvent> StepLedger::Explain(const std::vector<SlurmJob>& rows, int64_t now,
                                            std::string_view source) {
  std::vector<SlurmEvent> events;
  TellAll(rows, now, source, events);
  return events;
}

void StepLedger::NoteEnd(const std::string& job_id) {
  Wait(job_id, 0);
}

void StepLedger::Wait(const std::string& job_id, int tries) {
  const bool known = std::any_of(waiting_.begin(), waiting_.end(),
                                 [&](const auto& each) { return each.first == job_id; });
  if (known || tries >= kMaxTries) return;
  waiting_.emplace_back(job_id, tries);
  if (waiting_.size() > kMaxWaiting) waiting_.pop_front();
}

std::vector<std::string> StepLedger::TakeDue(size_t most) {
  std::vector<std::string> ids;
  asked_.clear();
  while (ids.size() < most && !waiting_.empty()) {
    asked_[waiting_.front().first] = waiting_.front().second;
    ids.push_back(std::move(waiting_.front().first));
    waiting_.pop_front();
  }
  return ids;
}

void StepLedger::PutBack(const std::vector<std::string>& ids) {
  for (const std::string& id : ids) Wait(id, asked_[id]);
}

void StepLedger::Settle(const std::vector<std::string>& asked, const std::vector<SlurmJob>& rows) {
  for (const std::string& id : asked) {
    bool told = false, runs = false;
    for (const SlurmJob& row : rows) {
      if (row.job_id != id) continue;
      told = true;
      // A job that goes on is asked about again once another step is gone.
      runs = runs || (IsStep(row) && EndOf(row.state).empty() && !jobs_[id].all[row.step_id].runs);
    }
    if (!told || runs) Wait(id, asked_[id] + 1);
  }
}

}  // namespace rankscope::exporter::slurm
