// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What is told of steps: by the list of those that run, and by accounting.
#include "exporter/slurm/step_ledger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "exporter/slurm/event_json.h"

namespace rankscope::exporter::slurm {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

SlurmJob Step(const std::string& job, const std::string& id, int64_t start, int64_t end = 0,
              const std::string& state = "RUNNING", ExitStatus exit = {}) {
  SlurmJob step;
  step.job_id = job;
  step.step_id = id;
  step.name = "train " + id;
  step.nodes = "n1";
  step.start = start;
  step.end = end;
  step.state = state;
  if (end > 0) step.exit = exit;
  return step;
}

SlurmJob Job(const std::string& id, const std::string& state) {
  SlurmJob job;
  job.job_id = id;
  job.state = state;
  return job;
}

std::vector<std::string> Told(const std::vector<SlurmEvent>& events) {
  std::vector<std::string> told;
  for (const SlurmEvent& event : events) {
    std::string id, exit;
    for (const KeyValue& fact : event.facts) {
      if (fact.key == "step_id") id = fact.value;
      if (fact.key == "exit") exit = " " + fact.value;
    }
    const bool ends = event.kind == "step_ended";
    told.push_back(event.job_id + "." + id + " " + event.kind + " " + event.is +
                   (ends ? exit : "") + " @" + std::to_string(event.wall_ns / 1'000'000'000));
  }
  return told;
}

TEST(StepLedger, AStepThatRunsIsToldOnceAndItsEndIsAccountings) {
  StepLedger ledger;
  EXPECT_THAT(Told(ledger.Update({Step("7", "0", 100)}, 110, "squeue")),
              ElementsAre("7.0 step_started RUNNING @100"));
  EXPECT_THAT(Told(ledger.Update({Step("7", "0", 100)}, 140, "squeue")), IsEmpty());
  EXPECT_THAT(ledger.TakeDue(10), IsEmpty());
  EXPECT_THAT(Told(ledger.Update({Step("7", "1", 150)}, 170, "squeue")),
              ElementsAre("7.1 step_started RUNNING @150"));
  EXPECT_THAT(ledger.TakeDue(10), ElementsAre("7"));
  const std::vector<SlurmJob> rows = {Job("7", "RUNNING"),
                                      Step("7", "0", 100, 149, "OUT_OF_MEMORY", {0, 125}),
                                      Step("7", "1", 150)};
  EXPECT_THAT(Told(ledger.Explain(rows, 170, "sacct")),
              ElementsAre("7.0 step_ended OUT_OF_MEMORY 0:125 @149"));
  ledger.Settle({"7"}, rows);
  EXPECT_THAT(ledger.TakeDue(10), IsEmpty()) << "the other one runs, and is listed";
  EXPECT_THAT(Told(ledger.Explain(rows, 170, "sacct")), IsEmpty());
}

TEST(StepLedger, AScriptBeginsBeforeItsStepsAndEndsBehindThem) {
  StepLedger ledger;
  std::vector<std::string> told;
  for (const SlurmEvent& event :
       ledger.Update({Step("7", "0", 100), Step("7", "batch", 100)}, 101, "squeue"))
    told.push_back(event.kind + " " + event.facts[0].value);
  for (const SlurmEvent& event :
       ledger.Explain({Step("7", "batch", 100, 140, "COMPLETED"),
                       Step("7", "0", 100, 140, "COMPLETED"), Step("7", "1", 100, 120, "FAILED")},
                      150, "sacct"))
    told.push_back(event.kind + " " + event.facts[0].value);
  EXPECT_THAT(told, ElementsAre("step_started batch", "step_started 0", "step_started 1",
                                "step_ended 1", "step_ended 0", "step_ended batch"));
}

TEST(StepLedger, OneThatNobodySawRunIsToldWithItsStart) {
  StepLedger ledger;
  ledger.NoteEnd("7");
  EXPECT_THAT(ledger.TakeDue(10), ElementsAre("7"));
  EXPECT_THAT(
      Told(ledger.Explain(
          {Step("7", "batch", 90, 130, "FAILED", {1, 0}), Step("7", "extern", 90, 130, "COMPLETED"),
           Step("7", "0", 100, 110, "COMPLETED"), Step("7", "1", 111, 129, "FAILED", {1, 0})},
          140, "sacct")),
      ElementsAre("7.batch step_started RUNNING @90", "7.0 step_started RUNNING @100",
                  "7.0 step_ended COMPLETED 0:0 @110", "7.1 step_started RUNNING @111",
                  "7.1 step_ended FAILED 1:0 @129", "7.batch step_ended FAILED 1:0 @130"));
}

TEST(StepLedger, AccountingThatIsBehindIsAskedAgainAFewTimes) {
  StepLedger ledger;
  ledger.NoteEnd("7");
  int rounds = 0;
  while (!ledger.TakeDue(10).empty()) {
    ++rounds;
    ledger.Settle({"7"}, {Job("7", "RUNNING"), Step("7", "0", 100)});
  }
  EXPECT_EQ(rounds, StepLedger::kMaxTries);
  ledger.NoteEnd("8");
  for (int i = 0; i < 20; ++i) {
    ASSERT_THAT(ledger.TakeDue(10), ElementsAre("8")) << "it was away";
    ledger.PutBack({"8"});
  }
}

TEST(StepLedger, StepsOfARequeuedJobAreOthers) {
  StepLedger ledger;
  EXPECT_THAT(Told(ledger.Explain({Step("7", "0", 100, 110, "CANCELLED", {0, 15}),
                                   Step("7", "0", 200, 300, "COMPLETED")},
                                  310, "sacct")),
              ElementsAre("7.0 step_started RUNNING @100", "7.0 step_ended CANCELLED 0:15 @110",
                          "7.0 step_started RUNNING @200", "7.0 step_ended COMPLETED 0:0 @300"));
}

TEST(StepLedger, WhatWasToldInAnEarlierLifeIsNotToldAgain) {
  StepLedger before, after;
  for (const SlurmEvent& event :
       before.Explain({Step("7", "0", 100, 110, "FAILED", {1, 0})}, 120, "sacct")) {
    SlurmEvent kept = *EventFromJson(EventToJson(event));
    after.Remember(kept);
  }
  EXPECT_THAT(Told(after.Explain({Step("7", "0", 100, 110, "FAILED", {1, 0})}, 130, "sacct")),
              IsEmpty());
}

TEST(StepLedger, IsBounded) {
  StepLedger ledger;
  std::vector<SlurmJob> steps;
  for (int i = 0; i < 1000; ++i) steps.push_back(Step("7", std::to_string(i), 100 + i, 101 + i));
  for (int i = 0; i < 5000; ++i) steps.push_back(Step(std::to_string(100 + i), "0", 100));
  EXPECT_EQ(ledger.Explain(steps, 9000, "sacct").size(), StepLedger::kMaxStepsOfJob + 5000);
  EXPECT_EQ(ledger.left_out(), 1000 - static_cast<int64_t>(StepLedger::kMaxStepsOfJob));
  EXPECT_EQ(ledger.newest().size(), StepLedger::kMostShown);
  EXPECT_EQ(ledger.newest().back().job_id, "5099");
}

}  // namespace
}  // namespace rankscope::exporter::slurm
