// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/notify/outbox.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/notify/sample.h"

namespace rankscope::exporter::notify {
namespace {

constexpr Timestamp kStart{int64_t{1000} * 1'000'000'000};

class OutboxTest : public testing::Test {
 protected:
  OutboxTest() {
    NotifyOutcome outcome = ParseNotifyConfig(R"(
per_user_per_hour: 3
channels:
  - {name: ops, kind: email, url: "smtp://127.0.0.1:25", from: a@example.org, per_minute: 5}
  - {name: hook, kind: webhook, url: "http://127.0.0.1:9/x"}
)",
                                              "test");
    box_ =
        std::make_unique<Outbox>(std::make_shared<const NotifyConfig>(std::move(outcome.config)));
  }
  void Add(const std::string& file, Timestamp now, int64_t uid = 1, const std::string& array = {},
           const std::string& channel = "ops") {
    auto n = std::make_shared<Notification>(SampleNotification());
    n->set_uid(uid);
    n->set_array_job_id(array);
    proto::Delivery delivery;
    delivery.set_channel(channel);
    EXPECT_TRUE(box_->Add({file, std::move(n), delivery, {}}, now));
  }
  // Files of the message that is due; empty: none is.
  std::vector<std::string> Send(Timestamp now) {
    const auto message = box_->Next(now);
    if (!message) return {};
    box_->Sent(*message, now);
    std::vector<std::string> files;
    for (const auto& item : message->items) files.push_back(item.file);
    return files;
  }
  std::unique_ptr<Outbox> box_;
};

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

TEST_F(OutboxTest, WaitsForOthersOfTheSameIncident) {
  for (int i = 0; i < 200; ++i) Add(std::to_string(i), kStart, i);
  EXPECT_THAT(Send(kStart), IsEmpty());
  EXPECT_EQ(box_->NextDue(kStart), kStart + Seconds(1));
  Add("late", kStart + Milliseconds(900), 7);
  EXPECT_THAT(Send(kStart + Seconds(1)), SizeIs(201)) << "one message";
  EXPECT_EQ(box_->pending(), 0u);
}

TEST_F(OutboxTest, AnotherConfigurationKeepsTheLimits) {
  Timestamp now = kStart;
  for (const char* file : {"a", "b", "c"}) {
    Add(file, now, 1);
    now = now + Seconds(2);
    EXPECT_THAT(Send(now), SizeIs(1));
  }
  Add("d", now, 1);
  NotifyOutcome other = ParseNotifyConfig(R"(
per_user_per_hour: 3
channels:
  - {name: hook, kind: webhook, url: "http://127.0.0.1:9/x"}
  - {name: ops, kind: email, url: "smtp://127.0.0.1:26", from: a@example.org, per_minute: 5}
)",
                                          "test");
  box_->SetConfig(std::make_shared<const NotifyConfig>(std::move(other.config)));
  EXPECT_EQ(box_->pending(), 0u) << "the spool has it";
  Add("d", now, 1);
  EXPECT_THAT(Send(now + Seconds(10)), IsEmpty()) << "three within the hour";
  EXPECT_THAT(Send(now + Seconds(3600)), ElementsAre("d"));
}

TEST_F(OutboxTest, TwoJobsAreTwoMessages) {
  Add("a", kStart, 1);
  Add("b", kStart, 2);
  EXPECT_THAT(Send(kStart + Seconds(1)), ElementsAre("a"));
  EXPECT_THAT(Send(kStart + Seconds(1)), ElementsAre("b"));
}

TEST_F(OutboxTest, ALimitMakesAListAndLosesNothing) {
  Timestamp now = kStart;
  for (int i = 0; i < 5; ++i) {
    Add(std::to_string(i), now, i);
    now = now + Seconds(2);
    EXPECT_THAT(Send(now), SizeIs(1));
  }
  for (int i = 5; i < 15; ++i) Add(std::to_string(i), now, i);
  EXPECT_THAT(Send(now + Seconds(2)), IsEmpty());
  EXPECT_THAT(Send(kStart + Seconds(62)), SizeIs(10));
}

TEST_F(OutboxTest, OneUserDoesNotSilenceAnother) {
  Timestamp now = kStart;
  for (int i = 0; i < 3; ++i) {
    Add(std::to_string(i), now, 1);
    now = now + Seconds(60);
    EXPECT_THAT(Send(now), SizeIs(1));
  }
  Add("loud", now, 1);
  Add("other", now, 2);
  now = now + Seconds(2);
  EXPECT_THAT(Send(now), ElementsAre("other"));
  EXPECT_THAT(Send(now), IsEmpty());
  EXPECT_THAT(Send(now + Seconds(3600)), ElementsAre("loud"));
}

TEST_F(OutboxTest, ArraysAreToldOnceAndThenAsLists) {
  Add("1", kStart, 1, "77");
  EXPECT_THAT(Send(kStart + Seconds(1)), ElementsAre("1"));
  Add("2", kStart + Seconds(5), 2, "77");
  Add("3", kStart + Seconds(50), 3, "77");
  EXPECT_THAT(Send(kStart + Seconds(60)), IsEmpty());
  EXPECT_THAT(Send(kStart + Seconds(601)), ElementsAre("2", "3"));
}

TEST_F(OutboxTest, WhoRefusesWaitsLongerAndLonger) {
  Add("a", kStart);
  Add("b", kStart, 1, {}, "hook");
  Timestamp now = kStart + Seconds(1);
  auto message = box_->Next(now);
  ASSERT_TRUE(message);
  box_->Failed(*message, now);
  EXPECT_THAT(Send(now), SizeIs(1)) << "the other channel";
  int64_t waits = 0;
  for (const int seconds : {5, 10, 20, 40}) {
    EXPECT_FALSE(box_->Next(now + Seconds(seconds) + Milliseconds(-1)));
    now = now + Seconds(seconds);
    message = box_->Next(now);
    ASSERT_TRUE(message) << seconds;
    EXPECT_THAT(box_->Failed(*message, now), IsEmpty());
    ++waits;
  }
  EXPECT_EQ(waits, 4);
  now = kStart + Outbox::kGiveUp + Seconds(1);
  message = box_->Next(now);
  ASSERT_TRUE(message);
  EXPECT_THAT(box_->Failed(*message, now), SizeIs(1));
  EXPECT_EQ(box_->pending(), 0u);
}

TEST_F(OutboxTest, AChannelThatIsGoneTakesNothing) {
  proto::Delivery delivery;
  delivery.set_channel("gone");
  EXPECT_FALSE(box_->Add({"x", std::make_shared<Notification>(), delivery, {}}, kStart));
}

}  // namespace
}  // namespace rankscope::exporter::notify
