// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/notify/rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/notify/sample.h"

namespace rankscope::exporter::notify {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

NotifyConfig Config(const std::string& rules) {
  NotifyOutcome outcome = ParseNotifyConfig(R"(
mail_domains: [example.org]
channels:
  - {name: ops, kind: email, url: "smtp://127.0.0.1:25", from: a@example.org, to: [ops@example.org]}
  - {name: hook, kind: webhook, url: "http://127.0.0.1:9/x", jobs: false}
  - {name: chat, kind: slack, url: "http://127.0.0.1:9/y"}
)" + rules,
                                            "test");
  EXPECT_THAT(outcome.problems, IsEmpty());
  return outcome.config;
}

std::vector<std::string> To(const NotifyConfig& config, const Notification& n,
                            const Addressees& addressees = {}) {
  std::vector<std::string> names;
  for (const proto::Delivery& delivery : DeliveriesOf(config, n, addressees))
    names.push_back(delivery.channel() + (delivery.address().empty() ? "" : ":") +
                    delivery.address());
  return names;
}

TEST(Rules, AllThatIsListedMustHold) {
  const NotifyConfig config = Config(R"(
rules:
  - {domains: [workload], severities: [critical], families: [A2], partitions: [gpu], channels: [ops]}
  - {families: [signal_kill], users: [lena, "77"], channels: [hook]}
)");
  Notification n = SampleNotification();
  EXPECT_THAT(To(config, n), ElementsAre("ops"));
  EXPECT_THAT(To(config, n, {.user_name = "lena"}), ElementsAre("ops", "hook"));
  n.set_uid(77);
  n.set_partition("cpu");
  EXPECT_THAT(To(config, n), ElementsAre("hook"));
  n.set_code("F3");
  n.set_family("timeout");
  EXPECT_THAT(To(config, n), IsEmpty());
}

TEST(Rules, AUsersNameIsNotWhatHisJobCallsHim) {
  const NotifyConfig config = Config("rules: [{users: [lena], channels: [ops]}]\n");
  EXPECT_THAT(To(config, SampleNotification(), {.user_name = "eve"}), IsEmpty());
}

TEST(Rules, SuccessIsToldOnRequest) {
  Notification n = SampleNotification();
  n.set_status(Notification::COMPLETED);
  EXPECT_THAT(To(Config("rules: [{channels: [ops]}]\n"), n), IsEmpty());
  EXPECT_THAT(To(Config("rules: [{on: [completed], channels: [ops]}]\n"), n), ElementsAre("ops"));
  EXPECT_THAT(To(Config(""), n, {.wish = "ops"}), IsEmpty());
  EXPECT_THAT(To(Config(""), n, {.wish = "ops,completed"}), ElementsAre("ops"));
}

TEST(Rules, TheEndGoesWhereTheBeginningWent) {
  const NotifyConfig config = Config("rules: [{on: [hung], channels: [ops]}]\n");
  proto::ToldJob told;
  told.add_deliveries()->set_channel("hook");
  told.add_deliveries()->set_channel("gone");
  EXPECT_THAT(To(config, SampleNotification(), {.told = &told}), ElementsAre("hook"));
}

TEST(Wish, NamesChannelsAndAddressesAndNoUrl) {
  const NotifyConfig config = Config("");
  const Notification n = SampleNotification();
  EXPECT_THAT(To(config, n, {.wish = "chat, lena@example.org"}),
              ElementsAre("chat", "ops:lena@example.org"));
  EXPECT_THAT(To(config, n, {.wish = "mail:lena@example.org"}),
              ElementsAre("ops:lena@example.org"));
  for (const char* refused :
       {"hook", "https://evil.example/x", "http://127.0.0.1:9/x", "lena@evil.example",
        "lena@example.org.evil.example", "a@b@example.org", "\"x\"@example.org",
        "lena\r\nBcc:x@example.org", "nobody", "@example.org", "lena@", "mail:lena@evil.example",
        "mail:chat", "mail:mail:lena@example.org"})
    EXPECT_THAT(To(config, n, {.wish = refused}), IsEmpty()) << refused;
}

TEST(Wish, IsBounded) {
  std::string many;
  for (int i = 0; i < 1000; ++i) many += "u" + std::to_string(i) + "@example.org,";
  EXPECT_EQ(ReadWish(Config(""), many).deliveries.size(), 8u);
}

}  // namespace
}  // namespace rankscope::exporter::notify
