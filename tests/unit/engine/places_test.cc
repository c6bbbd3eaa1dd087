// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Places for jobs: who gives one up for whom, and what is said of the jobs that have none.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "detectors/engine/engine.h"
#include "detectors/engine/job_places.h"
#include "tests/unit/engine/answers.h"

namespace rankscope::engine {
namespace {

using testing::StatusOf;
using testing::VerdictOf;

constexpr int64_t kAlice = 1001, kBob = 1002, kRoot = 0;

Timestamp AtSecond(double second) {
  return {static_cast<int64_t>(second * 1e9)};
}

std::vector<Place> Of(int64_t uid, int count, bool final = false) {
  std::vector<Place> places;
  for (int i = 0; i < count; ++i) places.push_back({"job", uid, final, AtSecond(i)});
  return places;
}

std::vector<Place> Both(std::vector<Place> one, const std::vector<Place>& other) {
  one.insert(one.end(), other.begin(), other.end());
  return one;
}

TEST(PlaceFor, TheLargestUserGivesUpHisNewest) {
  EXPECT_EQ(PlaceFor(kBob, Of(kAlice, 4), AtSecond(9)), 3u);
}

TEST(PlaceFor, WhoHasTheMostGetsNoMore) {
  EXPECT_EQ(PlaceFor(kAlice, Of(kAlice, 4), AtSecond(9)), std::nullopt);
  EXPECT_EQ(PlaceFor(kAlice, Both(Of(kAlice, 2), Of(kBob, 2)), AtSecond(9)), std::nullopt);
}

// Near miss: three against one is no tie; two each is the end of it.
TEST(PlaceFor, SharesMoveUntilTheyAreEven) {
  EXPECT_EQ(PlaceFor(kBob, Both(Of(kAlice, 3), Of(kBob, 1)), AtSecond(9)), 2u);
  EXPECT_EQ(PlaceFor(kBob, Both(Of(kAlice, 2), Of(kBob, 2)), AtSecond(9)), std::nullopt);
}

TEST(PlaceFor, EndedJobsGoFirst) {
  const auto places = Both(Of(kAlice, 2), Of(kAlice, 2, true));
  EXPECT_EQ(PlaceFor(kBob, places, AtSecond(9)), 2u);
  EXPECT_EQ(PlaceFor(kAlice, places, AtSecond(9)), 2u);
}

// What Slurm may still tell of another user's job is not lost at once to one who begins many.
TEST(PlaceFor, AnothersEndedJobIsAnybodysAfterAMinute) {
  const auto places = Both(Of(kAlice, 3), Of(kBob, 1, true));
  EXPECT_EQ(PlaceFor(kAlice, places, AtSecond(59)), std::nullopt);
  EXPECT_EQ(PlaceFor(kAlice, places, AtSecond(61)), 3u);
}

TEST(PlaceFor, RootGivesUpNothing) {
  EXPECT_EQ(PlaceFor(kBob, Of(kRoot, 4), AtSecond(9)), std::nullopt);
  EXPECT_EQ(PlaceFor(kRoot, Of(kBob, 4), AtSecond(9)), 3u);
}

TEST(PlaceToGiveUp, EndedFirstThenOfTheLargest) {
  EXPECT_EQ(PlaceToGiveUp(Both(Of(kAlice, 3), Of(kBob, 1, true))), 3u);
  EXPECT_EQ(PlaceToGiveUp(Both(Of(kBob, 1), Of(kAlice, 3))), 3u);
  EXPECT_EQ(PlaceToGiveUp(Of(kRoot, 3)), 2u);
}

// One job of a thousand ranks takes more than three jobs of one.
TEST(PlaceToGiveUp, TheHeaviestOfWhoseJobsWeighTheMost) {
  std::vector<Place> places = Both(Of(kAlice, 3), Of(kBob, 2));
  places[3].weight = 1000;
  EXPECT_EQ(PlaceToGiveUp(places), 3u);
}

TEST(BeginLimit, AsManyAsThereArePlacesAndThenSlowly) {
  BeginLimit limit;
  for (int i = 0; i < 60; ++i) EXPECT_TRUE(limit.Take(kAlice, 60, AtSecond(1))) << i;
  EXPECT_FALSE(limit.Take(kAlice, 60, AtSecond(1)));
  EXPECT_TRUE(limit.Take(kBob, 60, AtSecond(1)));
  EXPECT_TRUE(limit.Take(kAlice, 60, AtSecond(2)));
  EXPECT_FALSE(limit.Take(kAlice, 60, AtSecond(2)));
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(limit.Take(kRoot, 60, AtSecond(1)));
}

// A rank by its environment, below a launcher of its own.
Observation Rank(int pid, uint32_t uid, const std::string& job, double second) {
  ProcessStart start;
  start.key = {pid, 1};
  start.uid = uid;
  start.comm = "python3";
  start.env = {{"SLURM_JOB_ID", job}, {"RANK", "0"}, {"WORLD_SIZE", "1"}};
  Observation observation;
  observation.t = AtSecond(second);
  observation.kind = std::move(start);
  return observation;
}

Config Small(int32_t jobs) {
  Config config;
  config.max_jobs = jobs;
  return config;
}

TEST(Places, AJobOfAnotherTakesThePlaceOfTheNewestAndThatIsTold) {
  Engine engine(Small(3), "n1");
  for (int i = 0; i < 3; ++i) engine.Accept(Rank(100 + i, kAlice, "a" + std::to_string(i), 1 + i));
  engine.Tick(AtSecond(5));
  engine.Accept(Rank(200, kBob, "b", 6));
  const Output output = engine.Tick(AtSecond(7));
  EXPECT_EQ(output.shed, std::vector<std::string>{"a2"});
  EXPECT_TRUE(engine.Watches("b"));
  EXPECT_FALSE(engine.Watches("a2"));
  EXPECT_EQ(StatusOf(engine, "b")->uid, kBob);
  const auto shed = StatusOf(engine, "a2");
  ASSERT_TRUE(shed);
  EXPECT_FALSE(shed->watched);
  EXPECT_EQ(shed->verdict.data_quality().notes(0),
            "no longer watched: its place was needed for a job of user 1002; user 1001 had 3 of "
            "the 3 places");
  EXPECT_EQ(engine.counters().jobs_dropped, 1);
  EXPECT_EQ(engine.Explain(102), "");
}

TEST(Places, TheFourthOfOneUserIsNotTakenAndThatIsTold) {
  Engine engine(Small(3), "n1");
  for (int i = 0; i < 4; ++i) engine.Accept(Rank(100 + i, kAlice, "a" + std::to_string(i), 1 + i));
  engine.Accept(Rank(103, kAlice, "a3", 6));  // its exec: no second count
  engine.Tick(AtSecond(7));
  const auto status = StatusOf(engine, "a3");
  ASSERT_TRUE(status);
  EXPECT_FALSE(status->watched);
  EXPECT_EQ(status->verdict.code(), "U0");
  EXPECT_EQ(status->verdict.data_quality().notes(0),
            "not watched: user 1001 has 3 of the 3 places for jobs on this node, and no other user "
            "has more (state.max_jobs)");
  EXPECT_EQ(engine.counters().jobs_dropped, 1);
  EXPECT_EQ(engine.Jobs().size(), 4u);
  EXPECT_EQ(engine.Explain(103), "");
  // It is said for as long as the job is heard of, and a while longer.
  engine.Tick(AtSecond(600));
  EXPECT_TRUE(engine.Find("a3"));
  engine.Tick(AtSecond(607));
  EXPECT_FALSE(engine.Find("a3"));
}

TEST(Places, FewerWhereMemoryIsShort) {
  Engine engine(Small(8), "n1");
  for (int i = 0; i < 4; ++i) engine.Accept(Rank(100 + i, kAlice, "a" + std::to_string(i), 1 + i));
  engine.Accept(Rank(200, kBob, "b", 6));
  engine.SetMaxJobs(3, "memory is short: 90 of 96 MiB of memory are in use");
  Output output = engine.Tick(AtSecond(7));
  EXPECT_EQ(output.shed, (std::vector<std::string>{"a3", "a2"}));
  EXPECT_TRUE(engine.Watches("b"));
  EXPECT_EQ(VerdictOf(engine, "a3").data_quality().notes(0),
            "no longer watched: memory is short: 90 of 96 MiB of memory are in use");
  engine.Accept(Rank(104, kAlice, "a4", 8));
  engine.Tick(AtSecond(9));
  EXPECT_FALSE(engine.Watches("a4"));
  const auto notes = StatusOf(engine, "b")->verdict.data_quality().notes();
  EXPECT_TRUE(std::any_of(notes.begin(), notes.end(), [](const std::string& note) {
    return note.find("memory is short") != std::string::npos;
  }));
  engine.SetMaxJobs(8, "");
  engine.Accept(Rank(105, kAlice, "a5", 10));
  EXPECT_TRUE(engine.Watches("a5"));
}

Observation Exit(int pid, double second, int status) {
  Observation observation;
  observation.t = AtSecond(second);
  observation.kind = ProcessExit{{pid, 1}, status, true, false};
  return observation;
}

// A job that has been final for a while takes no place; what Slurm says of it late is heard.
TEST(Places, AnEndedJobRestsAndIsWokenByALateWord) {
  Engine engine(Small(1), "n1");
  engine.Accept(Rank(100, kAlice, "a", 1));
  engine.Tick(AtSecond(2));
  engine.Accept(Exit(100, 5, 15));
  for (int second = 6; second < 60; ++second) engine.Tick(AtSecond(second));
  EXPECT_EQ(engine.jobs(), 0u);
  EXPECT_TRUE(engine.Watches("a"));
  const auto status = StatusOf(engine, "a");
  ASSERT_TRUE(status);
  EXPECT_TRUE(status->watched);
  EXPECT_EQ(status->verdict.state(), proto::FINAL);
  EXPECT_NE(status->verdict.code(), "F2");
  const uint32_t revision = status->verdict.revision();
  EXPECT_EQ(engine.Jobs().size(), 1u);

  SchedulerFact fact;
  fact.job_id = "a";
  fact.field = "state";
  fact.value = "PREEMPTED";
  fact.origin = "sacct";
  Observation told;
  told.t = AtSecond(61);
  told.kind = fact;
  engine.Accept(told);
  EXPECT_EQ(engine.jobs(), 1u);
  engine.Tick(AtSecond(62));
  EXPECT_EQ(VerdictOf(engine, "a").code(), "F2");
  EXPECT_EQ(VerdictOf(engine, "a").revision(), revision + 1);
  EXPECT_EQ(VerdictOf(engine, "a").amended_by(), "scheduler record state=PREEMPTED from sacct");

  // It rests again, and is forgotten in the end.
  engine.Tick(AtSecond(100));
  EXPECT_EQ(engine.jobs(), 0u);
  const Output output = engine.Tick(AtSecond(2000));
  EXPECT_EQ(output.ended, std::vector<std::string>{"a"});
  EXPECT_FALSE(engine.Find("a"));
}

TEST(Places, ARestingJobIsSavedWithTheOthers) {
  Engine engine(Small(4), "n1");
  engine.Accept(Rank(100, kAlice, "a", 1));
  engine.Tick(AtSecond(2));
  engine.Accept(Exit(100, 5, 9));
  for (int second = 6; second < 60; ++second) engine.Tick(AtSecond(second));
  engine.Accept(Rank(101, kBob, "b", 61));
  engine.Tick(AtSecond(62));
  ASSERT_EQ(engine.jobs(), 1u);
  Engine again(Small(4), "n1");
  ASSERT_TRUE(again.Restore(engine.Save()));
  EXPECT_EQ(VerdictOf(again, "a").SerializeAsString(), VerdictOf(engine, "a").SerializeAsString());
  EXPECT_EQ(again.Find("b")->uid, kBob);
}

TEST(Places, DocumentsOfJobsThatAreNotWatchedAreBounded) {
  Engine engine(Small(1), "n1");
  engine.Accept(Rank(1, kBob, "b", 1));
  for (int i = 0; i < 5000; ++i) engine.Accept(Rank(100 + i, kAlice, "a" + std::to_string(i), 2));
  engine.Tick(AtSecond(3));
  EXPECT_TRUE(engine.Watches("b"));
  EXPECT_LE(engine.Jobs().size(), 1 + UnwatchedJobs::kMaxPerUser);
  EXPECT_EQ(engine.counters().jobs_dropped, 5000);
}

}  // namespace
}  // namespace rankscope::engine
