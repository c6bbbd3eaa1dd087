// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Storms and limits, built by hand: where the rules begin and where they end.
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <memory>
#include <string>

#include "detectors/families/rows.h"
#include "detectors/families/scheduler.h"

namespace rankscope::families {
namespace {

using features::JobFeatures;

features::EvidenceRef Cite(JobFeatures& f) {
  f.evidence.emplace_back();
  return static_cast<features::EvidenceRef>(f.evidence.size() - 1);
}

// A run that somebody ended; the candidate lives as long as the run.
struct Ended {
  JobFeatures f;
  std::shared_ptr<windows::Candidate> candidate = std::make_shared<windows::Candidate>();

  explicit Ended(std::string_view sub) {
    f.ended = true;
    f.running = false;
    f.timed = true;
    f.begin = {int64_t{1'000} * 1'000'000'000};
    f.now = {int64_t{2'000} * 1'000'000'000};
    if (sub.empty()) return;
    candidate->incident.kind = logs::IncidentKind::kSchedulerEnd;
    candidate->incident.sub = sub;
    candidate->store = proto::STORE_SCHEDULER;
    features::Cause cause;
    cause.candidate = candidate.get();
    cause.event = features::ClassOf(candidate->incident);
    cause.evidence = Cite(f);
    f.causes.push_back(cause);
  }
};

void AddRuns(JobFeatures& f, int64_t recent) {
  f.scheduler.runs_told = true;
  f.scheduler.runs_in_half_hour = recent;
  f.scheduler.runs.push_back({"REQUEUED", true, 60, Cite(f)});
  f.scheduler.runs.push_back({"REQUEUED", true, 60, Cite(f)});
}

// Without a training record nobody saw whether it was well before it was ended.
TEST(ExternalCancel, SaysLessOfARunThatNobodySawTrain) {
  Ended run("cancelled");
  EXPECT_EQ(external_cancel::Evaluate(run.f).cap, cap::kLookalike);
  run.f.progress = 5;
  EXPECT_EQ(external_cancel::Evaluate(run.f).cap, proto::GROUND_RECORD);
}

TEST(RestartStorm, AFewRequeuesRuleItOut) {
  Ended run("requeue");
  run.f.lines = 10;
  EXPECT_EQ(restart_storm::RuleOut(run.f).by, Reason::kNoSuchText);
  run.f.scheduler.restarts = 1;
  EXPECT_EQ(restart_storm::RuleOut(run.f).by, Reason::kFewRestarts);
  run.f.scheduler.restarts = 5;
  EXPECT_NE(restart_storm::RuleOut(run.f).by, Reason::kFewRestarts) << "as many as a storm has";
}

TEST(RestartStorm, FiveEndsInHalfAnHour) {
  Ended run("requeue");
  AddRuns(run.f, 4);
  EXPECT_FALSE(restart_storm::Evaluate(run.f).matched);
  run.f.scheduler.runs_in_half_hour = 5;
  EXPECT_EQ(restart_storm::Evaluate(run.f).sub, "storm");
  EXPECT_LE(restart_storm::Evaluate(run.f).cap, cap::kInferred);
  run.f.scheduler.rerun = "completed";
  EXPECT_FALSE(restart_storm::Evaluate(run.f).matched) << "it got there";
  run.f.scheduler.rerun.clear();
  run.f.exit_known = true;
  EXPECT_FALSE(restart_storm::Evaluate(run.f).matched) << "it got there";
}

TEST(RestartStorm, AFailureOfItsOwnIsTheAnswer) {
  Ended run("requeue");
  AddRuns(run.f, 9);
  run.candidate->incident.kind = logs::IncidentKind::kException;
  EXPECT_FALSE(restart_storm::Evaluate(run.f).matched);
}

TEST(RestartStorm, RestartsHereCountByTheirTimes) {
  Ended run("requeue");
  run.f.restarts.count = 7;
  run.f.restarts.recent = 4;
  run.f.restarts.evidence = Cite(run.f);
  EXPECT_FALSE(restart_storm::Evaluate(run.f).matched) << "seven, over days";
  run.f.restarts.recent = 5;
  EXPECT_TRUE(restart_storm::Evaluate(run.f).matched);
  run.f.restarts.recent = 0;
  run.f.restarts.without_advance = 2;
  EXPECT_FALSE(restart_storm::Evaluate(run.f).matched);
  run.f.restarts.without_advance = 3;
  EXPECT_EQ(restart_storm::Evaluate(run.f).sub, "no_advance");
}

TEST(RestartStorm, AttemptsThatComeFurtherAreNone) {
  Ended run("requeue");
  run.f.restarts.count = run.f.restarts.recent = 7;
  run.f.restarts.evidence = Cite(run.f);
  run.f.restarts.advanced = 4;
  EXPECT_TRUE(restart_storm::Evaluate(run.f).matched) << "one of the last five did not";
  run.f.restarts.advanced = 5;
  EXPECT_FALSE(restart_storm::Evaluate(run.f).matched);

  Ended recorded("requeue");
  AddRuns(recorded.f, 9);
  recorded.f.progress = 20;
  recorded.f.steps_known = true;
  recorded.f.steps = 300;
  recorded.f.resume.parent.kind = "restart";
  recorded.f.resume.parent.known = true;
  recorded.f.resume.parent.last_step = 300;
  EXPECT_TRUE(restart_storm::Evaluate(recorded.f).matched);
  recorded.f.steps = 320;
  EXPECT_FALSE(restart_storm::Evaluate(recorded.f).matched)
      << "the run before had come to step 300";
  recorded.f.resume.parent.kind = "afterany";
  EXPECT_TRUE(restart_storm::Evaluate(recorded.f).matched) << "of another job that says nothing";
}

TEST(RestartStorm, ASuspectNodeIsShownAndIsNoCause) {
  Ended run("requeue");
  AddRuns(run.f, 9);
  run.f.scheduler.suspect = {"n3", 4, 0, Cite(run.f)};
  const Finding finding = restart_storm::Evaluate(run.f);
  const auto ref = run.f.scheduler.suspect.evidence;
  EXPECT_EQ(std::count(finding.shows.begin(), finding.shows.end(), ref), 1);
  EXPECT_EQ(std::count(finding.root.begin(), finding.root.end(), ref), 0);
  EXPECT_EQ(finding.domain, proto::DOMAIN_UNKNOWN);
}

TEST(RestartStorm, ACountAloneIsAGuess) {
  Ended run("");
  run.f.scheduler.restarts = 5;
  run.f.scheduler.restarts_evidence = Cite(run.f);
  run.f.scheduler.judged_seconds = 360;
  const Finding guess = restart_storm::Evaluate(run.f);
  EXPECT_TRUE(guess.matched);
  EXPECT_EQ(guess.tier, proto::TIER_W);
  run.f.scheduler.judged_seconds = 361;
  EXPECT_FALSE(restart_storm::Evaluate(run.f).matched)
      << "five such runs do not fit into half an hour";
  run.f.scheduler.judged_seconds = 10;
  run.f.scheduler.restarts = 4;
  EXPECT_FALSE(restart_storm::Evaluate(run.f).matched);
  run.f.scheduler.restarts = 50;
  run.f.scheduler.runs_told = true;
  EXPECT_FALSE(restart_storm::Evaluate(run.f).matched) << "the record knows better";
  run.f.scheduler.runs_told = false;
  run.f.ended = false;
  run.f.running = true;
  EXPECT_FALSE(restart_storm::Evaluate(run.f).matched) << "it runs";
}

JobFeatures& AtTheLimit(Ended& run, double silence) {
  run.f.progress = 100;
  run.f.phase = proto::PHASE_TRAIN;
  run.f.usual_record_seconds = run.f.p99_record_seconds = run.f.step_seconds = 20;
  run.f.silence_seconds = silence;
  run.f.silence_evidence = Cite(run.f);
  return run.f;
}

TEST(TimeLimit, SlowStalledOrNeither) {
  for (const auto& [silence, sub] : {std::pair<double, std::string_view>{0, "slow"},
                                     {60, "slow"},
                                     {61, "unknown"},
                                     {199, "unknown"},
                                     {200, "stalled"}}) {
    Ended run("time_limit");
    const Finding finding = timeout::Evaluate(AtTheLimit(run, silence));
    EXPECT_EQ(finding.sub, sub) << silence;
    EXPECT_EQ(std::count(finding.open.begin(), finding.open.end(), Question::kHungOrSlow),
              sub == "unknown");
  }
}

TEST(TimeLimit, SaysHowMuchLongerItNeeded) {
  Ended run("time_limit");
  JobFeatures& f = AtTheLimit(run, 10);
  f.step_seconds = 15;
  f.steps = 3000;
  f.steps_known = true;
  const auto seconds = [&](FieldId id) {
    const Finding finding = timeout::Evaluate(f);
    const FieldValue* const value = finding.values.Find(id);
    return value == nullptr ? -1 : std::get<double>(value->value);
  };
  EXPECT_EQ(seconds(FieldId::kNeeded), -1) << "no total";
  f.total_steps = 4000;
  EXPECT_EQ(seconds(FieldId::kMissing), 15'000);
  EXPECT_EQ(seconds(FieldId::kLimit), -1);
  f.scheduler.limit_seconds = 86400;
  EXPECT_EQ(seconds(FieldId::kLimit), 86400);
  EXPECT_EQ(seconds(FieldId::kNeeded), 15'000);
  f.steps = 4000;
  EXPECT_EQ(seconds(FieldId::kNeeded), -1) << "it was done";
}

TEST(TimeLimit, ASaveThatWasCutIsAnsweredByTheKernel) {
  Ended run("time_limit");
  JobFeatures& f = AtTheLimit(run, 10);
  f.lost.in_save = true;
  f.lost.save_evidence = Cite(f);
  const auto asks = [&] {
    const Finding finding = timeout::Evaluate(f);
    EXPECT_EQ(finding.sub, "in_save");
    return std::count(finding.open.begin(), finding.open.end(), Question::kLastCheckpoint);
  };
  EXPECT_EQ(asks(), 1);
  f.lost.save_cut = true;
  EXPECT_EQ(asks(), 0);
}

TEST(LostWork, CountsCardsOnlyWhereTheyAreKnown) {
  Ended run("preemption");
  EXPECT_EQ(requeue_preemption::Evaluate(run.f).wasted_gpu_seconds, 0);
  run.f.lost.seconds = 540;
  run.f.lost.saved = true;
  run.f.lost.evidence = Cite(run.f);
  EXPECT_EQ(requeue_preemption::Evaluate(run.f).wasted_gpu_seconds, 0);
  run.f.lost.gpu_seconds = 540 * 16;
  EXPECT_EQ(requeue_preemption::Evaluate(run.f).wasted_gpu_seconds, 8640);
}

TEST(NodeDown, AStandstillLongBeforeIsLessSure) {
  Ended run("node_failure");
  JobFeatures& f = AtTheLimit(run, 10);
  f.usual_record_seconds = f.p99_record_seconds = f.step_seconds = 1;
  EXPECT_EQ(node_down::Evaluate(f).cap, proto::GROUND_RECORD);
  f.silence_seconds = 360;
  EXPECT_EQ(node_down::Evaluate(f).cap, proto::GROUND_RECORD) << "as long as the scheduler waits";
  f.silence_seconds = 3600;
  EXPECT_LE(node_down::Evaluate(f).cap, cap::kUnseenSide);
}

// The kernel's words about memory that failed, read in a file: near it, a bus error that nobody
// explains.
TEST(HostHardware, IsToldByTheKernelsText) {
  Ended run("machine_check");
  run.candidate->incident.kind = logs::IncidentKind::kSignalDeath;
  run.candidate->incident.signal = SIGBUS;
  run.candidate->incident.shape = "machine_check";
  run.candidate->store = proto::STORE_LOG;
  run.f.causes.front().event = features::ClassOf(run.candidate->incident);
  EXPECT_TRUE(host_hardware::Evaluate(run.f).matched);
  run.candidate->incident.shape = "signal_handler";
  EXPECT_FALSE(host_hardware::Evaluate(run.f).matched);
}

}  // namespace
}  // namespace rankscope::families
