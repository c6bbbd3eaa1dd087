// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/daemon/job_recordings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <set>

#include "exporter/daemon/sources.h"
#include "exporter/replay/reading.h"
#include "tests/unit/agent/settled.h"
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
    return std::make_unique<JobRecordings>(options, log_, frames_, slow_);
  }
  std::unique_ptr<JobRecordings> Opened(const std::string& boot_id = "boot-1") {
    auto recordings = Make(boot_id);
    EXPECT_TRUE(recordings->Open().ok());
    return recordings;
  }
  // The seconds of what is restored, in its order.
  static std::vector<int64_t> RestoredBy(JobRecordings& recordings) {
    std::vector<int64_t> times;
    recordings.Restore([&](const Observation& o) { times.push_back(o.t.ns / 1'000'000'000); },
                       NotAsked);
    return times;
  }
  // Until all that was handed over is in the files.
  void Settle(JobRecordings& recordings) {
    recordings.Flush();
    ASSERT_TRUE(frames_.Drain(Seconds(60)));
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
  EventLoop loop_;
  DiskThread frames_{loop_, {64, 1 << 20}};
  DiskThread slow_{loop_};
  Logger log_{"error", "logfmt"};
  int64_t total_bytes_ = 1 << 30;
};

TEST_F(JobRecordingsTest, EachJobHasItsOwnAndTheNodesFactsGoToAll) {
  auto recordings = Opened();
  recordings->Accept(Begin(1, "a", 10));
  recordings->Accept(Begin(1, "b", 20));
  recordings->Accept(Line(2, 2, "a", "one"));
  recordings->Accept(Line(3, 2, "b", "two"));
  recordings->Accept(At(4, kAgentSource, 1, Tick{}));
  Settle(*recordings);
  EXPECT_THAT(TextsOf("a"), testing::ElementsAre("one"));
  EXPECT_THAT(TextsOf("b"), testing::ElementsAre("two"));
  EXPECT_EQ(KindsOf<Tick>("b"), 1);
  EXPECT_GT(recordings->bytes(), 0);
  EXPECT_EQ(recordings->errors(), 0);
}

TEST_F(JobRecordingsTest, AfterAKillTheLiveJobsAreReadInOrderAndGoOn) {
  {
    auto recordings = Opened();
    recordings->Accept(Begin(1, "a", 10));
    recordings->Accept(Begin(2, "b", 20));
    recordings->Accept(Begin(2, "done", 30));
    recordings->Accept(Line(3, 2, "b", "three"));
    recordings->Accept(Line(4, 2, "a", "four"));
    recordings->Accept(At(5, kAgentSource, 1, Tick{}));
    recordings->Finish("done");
    recordings->MarkFinished("done");
    Settle(*recordings);
  }
  auto recordings = Opened();
  EXPECT_THAT(RestoredBy(*recordings),
              testing::ElementsAre(1, 2, 3, 4, 5));  // one tick, though both have it
  EXPECT_THAT(recordings->LiveJobs(), testing::ElementsAre("a", "b"));
  EXPECT_LT(recordings->TakeWrapperSeq("c", 0), 0);
  EXPECT_EQ(recordings->TakeWrapperSeq("a", 0), 2);
  EXPECT_LT(recordings->TakeWrapperSeq("a", 0), 0) << "whoever comes next is another wrapper";
  std::set<int32_t> alive;
  for (const auto& process : recordings->LiveProcesses()) alive.insert(process.key.pid);
  EXPECT_EQ(alive, (std::set<int32_t>{10, 20}));
  recordings->Accept(Line(6, 3, "a", "six"));
  Settle(*recordings);
  EXPECT_THAT(TextsOf("a"), testing::ElementsAre("four", "six"));
}

// A line that was read late has the time at which it arrived, and another may be stamped while a
// tick begins that judges it.
TEST_F(JobRecordingsTest, EachTickJudgesWhatItJudgedBefore) {
  {
    auto recordings = Opened();
    recordings->Accept(Begin(1, "a", 10));
    recordings->Accept(Begin(1, "b", 20));
    recordings->Accept(At(5, kAgentSource, 1, Tick{}));
    recordings->Accept(Line(3, 2, "b", "late"));
    recordings->Accept(Line(6, 3, "a", "six"));
    recordings->Accept(Line(8, 4, "b", "stamped while the tick began"));
    recordings->Accept(At(7, kAgentSource, 2, Tick{}));
    recordings->Accept(Line(9, 5, "a", "nine"));
    Settle(*recordings);
  }
  auto recordings = Opened();
  EXPECT_THAT(RestoredBy(*recordings), testing::ElementsAre(1, 1, 5, 3, 6, 8, 7, 9));
}

TEST_F(JobRecordingsTest, ARecordingThatCrashesTwiceIsSetAside) {
  {
    auto recordings = Opened();
    recordings->Accept(Begin(1, "good", 10));
    recordings->Accept(Begin(1, "poison", 20));
    Settle(*recordings);
  }
  // The first start died while it read, the second while it judged this one alone.
  std::ofstream(directory_.path() + "/state/restoring");
  std::ofstream(JobDirectory("poison") + "/suspect");
  auto recordings = Opened();
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
    auto recordings = Opened("boot-0");
    recordings->Accept(Begin(1, "a", 10));
    Settle(*recordings);
  }
  auto recordings = Opened();
  recordings->Restore([](const Observation&) { ADD_FAILURE(); }, NotAsked);
  EXPECT_TRUE(recordings->LiveJobs().empty());
}

TEST_F(JobRecordingsTest, WhatTheSchedulerTellsLateGoesBehindTheRun) {
  auto recordings = Opened();
  recordings->Accept(Begin(1, "7", 10));
  recordings->Accept(Line(2, 2, "7", "the run"));
  recordings->Finish("7");
  recordings->MarkFinished("7");
  recordings->Accept(Told(12, "7", "sacct"));
  recordings->Accept(At(13, kRunSource, 9, Tick{}));
  Settle(*recordings);
  EXPECT_THAT(recordings->LiveJobs(), testing::IsEmpty()) << "a word is no run";
  EXPECT_THAT(TextsOf("7"), testing::ElementsAre("the run"));
  EXPECT_EQ(KindsOf<SchedulerFact>("7"), 1);
  EXPECT_EQ(KindsOf<Tick>("7"), 1) << "it was judged again";
  for (int i = 0; i < 9; ++i) {
    recordings->Accept(Told(20 + i, "7", "sacct"));
    Settle(*recordings);
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
  auto recordings = Opened();
  recordings->Accept(Line(1, 2, "7", "first attempt"));
  recordings->Finish("7");
  recordings->MarkFinished("7");
  recordings->Accept(Told(12, "7", "sacct"));
  recordings->Accept(Line(13, 2, "7", "second attempt"));
  Settle(*recordings);
  EXPECT_THAT(TextsOf("7"), testing::ElementsAre("first attempt", "second attempt"));
  EXPECT_THAT(recordings->LiveJobs(), testing::ElementsAre("7"));
  EXPECT_FALSE(fs::exists(JobDirectory("7") + "/finished"));
  recordings->Finish("7");
  recordings->MarkFinished("7");
  recordings->Forget("7");
  recordings->Accept(Line(4000, 2, "7", "another job"));
  Settle(*recordings);
  EXPECT_THAT(TextsOf("7"), testing::ElementsAre("another job"));
}

TEST_F(JobRecordingsTest, AReusedIdKeepsTheEarlierLife) {
  auto recordings = Opened();
  recordings->Accept(Begin(1, "7", 10));
  recordings->Accept(Line(2, 2, "7", "first life"));
  recordings->Finish("7");
  recordings->MarkFinished("7");
  recordings->Accept(Begin(3, "7", 11));
  recordings->Accept(Line(4, 2, "7", "second life"));
  Settle(*recordings);
  EXPECT_THAT(TextsOf("7"), testing::ElementsAre("second life"));
  EXPECT_EQ(std::distance(fs::directory_iterator(directory_.path() + "/state/jobs"), {}), 2);
}

TEST_F(JobRecordingsTest, AWrapperThatSlurmHasBegunAgainGoesOn) {
  const auto again = [](int64_t second, const std::string& job_id, int32_t pid, int32_t restart) {
    Observation begin = Begin(second, job_id, pid);
    std::get<RunMark>(begin.kind).slurm_restart = restart;
    return begin;
  };
  auto recordings = Opened();
  recordings->Accept(Begin(1, "7", 10));
  recordings->Accept(Line(2, 2, "7", "first attempt"));
  recordings->Finish("7");
  recordings->MarkFinished("7");
  recordings->Accept(again(3, "7", 11, 1));
  recordings->Accept(Line(4, 2, "7", "second attempt"));
  recordings->Finish("7");
  recordings->MarkFinished("7");
  Settle(*recordings);
  EXPECT_THAT(TextsOf("7"), testing::ElementsAre("first attempt", "second attempt"));
  EXPECT_TRUE(fs::exists(JobDirectory("7") + "/finished"));
  // The script's next command is another job, though Slurm's count is not 0.
  recordings->Accept(again(5, "7", 12, 1));
  recordings->Accept(Line(6, 2, "7", "another command"));
  Settle(*recordings);
  EXPECT_THAT(TextsOf("7"), testing::ElementsAre("another command"));
}

TEST_F(JobRecordingsTest, TheOldestFinishedGoesWhenTheNodesBudgetIsUsedUp) {
  total_bytes_ = 1;
  auto recordings = Opened();
  recordings->Accept(Begin(1, "live", 10));
  recordings->Accept(Begin(1, "done", 20));
  recordings->Finish("done");
  recordings->MarkFinished("done");
  Settle(*recordings);
  recordings->EnforceTotal();  // the first look may have come before the bytes
  RunUntil(loop_, [&] { return !fs::exists(JobDirectory("done")); });
  EXPECT_TRUE(fs::exists(JobDirectory("live")));
  RunUntil(loop_, [&] { return !fs::exists(directory_.path() + "/state/removed"); });
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
  Settle(*recordings);
  recordings->Finish("a");
  recordings->MarkFinished("a");
}

TEST_F(JobRecordingsTest, AVerdictThatIsNotOnTheDiskIsJudgedAgain) {
  {
    auto recordings = Opened();
    recordings->Accept(Begin(1, "kept", 10));
    recordings->Accept(Begin(1, "waits", 20));
    recordings->Finish("kept");
    recordings->Finish("waits");
    recordings->MarkFinished("kept");
    recordings->Forget("waits");  // by the engine
    Settle(*recordings);
  }
  auto recordings = Opened();
  recordings->Restore([](const Observation&) {}, NotAsked);
  EXPECT_THAT(recordings->LiveJobs(), testing::ElementsAre("waits"));
}

TEST_F(JobRecordingsTest, ADiskThatHangsKeepsNobodyWaitingAndWhatIsLostIsSaid) {
  auto recordings = Opened();
  recordings->Accept(Begin(1, "a", 10));
  recordings->Accept(Begin(1, "b", 11));
  Settle(*recordings);
  std::promise<void> hangs, go;
  ASSERT_TRUE(frames_.Submit([&]() -> std::function<void()> {
    hangs.set_value();
    go.get_future().wait();
    return nullptr;
  }));
  hangs.get_future().wait();
  const std::string text(10'000, 'x');
  for (int i = 0; i < 300; ++i) {
    recordings->Accept(Line(2 + i, 2 + i, "a", text));
    recordings->Flush();
  }
  EXPECT_GT(recordings->lost(), 0);
  EXPECT_FALSE(recordings->Exact("a"));
  EXPECT_TRUE(recordings->Exact("b"));
  go.set_value();
  ASSERT_TRUE(frames_.Drain(Seconds(60)));
  Settle(*recordings);
  recordings->Accept(Line(999, 999, "a", "the end"));
  recordings->Flush();
  ASSERT_TRUE(frames_.Drain(Seconds(60)));
  Settle(*recordings);
  const std::vector<std::string> texts = TextsOf("a");
  EXPECT_EQ(texts.back(), "the end");
  EXPECT_EQ(static_cast<int64_t>(texts.size()) + recordings->lost(), 301);
  EXPECT_FALSE(fs::exists(JobDirectory("a") + "/bulk-00000002.rec")) << "a number is left out";
  EXPECT_TRUE(fs::exists(JobDirectory("a") + "/bulk-00000003.rec"));
}

TEST_F(JobRecordingsTest, AUsersManyRecordingsCostHisOwn) {
  const auto begin = [](int64_t seconds, const std::string& job_id, int32_t pid, uint32_t uid) {
    Observation observation = Begin(seconds, job_id, pid);
    std::get<RunMark>(observation.kind).uid = uid;
    return observation;
  };
  total_bytes_ = 4 << 20;
  auto recordings = Opened();
  const auto run = [&](const std::string& job_id, uint32_t uid) {
    recordings->Accept(begin(1, job_id, 10, uid));
    for (int i = 0; i < 60; ++i) {
      recordings->Accept(Line(2 + i, 2 + i, job_id, std::string(9'000, 'x')));
    }
    recordings->Finish(job_id);
    recordings->MarkFinished(job_id);
    Settle(*recordings);
  };
  run("victim", 61001);
  for (int i = 0; i < 12; ++i) run("hostile-" + std::to_string(i), 61002);
  recordings->EnforceTotal();
  RunUntil(loop_, [&] { return !fs::exists(JobDirectory("hostile-4")); });
  EXPECT_TRUE(fs::exists(JobDirectory("victim"))) << "the oldest of all";
  EXPECT_TRUE(fs::exists(JobDirectory("hostile-11")));
  // Its mark names the owner to the next start.
  recordings.reset();
  std::vector<RecordingFolder> folders = ScanRecordings(directory_.path() + "/state");
  for (const RecordingFolder& folder : folders)
    EXPECT_EQ(folder.uid, folder.name == "victim" ? 61001u : 61002u) << folder.name;
}

TEST_F(JobRecordingsTest, ManyLiveJobsShareTheNodesBudget) {
  total_bytes_ = 8 << 20;
  auto recordings = Opened();
  for (int job = 0; job < 8; ++job) recordings->Accept(Begin(1, std::to_string(job), 10 + job));
  Settle(*recordings);
  for (int i = 0; i < 500; ++i) {
    for (int job = 0; job < 8; ++job) {
      recordings->Accept(Line(2 + i, 2 + i, std::to_string(job), std::string(9'000, 'x')));
    }
    Settle(*recordings);
  }
  int64_t bytes = 0;
  for (const RecordingFolder& folder : ScanRecordings(directory_.path() + "/state"))
    bytes += folder.bytes;
  EXPECT_LT(bytes, total_bytes_);
  EXPECT_GT(bytes, total_bytes_ / 4);
  EXPECT_FALSE(recordings->Exact("0")) << "its beginning is gone";
}

TEST_F(JobRecordingsTest, ADirectoryThatOthersMayWriteIsRefused) {
  fs::create_directory(directory_.path() + "/state");
  std::ofstream(directory_.path() + "/state/planted") << "x";
  chmod((directory_.path() + "/state").c_str(), 0777);
  const Status status = Make()->Open();
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error(), testing::HasSubstr("chmod"));
  // Where nobody has put anything, its mode is mended.
  fs::remove(directory_.path() + "/state/planted");
  EXPECT_TRUE(Make()->Open().ok());
  struct stat info {};
  ASSERT_EQ(stat((directory_.path() + "/state").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 077, 0u);
  if (geteuid() != 0) GTEST_SKIP() << "another owner: needs root";
  ASSERT_EQ(chown((directory_.path() + "/state").c_str(), 61001, 61001), 0);
  const Status other = Make()->Open();
  ASSERT_FALSE(other.ok());
  EXPECT_THAT(other.error(), testing::HasSubstr("61001"));
}

RecordingFolder Folder(const std::string& name, std::optional<uint32_t> uid, int64_t ended,
                       int64_t bytes, bool in_use = false) {
  return {"/state/jobs/" + name, name, true, in_use, ended, bytes, uid};
}

std::vector<std::string> Removed(std::vector<RecordingFolder> folders, int64_t total,
                                 size_t most = 100) {
  std::vector<std::string> names;
  for (const RecordingFolder& folder : ToRemove(std::move(folders), total, most))
    names.push_back(folder.name);
  return names;
}

TEST(RecordingRoom, TakesFromWhoHasMostHisOldestFirst) {
  const std::vector<RecordingFolder> folders = {Folder("a1", 1, 1, 10), Folder("b1", 2, 2, 50),
                                                Folder("b2", 2, 3, 50), Folder("b3", 2, 4, 50)};
  EXPECT_THAT(Removed(folders, 200), testing::IsEmpty());
  EXPECT_THAT(Removed(folders, 150), testing::ElementsAre("b1"));
  EXPECT_THAT(Removed(folders, 20), testing::ElementsAre("b1", "b2", "b3"));
  EXPECT_THAT(Removed(folders, 0), testing::ElementsAre("b1", "b2", "b3", "a1"));
  EXPECT_THAT(Removed(folders, 200, 3), testing::ElementsAre("b1")) << "too many, however small";
}

TEST(RecordingRoom, WhatIsInUseCountsAndStays) {
  EXPECT_THAT(
      Removed({Folder("a1", 1, 1, 50), Folder("b1", 2, 2, 40), Folder("b2", 2, 3, 90, true)}, 150),
      testing::ElementsAre("b1"));
  EXPECT_THAT(Removed({Folder("b2", 2, 3, 90, true)}, 50), testing::IsEmpty());
  EXPECT_THAT(Removed({Folder("a1", 1, 1, 50), Folder("b2", 2, 3, 200, true)}, 150),
              testing::IsEmpty())
      << "the share of the first is his";
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
