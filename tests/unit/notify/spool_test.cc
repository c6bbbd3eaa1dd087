// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What is to be told survives a restart, is told once, and is bounded.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "exporter/daemon/notifier.h"
#include "exporter/daemon/notify_spool.h"
#include "exporter/notify/log_tails.h"
#include "tests/unit/agent/settled.h"
#include "tests/unit/agent/temporary_directory.h"
#include "tests/unit/notify/sample.h"

namespace rankscope::exporter {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::SizeIs;

proto::SpooledNotification Message(const std::string& id) {
  proto::SpooledNotification message;
  *message.mutable_notification() = notify::SampleNotification();
  message.mutable_notification()->set_id(id);
  message.add_deliveries()->set_channel("a");
  message.add_deliveries()->set_channel("b");
  return message;
}

proto::ToldJob Told(const std::string& job) {
  proto::ToldJob told;
  told.set_job_id(job);
  told.set_told_ns(1000);
  return told;
}

class SpoolTest : public testing::Test {
 protected:
  std::vector<std::string> Files() {
    size_t damaged = 0;
    std::vector<std::string> files;
    for (const auto& waiting : spool_.Messages(damaged)) files.push_back(waiting.file);
    damaged_ += damaged;
    return files;
  }
  TemporaryDirectory directory_;
  NotifySpool spool_{directory_.path() + "/notify"};
  size_t damaged_ = 0;
};

TEST_F(SpoolTest, AMessageStaysUntilItsLastDelivery) {
  ASSERT_TRUE(spool_.Open().ok());
  ASSERT_TRUE(*spool_.Put(Message("x"), Told("8841")));
  EXPECT_THAT(Files(), ElementsAre("x.msg"));
  EXPECT_THAT(spool_.Told(1000, 10), SizeIs(1));
  proto::Delivery delivery;
  delivery.set_channel("a");
  ASSERT_TRUE(spool_.Delivered("x.msg", delivery).ok());
  EXPECT_THAT(Files(), SizeIs(1));
  delivery.set_channel("b");
  ASSERT_TRUE(spool_.Delivered("x.msg", delivery).ok());
  EXPECT_THAT(Files(), SizeIs(0));
  EXPECT_THAT(spool_.Told(2000, 10), SizeIs(0)) << "long ago";
}

TEST_F(SpoolTest, DamagedFilesGoAndAreCounted) {
  ASSERT_TRUE(spool_.Open().ok());
  ASSERT_TRUE(*spool_.Put(Message("x"), Told("8841")));
  ASSERT_TRUE(*spool_.Put(Message("y"), Told("8842")));
  const std::string folder = directory_.path() + "/notify/";
  fs::resize_file(folder + "x.msg", 40);
  fs::rename(folder + "y.msg", folder + "z.msg");
  std::ofstream(folder + "e.msg");
  EXPECT_THAT(Files(), SizeIs(0));
  EXPECT_EQ(damaged_, 3u);
  EXPECT_FALSE(fs::exists(folder + "x.msg"));
}

TEST_F(SpoolTest, IsBoundedInFiles) {
  ASSERT_TRUE(spool_.Open().ok());
  const std::string folder = directory_.path() + "/notify/";
  for (size_t i = 0; i < NotifySpool::kMostMessages; ++i)
    std::ofstream(folder + std::to_string(i) + ".msg");
  EXPECT_FALSE(*spool_.Put(Message("x"), Told("8841")));
}

TEST_F(SpoolTest, IdsAreFileNames) {
  proto::Notification n;
  n.set_id("../../etc/passwd");
  EXPECT_EQ(NotifySpool::FileOf(n).find('/'), std::string::npos);
}

class NotifierTest : public testing::Test {
 protected:
  NotifierTest() {
    NotifyOutcome outcome = ParseNotifyConfig(R"(
channels: [{name: hook, kind: webhook, url: "http://127.0.0.1:1/x"}]
rules: [{channels: [hook]}]
)",
                                              "test");
    config_ = outcome.config;
    Start();
  }
  void Start() {
    notifier_ = std::make_unique<Notifier>(
        loop_, log_, config_,
        Notifier::Place{directory_.path() + "/notify", "n1", directory_.path()});
    ASSERT_TRUE(notifier_->Open(1, Seconds(3600)).ok());
  }
  static JobStatus Job(proto::State state, const std::string& code, const std::string& symptom) {
    JobStatus job;
    job.job_id = "8841";
    job.verdict.set_job_id("8841");
    job.verdict.set_state(state);
    job.verdict.set_code(code);
    job.verdict.set_confidence(0.85);
    job.verdict.mutable_attempt()->set_ordinal(1);
    job.verdict.mutable_triage()->set_symptom(symptom);
    job.verdict.mutable_triage()->set_severity("critical");
    if (state == proto::FINAL) job.verdict.mutable_disposition()->set_kind("failed");
    return job;
  }
  size_t Files(const std::string& suffix) const {
    size_t count = 0;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(directory_.path() + "/notify", error))
      count += entry.path().extension() == suffix ? 1 : 0;
    return count;
  }

  TemporaryDirectory directory_;
  EventLoop loop_;
  Logger log_{"error", "logfmt"};
  NotifyConfig config_;
  std::unique_ptr<Notifier> notifier_;
};

TEST_F(NotifierTest, AnEndIsToldWhenItsVerdictIsOnTheDisk) {
  notifier_->Judged(Job(proto::FINAL, "A2", "one_rank_crashed"), std::nullopt, 1);
  EXPECT_EQ(Files(".msg"), 0u);
  notifier_->Kept("8841");
  RunUntil(loop_, [&] { return Files(".told") == 1; });  // which is written after the message
  EXPECT_EQ(Files(".msg"), 1u);
}

TEST_F(NotifierTest, WhatWasToldIsKnownAfterARestart) {
  notifier_->Judged(Job(proto::LIVE, "C2", "hang"), std::nullopt, 1);
  RunUntil(loop_, [&] { return Files(".told") == 1; });
  notifier_->Stop();
  Start();
  notifier_->Judged(Job(proto::LIVE, "C2", "hang"), std::nullopt, 2);
  notifier_->Judged(Job(proto::FINAL, "C2", "hang"), std::nullopt, 3);
  notifier_->Kept("8841");
  // That the end was told is the last file that is written.
  const NotifySpool spool(directory_.path() + "/notify");
  RunUntil(loop_, [&] {
    const std::vector<proto::ToldJob> told = spool.Told(3, Seconds(3600).ns);
    return told.size() == 1 && told.front().final();
  });
  EXPECT_EQ(Files(".msg"), 2u) << "the hang, once, and the end";
}

JobStatus TaskOf(JobStatus job, const std::string& job_id) {
  job.job_id = job_id;
  job.verdict.set_job_id(job_id);
  job.facts.array_job_id = "77";
  job.facts.array_task = job_id;
  return job;
}

TEST_F(NotifierTest, AnArrayIsToldWhenItsLastTaskHasEnded) {
  for (const char* job : {"78", "79"}) {
    notifier_->Sized(job, 2);
    notifier_->Judged(TaskOf(Job(proto::LIVE, "U0", ""), job), std::nullopt, 1);
  }
  notifier_->Judged(TaskOf(Job(proto::FINAL, "A2", "one_rank_crashed"), "78"), std::nullopt, 2);
  notifier_->Kept("78");
  notifier_->Tick(3);
  EXPECT_EQ(Files(".msg"), 0u);
  notifier_->Judged(TaskOf(Job(proto::FINAL, "A2", "one_rank_crashed"), "79"), std::nullopt, 4);
  notifier_->Kept("79");
  RunUntil(loop_, [&] { return Files(".told") == 2; });
  EXPECT_EQ(Files(".msg"), 2u);
  // Of both it says how the array went; the sender makes one message of them.
  size_t damaged = 0;
  for (const auto& waiting : NotifySpool(directory_.path() + "/notify").Messages(damaged))
    EXPECT_EQ(waiting.message.notification().array_tasks(), 2);
}

TEST_F(NotifierTest, ATaskThatHangsIsToldAtOnceAndSoIsItsEnd) {
  notifier_->Sized("78", 8);
  notifier_->Judged(TaskOf(Job(proto::LIVE, "C2", "hang"), "78"), std::nullopt, 1);
  RunUntil(loop_, [&] { return Files(".told") == 1; });
  notifier_->Judged(TaskOf(Job(proto::FINAL, "C2", "hang"), "78"), std::nullopt, 2);
  notifier_->Kept("78");
  RunUntil(loop_, [&] { return Files(".msg") == 2; });
}

TEST_F(NotifierTest, AnArrayOfOneTaskIsAJob) {
  notifier_->Sized("78", 1);
  notifier_->Judged(TaskOf(Job(proto::FINAL, "A2", "one_rank_crashed"), "78"), std::nullopt, 1);
  notifier_->Kept("78");
  RunUntil(loop_, [&] { return Files(".told") == 1; });
}

TEST_F(NotifierTest, WhatWaitsIsToldBeforeTheDaemonEnds) {
  notifier_->Judged(TaskOf(Job(proto::FINAL, "A2", "one_rank_crashed"), "78"), std::nullopt, 1);
  notifier_->Kept("78");
  EXPECT_EQ(Files(".msg"), 0u);
  notifier_->Stop();
  EXPECT_EQ(Files(".msg"), 1u);
}

TEST_F(NotifierTest, ACommentChoosesAmongChannels) {
  config_.rules.clear();
  Start();
  notifier_->WishedInComment("8841", "hook");
  notifier_->Judged(Job(proto::FINAL, "A2", "one_rank_crashed"), std::nullopt, 1);
  notifier_->Kept("8841");
  RunUntil(loop_, [&] { return Files(".told") == 1; });
  // What the job itself says goes before it.
  notifier_->WishedInComment("8842", "hook");
  notifier_->Wished("8842", 0, "nobody");
  JobStatus other = Job(proto::FINAL, "A2", "one_rank_crashed");
  other.job_id = "8842";
  other.uid = 0;
  notifier_->Judged(other, std::nullopt, 1);
  notifier_->Kept("8842");
  notifier_->Stop();  // after what was submitted
  EXPECT_EQ(Files(".told"), 1u);
}

TEST_F(NotifierTest, AReloadIsInForceForTheNextNews) {
  const NotifyConfig told = config_;
  config_.rules.clear();
  Start();
  notifier_->Judged(Job(proto::FINAL, "A2", "one_rank_crashed"), std::nullopt, 1);
  notifier_->Kept("8841");
  notifier_->SetConfig(told);
  JobStatus other = Job(proto::FINAL, "A2", "one_rank_crashed");
  other.job_id = "8842";
  notifier_->Judged(other, std::nullopt, 2);
  notifier_->Kept("8842");
  RunUntil(loop_, [&] { return Files(".told") == 1; });
  notifier_->Stop();
  EXPECT_EQ(Files(".msg"), 1u) << "nobody was to know of the first";
}

TEST(LogTails, AreOfTheCulprit) {
  notify::LogTails tails;
  for (int rank = 0; rank < 2; ++rank) {
    for (int i = 0; i < 30; ++i) {
      const std::string text = "rank " + std::to_string(rank) + " line " + std::to_string(i);
      LogLine line;
      line.job_id = "8841";
      line.stream = static_cast<uint32_t>(rank);
      line.rank = rank;
      line.text = text;
      tails.Note(line);
    }
  }
  JobStatus job;
  job.job_id = "8841";
  EXPECT_EQ(tails.Of(job).of, "the job's output");
  job.verdict.add_ranks(0);
  const notify::LogTail tail = tails.Of(job);
  EXPECT_EQ(tail.of, "rank 0");
  ASSERT_THAT(tail.lines, SizeIs(notify::LogTails::kLines));
  EXPECT_EQ(tail.lines.front(), "rank 0 line 10");
  EXPECT_EQ(tail.lines.back(), "rank 0 line 29");
  tails.Forget("8841");
  EXPECT_THAT(tails.Of(job).lines, SizeIs(0));
}

}  // namespace
}  // namespace rankscope::exporter
