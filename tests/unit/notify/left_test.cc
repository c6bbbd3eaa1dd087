// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What a wrapper leaves is found by whoever sends it, and what others lay into the folder is not.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "exporter/daemon/notifier.h"
#include "exporter/notify/describe.h"
#include "exporter/notify/left_messages.h"
#include "exporter/notify/left_sender.h"
#include "tests/unit/agent/settled.h"
#include "tests/unit/agent/temporary_directory.h"
#include "tests/unit/notify/sample.h"

namespace rankscope::exporter::notify {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr int64_t kNow = int64_t{1'795'812'656} * 1'000'000'000;

proto::SpooledNotification Message(const std::string& job = "8841") {
  proto::SpooledNotification message;
  *message.mutable_notification() = SampleNotification();
  message.mutable_notification()->set_job_id(job);
  message.mutable_notification()->set_id("rs." + job + ".1764276656000.n1");
  message.mutable_notification()->set_thread(message.notification().id());
  message.set_spooled_ns(kNow);
  return message;
}

class LeftTest : public testing::Test {
 protected:
  void Leave(uint64_t random, const proto::SpooledNotification& message) {
    ASSERT_TRUE(messages_.Leave(uid_, random, message.SerializeAsString()).ok());
  }
  std::string Name(int number) const {
    return std::to_string(uid_) + ".000000000000000" + std::to_string(number) + ".msg";
  }
  std::string PathOf(int number) const { return directory_.path() + '/' + Name(number); }
  std::vector<std::string> Files() {
    std::vector<std::string> files;
    for (const auto& left : messages_.Read(uid_, damaged_)) files.push_back(left.file);
    return files;
  }

  TemporaryDirectory directory_;
  LeftMessages messages_{directory_.path()};
  const uint32_t uid_ = getuid();
  size_t damaged_ = 0;
};

TEST_F(LeftTest, AMessageIsThereUntilItIsRemoved) {
  Leave(1, Message());
  Leave(2, Message("8842"));
  EXPECT_THAT(Files(), ElementsAre(Name(1), Name(2)));
  EXPECT_THAT(messages_.Read(std::nullopt, damaged_), SizeIs(2));
  EXPECT_THAT(messages_.Read(uid_ + 1, damaged_), IsEmpty());
  ASSERT_TRUE(messages_.Remove(Name(1)).ok());
  EXPECT_THAT(Files(), ElementsAre(Name(2)));
  struct stat info {};
  ASSERT_EQ(stat(PathOf(2).c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u) << "nobody else reads what a job has printed";
}

TEST_F(LeftTest, WhatIsNoFileOfItsUserIsPassedOver) {
  Leave(1, Message());
  fs::create_symlink(PathOf(1), PathOf(2));
  ASSERT_EQ(mkfifo(PathOf(3).c_str(), 0666), 0);
  fs::create_directory(PathOf(4));
  fs::create_hard_link(PathOf(1), directory_.path() + "/elsewhere");
  EXPECT_THAT(Files(), IsEmpty()) << "nothing is opened that has two names, or is no file";
  fs::remove(directory_.path() + "/elsewhere");
  EXPECT_THAT(Files(), ElementsAre(Name(1)));
  if (uid_ != 0) return;
  ASSERT_EQ(chown(PathOf(1).c_str(), 65534, 65534), 0);
  EXPECT_THAT(Files(), IsEmpty()) << "it is another user's than its name says";
}

TEST_F(LeftTest, WhatIsLeasedIsNotWaitedFor) {
  Leave(1, Message());
  const OwnedFd own(open(PathOf(1).c_str(), O_RDWR));
  signal(SIGIO, SIG_IGN);  // that somebody else opens it
  if (fcntl(own.get(), F_SETLEASE, F_WRLCK) != 0) GTEST_SKIP() << "no leases on this file system";
  EXPECT_THAT(Files(), IsEmpty());
}

TEST_F(LeftTest, WhatIsNoMessageGoesAndIsCounted) {
  std::ofstream(PathOf(1)) << "\xff\xff\xff";
  std::ofstream(PathOf(2)) << std::string(LeftMessages::kMostFile + 1, 'x');
  std::ofstream{PathOf(3)};
  std::ofstream(directory_.path() + "/x.msg") << "not of that name";
  EXPECT_THAT(Files(), IsEmpty());
  EXPECT_EQ(damaged_, 3u);
  EXPECT_FALSE(fs::exists(PathOf(1)));
  EXPECT_TRUE(fs::exists(directory_.path() + "/x.msg"));
}

TEST_F(LeftTest, IsBoundedPerUser) {
  for (uint64_t i = 0; i < LeftMessages::kMostOfUser + 3; ++i) Leave(i, Message());
  EXPECT_THAT(Files(), SizeIs(LeftMessages::kMostOfUser));
}

TEST_F(LeftTest, OneAtATimeSends) {
  OwnedFd lock = messages_.Lock(uid_);
  ASSERT_TRUE(lock);
  EXPECT_FALSE(messages_.Lock(uid_));
  bool none = true;
  EXPECT_FALSE(messages_.LockOf(uid_, none));
  EXPECT_FALSE(none);
  lock.Reset();
  EXPECT_TRUE(messages_.LockOf(uid_, none));
  EXPECT_FALSE(messages_.LockOf(uid_ + 1, none));
  EXPECT_TRUE(none);
}

class LeftSenderTest : public LeftTest {
 protected:
  static std::shared_ptr<const NotifyConfig> Config(const std::string& more = "") {
    NotifyOutcome outcome = ParseNotifyConfig(R"(
per_user_per_hour: 2
channels:
  - {name: hook, kind: webhook, url: "http://127.0.0.1:1/x"}
  - {name: secret, kind: slack, url_file: /nonexistent/url}
rules: [{channels: [hook]}]
)" + more,
                                              "test");
    EXPECT_THAT(outcome.problems, IsEmpty());
    return std::make_shared<const NotifyConfig>(outcome.config);
  }
  LeftSender Sender() { return LeftSender(Config(), messages_, {uid_, "lena"}); }
  const LeftSender::Now now_{Timestamp{Seconds(10'000).ns}, kNow};
};

TEST_F(LeftSenderTest, FindsTheChannelsAndKeepsWhatIsNotTaken) {
  Leave(1, Message());
  LeftSender sender = Sender();
  sender.Look(now_);
  EXPECT_EQ(sender.pending(), 1u);
  const LeftSender::Now later{now_.t + Seconds(2), kNow + Seconds(2).ns};
  EXPECT_TRUE(sender.SendOne(later)) << "it is tried; nobody listens at that port";
  EXPECT_EQ(sender.pending(), 1u);
  EXPECT_THAT(sender.trouble(), HasSubstr("channel hook"));
  EXPECT_FALSE(sender.HasNew());
  const auto left = messages_.Read(uid_, damaged_);
  ASSERT_THAT(left, SizeIs(1));
  EXPECT_TRUE(left[0].message.addressed());
}

TEST_F(LeftSenderTest, WhatNobodyWantsToKnowGoes) {
  proto::SpooledNotification message = Message();
  message.mutable_notification()->set_status(Notification::COMPLETED);
  Leave(1, message);
  proto::SpooledNotification old = Message("8842");
  old.set_spooled_ns(kNow - LeftMessages::kMostAgeNs - 1);
  Leave(2, old);
  LeftSender sender = Sender();
  sender.Look(now_);
  EXPECT_EQ(sender.pending(), 0u);
  EXPECT_THAT(Files(), IsEmpty());
}

TEST_F(LeftSenderTest, WhatIsRootsToSendStays) {
  proto::SpooledNotification message = Message();
  message.set_wish("secret");
  Leave(1, message);
  LeftSender sender = Sender();
  sender.Look(now_);
  EXPECT_EQ(sender.pending(), 1u);
  EXPECT_EQ(sender.kept_back(), 1u);
  EXPECT_THAT(sender.trouble(), HasSubstr("/nonexistent/url"));
  EXPECT_THAT(Files(), SizeIs(1));
}

TEST_F(LeftSenderTest, OfAStepTheFirstTells) {
  proto::SpooledNotification message = Message();
  message.set_step("8841.0..");
  for (uint64_t i = 0; i < 3; ++i) Leave(i, message);
  LeftSender sender = Sender();
  sender.Look(now_);
  EXPECT_EQ(sender.pending(), 1u);
  EXPECT_THAT(Files(), SizeIs(1));
  Leave(7, message);
  LeftSender other = Sender();  // of a wrapper that ends later
  other.Look(now_);
  EXPECT_EQ(other.pending(), 1u) << "the first, still";
}

TEST_F(LeftSenderTest, LimitsHoldAcrossProcesses) {
  for (int i = 0; i < 2; ++i)
    messages_.AddNote(uid_, "sent " + std::to_string(kNow - Seconds(60).ns) + " hook");
  Leave(1, Message());
  LeftSender sender = Sender();
  sender.Look(now_);
  const LeftSender::Now later{now_.t + Seconds(2), kNow + Seconds(2).ns};
  EXPECT_FALSE(sender.SendOne(later)) << "two were sent within the hour";
  EXPECT_EQ(sender.NextDue(later.t), now_.t + Seconds(3540));
}

TEST(TakeClaim, IsOfItsUserAndShort) {
  Notification n = Message().notification();
  n.set_user("root");
  n.set_uid(0);
  n.set_what(std::string(5000, 'x') + "\r\nBcc: all@example.org");
  for (int i = 0; i < 1000; ++i) n.add_shows("again");
  const auto claim = TakeClaim(n, 1000);
  ASSERT_TRUE(claim);
  EXPECT_EQ(claim->uid(), 1000);
  EXPECT_EQ(claim->user(), "");
  EXPECT_LE(claim->what().size(), 400u);
  EXPECT_LE(claim->shows_size(), 64);
  EXPECT_EQ(claim->id(), n.id()) << "whoever sends it, it is the same message";
  EXPECT_THAT(claim->reported_by(), HasSubstr("without a daemon"));
}

TEST(TakeClaim, NamesNoOtherThreadAndNoOtherUser) {
  Notification n = Message().notification();
  n.set_id("rs.8842.1764276656000.n1");
  EXPECT_FALSE(TakeClaim(n, 1000)) << "of another job";
  n.set_id("rs.8841.1\r\nBcc: x@y");
  EXPECT_FALSE(TakeClaim(n, 1000));
  EXPECT_FALSE(TakeClaim(Message("run-1001-0123abcd").notification(), 1000));
  EXPECT_TRUE(TakeClaim(Message("run-1000-0123abcd").notification(), 1000));
}

TEST_F(LeftTest, ADaemonTakesItOver) {
  TemporaryDirectory state;
  const std::string folder = state.path() + "/notify";
  NotifyOutcome outcome = ParseNotifyConfig(R"(
channels: [{name: a, kind: webhook, url: "http://127.0.0.1:1/x"}, {name: b, kind: webhook, url: "http://127.0.0.1:1/x"}]
rules: [{channels: [a, b]}]
)",
                                            "test");
  proto::SpooledNotification message = Message();
  message.set_addressed(true);  // the user's sender has sent it through a
  message.add_deliveries()->set_channel("b");
  message.add_deliveries()->set_channel("never");
  Leave(1, message);
  EventLoop loop;
  Logger log("error", "logfmt");
  Notifier notifier(loop, log, outcome.config, {folder, "n1", directory_.path()});
  ASSERT_TRUE(notifier.Open(kNow, Seconds(3600)).ok());
  {
    const OwnedFd lock = messages_.Lock(uid_);
    notifier.Tick(kNow + Seconds(60).ns);
    notifier.Tick(kNow + Seconds(61).ns);
    EXPECT_THAT(Files(), SizeIs(1)) << "the user's sender is at it";
  }
  int64_t wall_ns = kNow + Seconds(100).ns;
  RunUntil(loop, [&] {
    notifier.Tick(wall_ns += Seconds(31).ns);
    return Files().empty();
  });
  size_t damaged = 0;
  const auto waiting = NotifySpool(folder).Messages(damaged);
  ASSERT_THAT(waiting, SizeIs(1));
  ASSERT_EQ(waiting[0].message.deliveries_size(), 1);
  EXPECT_EQ(waiting[0].message.deliveries(0).channel(), "b");
  EXPECT_EQ(waiting[0].message.notification().uid(), uid_);
}

}  // namespace
}  // namespace rankscope::exporter::notify
