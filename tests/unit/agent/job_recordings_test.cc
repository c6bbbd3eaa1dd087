// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/job_recordings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "exporter/replay/reading.h"
#include "exporter/sources.h"
#include "tests/unit/agent/temporary_directory.h"

namespace rankscope::exporter {
namespace {

namespace fs = std::filesystem;

Observation At(int64_t seconds, uint32_t source, int64_t seq, auto kind) {
  Observation observation;
  observation.t = Timestamp{} + Seconds(static_cast<double>(seconds));
  observation.source = source;
  observation.seq = seq;
  observation.node = "n1";
  observation.kind = std::move(kind);
  return observation;
}

Observation Begin(int64_t seconds, const std::string& job_id, int32_t pid) {
  RunMark mark;
  mark.job_id = job_id;
  mark.what = RunMark::What::kBegin;
  mark.root = {pid, 1};
  return At(seconds, kRunSource, 1, mark);
}

Observation Line(int64_t seconds, int64_t seq, const std::string& job_id, std::string_view text) {
  LogLine line;
  line.stream = 1;
  line.stream_name = "stdout";
  line.job_id = job_id;
  line.text = text;
  line.end = LineEnd::kLf;
  return At(seconds, kRunSource, seq, line);
}

Observation Told(int64_t seconds, const std::string& job_id, const std::string& origin) {
  SchedulerFact fact;
  fact.job_id = job_id;
  fact.field = "state";
  fact.value = "FAILED";
  fact.origin = origin;
  return At(seconds, 17, seconds, fact);
}

class JobRecordingsTest : public testing::Test {
 protected:
  std::unique_ptr<JobRecordings> Make(const std::string& boot_id = "boot-1") {
    JobRecordings::Options options;
    options.directory = directory_.path() + "/state";
    options.job_bytes = 8 << 20;
    options.total_bytes = total_bytes_;
    options.header.boot_id = boot_id;
    return std::make_unique<JobRecordings>(options, log_);
  }
  std::vector<std::string> TextsOf(const std::string& job_id) const {
    std::vector<std::string> texts;
    replay::ReadCallbacks callbacks;
    callbacks.observation = [&](const Observation& observation) {
      if (const auto* line = std::get_if<LogLine>(&observation.kind))
        texts.emplace_back(line->text);
    };
    EXPECT_TRUE(replay::ReadRecording(JobDirectory(job_id), callbacks).readable);
    return texts;
  }
  template <class Kind>
  int KindsOf(const std::string& job_id) const {
    int count = 0;
    replay::ReadCallbacks callbacks;
    callbacks.observation = [&](const Observation& observation) {
      count += std::holds_alternative<Kind>(observation.kind);
    };
    EXPECT_TRUE(replay::ReadRecording(JobDirectory(job_id), callbacks).readable);
    return count;
  }
  std::string JobDirectory(const std::string& job_id) const {
    return directory_.path() + "/state/jobs/" + job_id;
  }
  static void NotAsked(const std::string& directory) { ADD_FAILURE() << directory; }

  TemporaryDirectory directory_;
  Logger log_{"error", "logfmt"};
  int64_t total_bytes_ = 1 << 30;
};

TEST_F(JobRecordingsTest, EachJobHasItsOwnAndTheNodesFactsGoToAll) {
  auto recordings = Make();
  ASSERT_TRUE(recordings->Open().ok());
  recordings->Accept(Begin(1, "a", 10));
  recordings->Accept(Begin(1, "b", 20));
  recordings->Accept(Line(2, 2, "a", "one"));
  recordings->Accept(Line(3, 2, "b", "two"));
  recordings->Accept(At(4, kAgentSource, 1, Tick{}));
  recordings->Flush();
  EXPECT_THAT(TextsOf("a"), testing::ElementsAre("one"));
  EXPECT_THAT(TextsOf("b"), testing::ElementsAre("two"));
  int ticks = 0;
  replay::ReadCallbacks callbacks;
  callbacks.observation = [&](const Observation& o) {
    ticks += std::holds_alternative<Tick>(o.kind);
  };
  static_cast<void>(replay::ReadRecording(JobDirectory("b"), callbacks));
  EXPECT_EQ(ticks, 1);
  EXPECT_GT(recordings->bytes(), 0);
  EXPECT_EQ(recordings->errors(), 0);
}

TEST_F(JobRecordingsTest, AfterAKillTheLiveJobsAreReadInOrderAndGoOn) {
  {
    auto recordings = Make();
    ASSERT_TRUE(recordings->Open().ok());
    recordings->Accept(Begin(1, "a", 10));
    recordings->Accept(Begin(2, "b", 20));
    recordings->Accept(Begin(2, "done", 30));
    recordings->Accept(Line(3, 2, "b", "three"));
    recordings->Accept(Line(4, 2, "a", "four"));
    recordings->Accept(At(5, kAgentSource, 1, Tick{}));
    recordings->Finish("done");
    recordings->MarkFinished("done");
    recordings->Flush();
  }
  auto recordings = Make();
  ASSERT_TRUE(recordings->Open().ok());
  std::vector<int64_t> times;
  recordings->Restore([&](const Observation& o) { times.push_back(o.t.ns / 1'000'000'000); },
                      NotAsked);
  EXPECT_THAT(times, testing::ElementsAre(1, 2, 3, 4, 5));  // one tick, though both have it
  EXPECT_THAT(recordings->LiveJobs(), testing::ElementsAre("a", "b"));
  EXPECT_LT(recordings->TakeWrapperSeq("c", 0), 0);
  EXPECT_EQ(recordings->TakeWrapperSeq("a", 0), 2);
  EXPECT_LT(recordings->TakeWrapperSeq("a", 0), 0) << "whoever comes next is another wrapper";
  std::set<int32_t> alive;
  for (const auto& process : recordings->LiveProcesses()) alive.insert(process.key.pid);
  EXPECT_EQ(alive, (std::set<int32_t>{10, 20}));
  recordings->Accept(Line(6, 3, "a", "six"));
  recordings->Flush();
  EXPECT_THAT(TextsOf("a"), testing::ElementsAre("four", "six"));
}

TEST_F(JobRecordingsTest, ARecordingThatCrashesTwiceIsSetAside) {
  {
    auto recordings = Make();
    ASSERT_TRUE(recordings->Open().ok());
    recordings->Accept(Begin(1, "good", 10));
    recordings->Accept(Begin(1, "poison", 20));
    recordings->Flush();
  }
  // The first start died while it read, the second while it judged this one alone.
  std::ofstream(directory_.path() + "/state/restoring");
  std::ofstream(JobDirectory("poison") + "/suspect");
  auto recordings = Make();
  ASSERT_TRUE(recordings->Open().ok());
  std::vector<std::string> judged;
  recordings->Restore([](const Observation&) {},
                      [&](const std::string& directory) { judged.push_back(directory); });
  EXPECT_THAT(judged, testing::ElementsAre(JobDirectory("good")));
  EXPECT_THAT(recordings->LiveJobs(), testing::ElementsAre("good"));
  EXPECT_TRUE(fs::exists(directory_.path() + "/state/quarantine/poison"));
  EXPECT_FALSE(fs::exists(directory_.path() + "/state/restoring"));
}

TEST_F(JobRecordingsTest, AnEarlierBootIsNotContinued) {
  {
    auto recordings = Make("boot-0");
    ASSERT_TRUE(recordings->Open().ok());
    recordings->Accept(Begin(1, "a", 10));
    recordings->Flush();
  }
  auto recordings = Make();
  ASSERT_TRUE(recordings->Open().ok());
  recordings->Restore([](const Observation&) { ADD_FAILURE(); }, NotAsked);
  EXPECT_TRUE(recordings->LiveJobs().empty());
}

TEST_F(JobRecordingsTest, WhatTheSchedulerTellsLateGoesBehindTheRun) {
  auto recordings = Make();
  ASSERT_TRUE(recordings->Open().ok());
  recordings->Accept(Begin(1, "7", 10));
  recordings->Accept(Line(2, 2, "7", "the run"));
  recordings->Finish("7");
  recordings->MarkFinished("7");
  recordings->Accept(Told(12, "7", "sacct"));
  recordings->Accept(At(13, kRunSource, 9, Tick{}));
  recordings->Flush();
  EXPECT_THAT(recordings->LiveJobs(), testing::IsEmpty()) << "a word is no run";
  EXPECT_THAT(TextsOf("7"), testing::ElementsAre("the run"));
  EXPECT_EQ(KindsOf<SchedulerFact>("7"), 1);
  EXPECT_EQ(KindsOf<Tick>("7"), 1) << "it was judged again";
  for (int i = 0; i < 9; ++i) {
    recordings->Accept(Told(20 + i, "7", "sacct"));
    recordings->Flush();
  }
  recordings->Accept(At(40, kRunSource, 10, Tick{}));
  EXPECT_THAT(TextsOf("7"), testing::ElementsAre("the run")) << "words push no text away";
  EXPECT_EQ(KindsOf<Tick>("7"), 1) << "nothing had been told";
  EXPECT_EQ(std::distance(fs::directory_iterator(directory_.path() + "/state/jobs"), {}), 1);
  EXPECT_TRUE(fs::exists(JobDirectory("7") + "/finished"));
  recordings->Accept(Told(14, "8", "sacct"));
  EXPECT_FALSE(fs::exists(JobDirectory("8"))) << "of a job that did not run here";
}

TEST_F(JobRecordingsTest, TheNextAttemptGoesOnWhereTheEngineRemembersTheOneBefore) {
  auto recordings = Make();
  ASSERT_TRUE(recordings->Open().ok());
  recordings->Accept(Line(1, 2, "7", "first attempt"));
  recordings->Finish("7");
  recordings->MarkFinished("7");
  recordings->Accept(Told(12, "7", "sacct"));
  recordings->Accept(Line(13, 2, "7", "second attempt"));
  recordings->Flush();
  EXPECT_THAT(TextsOf("7"), testing::ElementsAre("first attempt", "second attempt"));
  EXPECT_THAT(recordings->LiveJobs(), testing::ElementsAre("7"));
  EXPECT_FALSE(fs::exists(JobDirectory("7") + "/finished"));
  recordings->Finish("7");
  recordings->MarkFinished("7");
  recordings->Forget("7");
  recordings->Accept(Line(4000, 2, "7", "another job"));
  recordings->Flush();
  EXPECT_THAT(TextsOf("7"), testing::ElementsAre("another job"));
}

TEST_F(JobRecordingsTest, AReusedIdKeepsTheEarlierLife) {
  auto recordings = Make();
  ASSERT_TRUE(recordings->Open().ok());
  recordings->Accept(Begin(1, "7", 10));
  recordings->Accept(Line(2, 2, "7", "first life"));
  recordings->Finish("7");
  recordings->MarkFinished("7");
  recordings->Accept(Begin(3, "7", 11));
  recordings->Accept(Line(4, 2, "7", "second life"));
  recordings->Flush();
  EXPECT_THAT(TextsOf("7"), testing::ElementsAre("second life"));
  EXPECT_EQ(std::distance(fs::directory_iterator(directory_.path() + "/state/jobs"), {}), 2);
}

TEST_F(JobRecordingsTest, AWrapperThatSlurmHasBegunAgainGoesOn) {
  const auto again = [](double second, const std::string& job_id, int32_t pid, int32_t restart) {
    Observation begin = Begin(second, job_id, pid);
    std::get<RunMark>(begin.kind).slurm_restart = restart;
    return begin;
  };
  auto recordings = Make();
  ASSERT_TRUE(recordings->Open().ok());
  recordings->Accept(Begin(1, "7", 10));
  recordings->Accept(Line(2, 2, "7", "first attempt"));
  recordings->Finish("7");
  recordings->MarkFinished("7");
  recordings->Accept(again(3, "7", 11, 1));
  recordings->Accept(Line(4, 2, "7", "second attempt"));
  recordings->Finish("7");
  recordings->MarkFinished("7");
  recordings->Flush();
  EXPECT_THAT(TextsOf("7"), testing::ElementsAre("first attempt", "second attempt"));
  EXPECT_TRUE(fs::exists(JobDirectory("7") + "/finished"));
  // The script's next command is another job, though Slurm's count is not 0.
  recordings->Accept(again(5, "7", 12, 1));
  recordings->Accept(Line(6, 2, "7", "another command"));
  recordings->Flush();
  EXPECT_THAT(TextsOf("7"), testing::ElementsAre("another command"));
}

TEST_F(JobRecordingsTest, TheOldestFinishedGoesWhenTheNodesBudgetIsUsedUp) {
  total_bytes_ = 1;
  auto recordings = Make();
  ASSERT_TRUE(recordings->Open().ok());
  recordings->Accept(Begin(1, "live", 10));
  recordings->Accept(Begin(1, "done", 20));
  recordings->Finish("done");
  recordings->MarkFinished("done");
  recordings->Flush();
  EXPECT_FALSE(fs::exists(JobDirectory("done")));
  EXPECT_TRUE(fs::exists(JobDirectory("live")));
}

TEST_F(JobRecordingsTest, AnUnusableDirectoryIsSaidAndCostsNothingElse) {
  std::ofstream(directory_.path() + "/state") << "a file";
  auto recordings = Make();
  const Status status = recordings->Open();
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error(), testing::HasSubstr("--state.dir"));
  EXPECT_FALSE(recordings->trouble().empty());
  EXPECT_GT(recordings->errors(), 0);
  recordings->Restore([](const Observation&) { ADD_FAILURE(); }, NotAsked);
  recordings->Accept(Begin(1, "a", 10));
  recordings->Flush();
  recordings->Finish("a");
  recordings->MarkFinished("a");
}

TEST_F(JobRecordingsTest, TwoDaemonsDoNotShareADirectory) {
  auto first = Make();
  ASSERT_TRUE(first->Open().ok());
  auto second = Make();
  const Status status = second->Open();
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error(), testing::HasSubstr("another running rankscope"));
}

}  // namespace
}  // namespace rankscope::exporter
