// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Rows of accounting, whole and in the single facts of older recordings.
#include "detectors/windows/scheduler_history.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "detectors/model/archive.h"
#include "detectors/windows/job_window.h"

namespace rankscope::windows {
namespace {

constexpr int64_t kDay = 1'790'000'000;

class SchedulerHistoryTest : public testing::Test {
 protected:
  SchedulerHistory::State Tell(const std::string& field, const std::string& value,
                               const std::string& node = {}, int64_t at = 0) {
    SchedulerFact fact;
    fact.field = field;
    fact.value = value;
    fact.origin = "sacct";
    fact.node = node;
    fact.wall_ns = at * 1'000'000'000;
    const WallClock clock = Clock(at > 0);
    const auto record = history_.OnFact(fact, clock);
    return record ? history_.OnRecord(*record, clock) : SchedulerHistory::State{};
  }
  // Wall time is a nanosecond ahead of the clock of the observations, where it is known.
  static WallClock Clock(bool known) { return {{3 * kDay * 1'000'000'000}, known ? 1 : 0}; }
  SchedulerHistory::State Row(int64_t start, int64_t end, const std::string& state,
                              const std::string& nodes) {
    SchedulerRecord record;
    record.origin = "sacct";
    record.submit = start - 5;
    record.start = start;
    record.nodes = nodes;
    record.end = end;
    if (end > 0) record.elapsed_seconds = end - start;
    record.state = state;
    record.wall_ns = end * 1'000'000'000;
    return history_.OnRecord(record, Clock(true));
  }
  SchedulerHistory history_;
};

TEST_F(SchedulerHistoryTest, ACancelInTheQueueIsNoRun) {
  Row(kDay, kDay + 720, "PREEMPTED", "n1");
  Row(kDay + 900, kDay + 900, "CANCELLED", "");  // its start is the time of the cancel
  ASSERT_EQ(history_.runs().size(), 1u);
  EXPECT_EQ(history_.runs()[0].state, "PREEMPTED");
  EXPECT_EQ(history_.state(), "CANCELLED");
  Row(kDay + 1000, kDay + 1000, "CANCELLED", "n2");  // it had nodes
  EXPECT_EQ(history_.runs().size(), 2u);
}

TEST_F(SchedulerHistoryTest, RowsAreRunsInTheOrderOfTheirStarts) {
  Row(kDay + 1000, kDay + 8200, "COMPLETED", "n2");
  Row(kDay, kDay + 720, "PREEMPTED", "n1");
  ASSERT_EQ(history_.runs().size(), 2u);
  EXPECT_EQ(history_.runs()[0].state, "PREEMPTED");
  EXPECT_EQ(history_.runs()[0].nodes, "n1");
  EXPECT_EQ(history_.runs()[0].seconds(), 720);
  EXPECT_EQ(history_.runs()[1].state, "COMPLETED");
  EXPECT_EQ(history_.runs()[1].seconds(), 7200);
  EXPECT_TRUE(history_.runs()[1].clocked);
}

TEST_F(SchedulerHistoryTest, WhatIsReadAgainIsNoNewRun) {
  EXPECT_TRUE(Row(kDay, 0, "RUNNING", "n1").changed);
  EXPECT_FALSE(Row(kDay, 0, "RUNNING", "n1").changed);
  EXPECT_TRUE(Row(kDay, kDay + 60, "FAILED", "n1").changed);
  EXPECT_FALSE(Row(kDay, kDay + 60, "FAILED", "n1").changed);
  EXPECT_FALSE(Row(kDay, 0, "RUNNING", "n1").changed) << "an answer that was overtaken";
  ASSERT_EQ(history_.runs().size(), 1u);
  EXPECT_EQ(history_.runs()[0].state, "FAILED");
}

TEST_F(SchedulerHistoryTest, FactsOfOneRunAreNotTheNexts) {
  Tell("by", "1042");
  Tell("start", std::to_string(kDay));
  Tell("state", "CANCELLED");
  Tell("start", std::to_string(kDay + 500));
  Tell("state", "FAILED");
  EXPECT_EQ(history_.runs()[0].by, "1042");
  EXPECT_EQ(history_.runs()[1].by, "");
}

// /events tells a requeue without the start of the run that it ended.
TEST_F(SchedulerHistoryTest, AnEndWithoutAStartIsOfTheRunThatGoesOn) {
  Tell("start", std::to_string(kDay), {}, kDay);
  Tell("event", "started", {}, kDay);
  Tell("submit", std::to_string(kDay + 90), {}, kDay + 90);
  Tell("state", "REQUEUED", {}, kDay + 90);
  ASSERT_EQ(history_.runs().size(), 1u);
  EXPECT_EQ(history_.runs()[0].state, "REQUEUED");
  EXPECT_EQ(history_.runs()[0].seconds(), 90);
  Tell("state", "FAILED", {}, kDay + 95);
  EXPECT_EQ(history_.runs()[0].state, "REQUEUED") << "it has ended: this is of none that is known";
}

TEST_F(SchedulerHistoryTest, AStartThatTheSchedulerOnlyExpectsIsNoRun) {
  Tell("start", std::to_string(kDay + 9999));
  EXPECT_TRUE(Tell("state", "PENDING").changed);
  EXPECT_TRUE(history_.runs().empty());
  EXPECT_EQ(history_.state(), "PENDING");
}

TEST_F(SchedulerHistoryTest, NodesHaveTheirOwnFacts) {
  Tell("node_reason", "Not responding", "n2");
  Tell("node_reason_class", "not_responding", "n2");
  Tell("node_state", "down", "n2", kDay);
  Tell("node_state", "down", "", kDay);
  ASSERT_EQ(history_.nodes().size(), 1u);
  EXPECT_EQ(history_.nodes()[0].reason_class, "not_responding");
  EXPECT_EQ(history_.nodes()[0].t.ns, kDay * 1'000'000'000 - 1);
  Tell("start", std::to_string(kDay));
  Tell("state", "FAILED");
  EXPECT_EQ(history_.runs()[0].failed_node, "") << "of the node, not of the job";
}

TEST_F(SchedulerHistoryTest, WhatAStrangerWritesIsCutAndOneLine) {
  Tell("nodes", "n1\nrun 2 of the job: COMPLETED" + std::string(1 << 21, 'x'));
  for (const char* start : {"", "x", "-5", "99999999999999999999", "1e9", "1790000000=|"})
    Tell("start", start);
  Tell("elapsed_seconds", "-7");
  Tell("start", std::to_string(kDay));
  Tell("state", "FAI\nLED\x01" + std::string(1 << 21, 'y'));
  ASSERT_EQ(history_.runs().size(), 1u);
  const SchedulerRun& run = history_.runs()[0];
  EXPECT_EQ(run.nodes.size(), SchedulerHistory::kTextCap);
  EXPECT_EQ(run.nodes.find('\n'), std::string::npos);
  EXPECT_EQ(run.state.size(), SchedulerHistory::kTextCap);
  EXPECT_EQ(run.state.find_first_of("\n\x01"), std::string::npos);
  EXPECT_TRUE(std::isnan(run.seconds()));
}

TEST_F(SchedulerHistoryTest, IsBounded) {
  for (int64_t i = 0; i < 1000; ++i) {
    Row(kDay + 100 * i, kDay + 100 * i + 50, "REQUEUED", "n1");
    Tell("node_state", "down", "n" + std::to_string(i));
  }
  EXPECT_EQ(history_.runs().size(), SchedulerHistory::kMostRuns);
  EXPECT_EQ(history_.runs().back().start, kDay + 99900);
  EXPECT_EQ(history_.dropped(), 1000 - static_cast<int64_t>(SchedulerHistory::kMostRuns));
  EXPECT_EQ(history_.nodes().size(), SchedulerHistory::kMostNodes);
  Row(kDay - 100, kDay - 50, "REQUEUED", "n1");
  EXPECT_GT(history_.runs().front().start, kDay) << "older than all that there is room for";
}

TEST_F(SchedulerHistoryTest, IsRestoredAsItWas) {
  Row(kDay, kDay + 720, "PREEMPTED", "n1");
  Tell("restarts", "3");
  Tell("event", "submitted");
  ArchiveWriter writer;
  writer(history_);
  const std::string bytes = writer.Take();
  SchedulerHistory again;
  ArchiveReader reader(bytes);
  reader(again);
  ASSERT_TRUE(reader.Complete());
  EXPECT_EQ(again.runs()[0].state, "PREEMPTED");
  EXPECT_EQ(again.restarts(), 3);
}

// --- which attempt here a row is of ---

class RowsOfAJob : public testing::Test {
 protected:
  static Timestamp At(double second) { return {static_cast<int64_t>(second * 1e9)}; }
  void Tell(const std::string& field, const std::string& value, double t, bool clocked = true) {
    SchedulerFact fact;
    fact.field = field;
    fact.value = value;
    fact.origin = "sacct";
    fact.wall_ns = static_cast<int64_t>(t * 1e9);
    job_.OnSchedulerFact(fact, {At(std::max(t, 9000.0)), clocked ? 1 : 0});
  }
  void Row(int start, int end, const std::string& state, bool clocked = true) {
    SchedulerRecord record;
    record.origin = "sacct";
    record.start = start;
    record.end = end;
    record.state = state;
    record.wall_ns = int64_t{end} * 1'000'000'000;
    job_.OnSchedulerRecord(record, {At(9000), clocked ? 1 : 0});
  }
  void End(double second) {
    RunMark mark;
    mark.what = RunMark::What::kEnd;
    job_.OnRunEnd(mark, At(second));
  }
  JobWindow job_{"8841", At(5000.4)};
};

TEST_F(RowsOfAJob, OnlyTheRunThatWasHereEndedItHere) {
  End(5720.9);
  Row(1000, 4000, "TIMEOUT");
  Row(5000, 5720, "PREEMPTED");
  Row(6000, 7000, "NODE_FAIL");
  ASSERT_EQ(job_.incidents().all().size(), 3u);
  for (const Candidate& candidate : job_.incidents().all())
    EXPECT_EQ(candidate.attempt == 1, candidate.incident.sub == "preemption")
        << candidate.incident.sub;
  EXPECT_TRUE(job_.scheduler_told_state());
}

TEST_F(RowsOfAJob, WithoutAClockARowIsOfWhatIsHere) {
  End(5720.9);
  Row(5000, 5720, "PREEMPTED", false);
  ASSERT_EQ(job_.incidents().all().size(), 1u);
  EXPECT_EQ(job_.incidents().all()[0].attempt, 1);
}

TEST_F(RowsOfAJob, ThatItWaitsAgainIsARequeueOnlyOfWhatHasEndedHere) {
  Tell("restarts", "1", 5721);
  Tell("state", "PENDING", 5721);
  EXPECT_TRUE(job_.incidents().all().empty()) << "it runs here: an old answer";
  End(5720.9);
  Tell("state", "RUNNING", 5721);
  Tell("state", "PENDING", 5722);
  ASSERT_EQ(job_.incidents().all().size(), 1u);
  EXPECT_EQ(job_.incidents().all()[0].incident.sub, "requeue");
}

TEST_F(RowsOfAJob, TheFirstBootIsTheOneThatCounts) {
  job_.OnBoot("n1", "");
  job_.OnBoot("n1", "a");
  job_.OnBoot("n1", "a");
  EXPECT_EQ(job_.boot().again, "");
  job_.OnBoot("n1", "b");
  EXPECT_EQ(job_.boot().id, "a");
  EXPECT_EQ(job_.boot().again, "b");
  job_.OnBoot("n1", std::string(1 << 20, 'c'));
  EXPECT_EQ(job_.boot().again.size(), BootSeen::kIdCap);
}

}  // namespace
}  // namespace rankscope::windows
