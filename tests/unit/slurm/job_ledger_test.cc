// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/slurm/job_ledger.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace rankscope::exporter::slurm {
namespace {

SlurmJob Pending(std::string id, int64_t submit, std::string reason = "Resources") {
  SlurmJob job;
  job.job_id = std::move(id);
  job.state = "PENDING";
  job.reason = std::move(reason);
  job.submit = submit;
  job.restarts = 0;
  job.partition = "gpu";
  job.time_limit_seconds = 3600;
  return job;
}

SlurmJob Running(std::string id, int64_t submit, int64_t start) {
  SlurmJob job = Pending(std::move(id), submit, "");
  job.state = "RUNNING";
  job.start = start;
  job.nodes = "n[1-2]";
  return job;
}

SlurmJob Ended(std::string id, int64_t submit, int64_t start, int64_t end, std::string state) {
  SlurmJob job = Running(std::move(id), submit, start);
  job.state = std::move(state);
  job.end = end;
  job.exit = ExitStatus{1, 0};
  return job;
}

std::vector<std::string> Told(const std::vector<SlurmEvent>& events) {
  std::vector<std::string> told;
  for (const SlurmEvent& event : events)
    told.push_back(event.kind + "@" + std::to_string(event.wall_ns / 1'000'000'000));
  return told;
}

using Words = std::vector<std::string>;

std::string FactOf(const SlurmEvent& event, std::string_view key) {
  for (const KeyValue& fact : event.facts) {
    if (fact.key == key) return fact.value;
  }
  return "(none)";
}

TEST(JobLedger, ALifeIsToldOnceEach) {
  JobLedger ledger;
  EXPECT_EQ(Told(ledger.Update({Pending("7", 100)}, 105, "scontrol")),
            (Words{"submitted@100", "blocked@105"}));
  EXPECT_EQ(Told(ledger.Update({Pending("7", 100)}, 135, "scontrol")), Words{});
  EXPECT_EQ(Told(ledger.Update({Pending("7", 100, "Priority")}, 165, "scontrol")),
            Words{"blocked@165"});
  EXPECT_EQ(Told(ledger.Update({Running("7", 100, 170)}, 195, "scontrol")), Words{"started@170"});
  const auto events = ledger.Update({Ended("7", 100, 170, 200, "FAILED")}, 225, "scontrol");
  EXPECT_EQ(Told(events), Words{"failed@200"});
  EXPECT_EQ(FactOf(events[0], "exit"), "1:0");
  EXPECT_EQ(FactOf(events[0], "nodes"), "n[1-2]");
  EXPECT_EQ(events[0].was, "RUNNING");
  EXPECT_EQ(Told(ledger.Update({Ended("7", 100, 170, 200, "FAILED")}, 255, "scontrol")), Words{});
}

TEST(JobLedger, WhatHappenedBetweenTwoLooksIsToldInItsOrder) {
  JobLedger ledger;
  EXPECT_EQ(Told(ledger.Update({Ended("8", 90, 100, 110, "COMPLETED"), Pending("9", 95)}, 120,
                               "scontrol")),
            (Words{"submitted@90", "submitted@95", "started@100", "completed@110", "blocked@120"}));
}

TEST(JobLedger, AStartToComeIsAnEstimate) {
  JobLedger ledger;
  SlurmJob job = Pending("7", 100);
  job.start = 4000;
  EXPECT_EQ(Told(ledger.Update({job}, 105, "scontrol")), (Words{"submitted@100", "blocked@105"}));
}

TEST(JobLedger, CancelledWhileItWaitedNeverStarted) {
  JobLedger ledger;
  SlurmJob job = Ended("7", 100, 120, 120, "CANCELLED");
  job.nodes.clear();
  job.state_by = "1000";
  const auto events = ledger.Update({job}, 130, "scontrol");
  EXPECT_EQ(Told(events), (Words{"submitted@100", "cancelled@120"}));
  EXPECT_EQ(FactOf(events[1], "by"), "1000");
}

// As 22.05 tells it: COMPLETING with a count that has risen and the end of the run as its start,
// then PENDING with a new time of submission, then RUNNING.
TEST(JobLedger, RequeuedAndAccountingSaysThatItWasPreempted) {
  JobLedger ledger;
  ledger.Update({Running("9", 100, 110)}, 115, "scontrol");
  SlurmJob completing = Running("9", 100, 140);
  completing.state.clear();
  completing.state_flags = {"COMPLETING"};
  completing.restarts = 1;
  EXPECT_EQ(Told(ledger.Update({completing}, 141, "scontrol")), Words{"requeued@141"});
  SlurmJob waiting = Pending("9", 142, "BeginTime");
  waiting.restarts = 1;
  EXPECT_EQ(Told(ledger.Update({waiting}, 171, "scontrol")), Words{"blocked@171"});
  EXPECT_EQ(ledger.TakeUnexplained(10), Words{"9"});
  EXPECT_EQ(ledger.TakeUnexplained(10), Words{});

  SlurmJob first = Ended("9", 100, 110, 140, "PREEMPTED"), second = Running("9", 142, 260);
  first.restarts.reset();
  first.partition.clear();
  second.state = "PENDING";
  second.restarts.reset();
  const auto events = ledger.Explain({first, second}, 172, "sacct");
  EXPECT_EQ(Told(events), Words{"preempted@140"});
  EXPECT_EQ(events[0].source, "sacct");

  SlurmJob again = Running("9", 142, 260);
  again.restarts = 1;
  EXPECT_EQ(Told(ledger.Update({again}, 270, "scontrol")), Words{"started@260"});
}

TEST(JobLedger, ARequeueByAPersonIsOneEvent) {
  JobLedger ledger;
  ledger.Update({Running("9", 100, 110)}, 115, "scontrol");
  SlurmJob waiting = Pending("9", 142, "BeginTime");
  waiting.restarts = 1;
  EXPECT_EQ(Told(ledger.Update({waiting}, 171, "scontrol")),
            (Words{"requeued@142", "blocked@171"}));
  SlurmJob first = Ended("9", 100, 110, 140, "");
  first.state_flags = {"REQUEUED"};
  first.restarts.reset();
  EXPECT_EQ(Told(ledger.Explain({first, waiting}, 172, "sacct")), Words{});
}

TEST(JobLedger, ANumberThatIsUsedAgainIsAnotherJob) {
  JobLedger ledger;
  ledger.Update({Ended("7", 100, 110, 120, "COMPLETED")}, 125, "scontrol");
  EXPECT_EQ(Told(ledger.Update({Pending("7", 5000)}, 5005, "scontrol")),
            (Words{"submitted@5000", "blocked@5005"}));
}

TEST(JobLedger, SuspendedAndResumed) {
  JobLedger ledger;
  ledger.Update({Running("7", 100, 110)}, 115, "scontrol");
  SlurmJob job = Running("7", 100, 110);
  job.state = "SUSPENDED";
  job.suspend = 130;
  EXPECT_EQ(Told(ledger.Update({job}, 145, "scontrol")), Words{"suspended@130"});
  job.state = "RUNNING";
  job.suspend = 150;
  EXPECT_EQ(Told(ledger.Update({job}, 175, "scontrol")), Words{"resumed@150"});
  // One that ends while it is suspended is not resumed.
  job.state = "SUSPENDED";
  job.suspend = 180;
  ledger.Update({job}, 190, "scontrol");
  EXPECT_EQ(Told(ledger.Update({Ended("7", 100, 110, 200, "CANCELLED")}, 205, "scontrol")),
            Words{"cancelled@200"});
}

TEST(JobLedger, OutOfMemoryOfAStepThatItsScriptHides) {
  JobLedger ledger;
  SlurmJob job = Ended("7", 100, 110, 120, "FAILED");
  job.derived_exit = ExitStatus{0, 125};
  EXPECT_EQ(Told(ledger.Update({job}, 130, "scontrol")).back(), "out_of_memory@120");
  SlurmJob killed = Ended("8", 100, 110, 120, "FAILED");
  killed.derived_exit = ExitStatus{0, 9};
  EXPECT_EQ(Told(ledger.Update({killed}, 130, "scontrol")).back(), "failed@120");
}

TEST(JobLedger, ChangesByHand) {
  JobLedger ledger;
  ledger.Update({Running("7", 100, 110)}, 115, "scontrol");
  SlurmJob job = Running("7", 100, 110);
  job.time_limit_seconds = 7200;
  const auto events = ledger.Update({job}, 145, "scontrol");
  ASSERT_EQ(Told(events), Words{"updated@145"});
  EXPECT_EQ(events[0].reason, "time_limit");
  EXPECT_EQ(events[0].was, "3600");
  EXPECT_EQ(events[0].is, "7200");
  // Slurm itself takes out a dependency that is fulfilled.
  SlurmJob child = Pending("8", 100, "Dependency");
  child.dependency = "afterany:7(unfulfilled)";
  ledger.Update({job, child}, 150, "scontrol");
  child.dependency.clear();
  child.reason = "Priority";
  EXPECT_EQ(Told(ledger.Update({job, child}, 180, "scontrol")), Words{"blocked@180"});
}

TEST(JobLedger, OneThatIsGoneIsAskedAboutOnce) {
  JobLedger ledger;
  ledger.Update({Running("7", 100, 110), Ended("8", 100, 110, 112, "COMPLETED")}, 115, "scontrol");
  EXPECT_EQ(Told(ledger.Update({}, 1000, "scontrol")), Words{});
  EXPECT_EQ(ledger.TakeUnexplained(10), Words{"7"});
  ledger.Update({}, 1030, "scontrol");
  EXPECT_EQ(ledger.TakeUnexplained(10), Words{});
  SlurmJob end = Ended("7", 100, 110, 600, "NODE_FAIL");
  const auto told = ledger.Explain({end}, 1031, "sacct");
  ASSERT_EQ(Told(told), Words{"node_fail@600"});
  EXPECT_EQ(told[0].was, "RUNNING") << "a state of Slurm's";
  ledger.Update({}, 1060, "scontrol");
  EXPECT_EQ(ledger.TakeUnexplained(10), Words{});
}

// `sacctmgr show runawayjobs` has such.
TEST(JobLedger, WhatAccountingTakesForRunningForEverIsAskedForMoreAndMoreRarely) {
  JobLedger ledger;
  ledger.Update({Running("7", 100, 110)}, 115, "scontrol");
  Words asked_at;
  for (int64_t now = 145; now < 145 + 5 * 3600; now += 30) {
    ledger.Update({}, now, "scontrol");
    if (ledger.TakeUnexplained(10).empty()) continue;
    asked_at.push_back(std::to_string((now - 145) / 60));
    EXPECT_EQ(Told(ledger.Explain({Running("7", 100, 110)}, now, "sacct")), Words{});
  }
  EXPECT_EQ(asked_at, (Words{"0", "1", "3", "7", "14", "29", "59", "119", "179", "239", "299"}));
  EXPECT_EQ(Told(ledger.Explain({Ended("7", 100, 110, 20000, "TIMEOUT")}, 21700, "sacct")),
            Words{"timeout@20000"});
}

// slurmrestd tells both the jobs that there are and accounting's rows.
TEST(JobLedger, RowsOfOneJobSayNothingOfTheOthers) {
  JobLedger ledger;
  ledger.Update({Running("7", 100, 110), Running("8", 100, 110)}, 115, "slurmrestd");
  ledger.Update({Running("8", 100, 110)}, 145, "slurmrestd");
  EXPECT_EQ(ledger.TakeUnexplained(10), Words{"7"});
  ledger.PutBack({"7"});
  EXPECT_EQ(ledger.TakeUnexplained(10), Words{"7"});
  EXPECT_EQ(Told(ledger.Explain({Ended("7", 100, 110, 140, "FAILED")}, 146, "slurmrestd")),
            Words{"failed@140"});
  EXPECT_EQ(ledger.TakeUnexplained(10), Words{});
}

// As after an outage of accounting: the run after it has ended in the meantime.
TEST(JobLedger, AnEarlierRunIsToldThoughALaterOneHasEnded) {
  JobLedger ledger;
  ledger.Update({Running("9", 100, 110)}, 115, "scontrol");
  SlurmJob second = Ended("9", 142, 260, 300, "COMPLETED");
  second.restarts = 1;
  EXPECT_EQ(Told(ledger.Update({second}, 301, "scontrol")),
            (Words{"requeued@142", "started@260", "completed@300"}));
  SlurmJob first = Ended("9", 100, 110, 140, "PREEMPTED");
  SlurmJob another = Ended("9", 20, 30, 40, "FAILED");  // its number was used before
  for (SlurmJob* row : {&first, &second, &another}) row->restarts.reset();
  const auto told = ledger.Explain({another, first, second}, 302, "sacct");
  ASSERT_EQ(Told(told), Words{"preempted@140"});
  EXPECT_EQ(told[0].was, "RUNNING");
  EXPECT_EQ(Told(ledger.Explain({another, first, second}, 332, "sacct")), Words{});
  EXPECT_EQ(Told(ledger.Update({second}, 333, "scontrol")), Words{});
}

TEST(JobLedger, NothingIsToldTwiceAfterAStart) {
  std::vector<SlurmEvent> all;
  const auto keep = [&all](std::vector<SlurmEvent> events) {
    for (SlurmEvent& event : events) all.push_back(std::move(event));
  };
  SlurmJob again = Running("9", 142, 260);
  again.restarts = 1;
  {
    JobLedger ledger;
    keep(ledger.Update({Running("9", 100, 110), Pending("5", 90)}, 115, "scontrol"));
    keep(ledger.Update({again, Ended("5", 90, 120, 130, "TIMEOUT")}, 270, "scontrol"));
  }
  JobLedger ledger;
  for (const SlurmEvent& event : all) ledger.Remember(event);
  EXPECT_EQ(Told(ledger.Update({again, Ended("5", 90, 120, 130, "TIMEOUT")}, 300, "scontrol")),
            Words{});
  EXPECT_EQ(Told(ledger.Update({Ended("9", 142, 260, 310, "COMPLETED")}, 330, "scontrol")),
            Words{"completed@310"});
}

TEST(JobLedger, StaysBounded) {
  JobLedger ledger;
  std::vector<SlurmJob> jobs;
  for (size_t i = 1; i <= JobLedger::kMaxJobs + 500; ++i)
    jobs.push_back(Ended(std::to_string(i), static_cast<int64_t>(i), static_cast<int64_t>(i),
                         static_cast<int64_t>(i), "COMPLETED"));
  jobs[0] = Running("1", 1, 2);  // the oldest, and it runs
  ledger.Update(jobs, 100'000, "scontrol");
  EXPECT_LE(ledger.jobs(), JobLedger::kMaxJobs);
  EXPECT_GT(ledger.forgotten(), 0);
  EXPECT_EQ(Told(ledger.Update({Running("1", 1, 2)}, 100'001, "scontrol")), Words{});
}

TEST(JobLedger, WaitsForAccountingWithinBounds) {
  JobLedger ledger;
  std::vector<std::string> ids;
  for (size_t i = 0; i < JobLedger::kMaxUnexplained; ++i) ids.push_back(std::to_string(i));
  ledger.PutBack(ids);
  ledger.PutBack({"a", "b"});
  EXPECT_EQ(ledger.TakeUnexplained(2), (Words{"0", "1"}));
  EXPECT_EQ(ledger.TakeUnexplained(2 * ids.size()).size(), ids.size() - 2);
}

TEST(JobLedger, RecordsWithoutANumberOrAStateAndSteps) {
  JobLedger ledger;
  SlurmJob step = Ended("7", 100, 110, 120, "FAILED");
  step.step_id = "0";
  SlurmJob none = Running("", 100, 110), mute = Running("8", 100, 110);
  mute.state.clear();
  EXPECT_EQ(Told(ledger.Update({step, none, mute}, 130, "scontrol")), Words{});
}

}  // namespace
}  // namespace rankscope::exporter::slurm
