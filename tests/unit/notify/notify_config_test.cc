// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/config/notify_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rankscope::exporter {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(NotifyConfig, IsReadWhole) {
  const NotifyOutcome outcome = ParseNotifyConfig(R"(
link: https://status.example/
mail_domains: [example.org]
per_user_per_hour: 5
gather: 3s
array_wait: 5m
channels:
  - name: ops
    kind: email
    url: smtp://mail.example:587
    from: rankscope@example.org
    to: [ops@example.org]
    user: rankscope
    password_file: /etc/rankscope/mail.password
    log: true
    per_minute: 4
rules:
  - on: [failed, completed]
    channels: [ops]
)",
                                                  "n.yaml");
  EXPECT_THAT(outcome.problems, IsEmpty());
  EXPECT_EQ(outcome.config.link, "https://status.example");
  EXPECT_EQ(outcome.config.gather, Seconds(3));
  EXPECT_EQ(outcome.config.array_wait, Seconds(300));
  ASSERT_EQ(outcome.config.channels.size(), 1u);
  EXPECT_EQ(outcome.config.channels[0].starttls, "required");
  EXPECT_TRUE(outcome.config.channels[0].log);
  EXPECT_EQ(outcome.config.channels[0].per_minute, 4);
  ASSERT_EQ(outcome.config.rules.size(), 1u);
  EXPECT_THAT(outcome.config.rules[0].on, ElementsAre("failed", "completed"));
}

TEST(NotifyConfig, EveryMistakeHasItsLine) {
  const NotifyOutcome outcome = ParseNotifyConfig(R"(links: x
channels:
  - {name: Ops, kind: pager}
  - {name: a, kind: email, url: "http://x", from: "a b@c", to: ["x\r\nBcc: y@z"]}
  - {name: a, kind: slack, url: "https://hooks", url_file: /x, user: u}
  - {name: b, kind: webhook, per_minute: 0, url: "file:///etc/passwd"}
rules:
  - {channels: [none], on: [sometimes]}
  - {}
)",
                                                  "n.yaml");
  const std::string all = [&] {
    std::string text;
    for (const std::string& problem : outcome.problems) text += problem + '\n';
    return text;
  }();
  for (const char* part :
       {"n.yaml:1: notify: unknown key 'links'", "n.yaml:3: kind: 'pager' is not one of email",
        "n.yaml:4: from: not an address", "n.yaml:4: to: not an address", "smtp://HOST:PORT",
        "there are two of this name", "needs url or url_file, and only one",
        "per_minute: expected a whole number", "'file:///etc/passwd'",
        "on: 'sometimes' is not one of hung", "there is no channel 'none'",
        "rule: names no channel"})
    EXPECT_THAT(all, HasSubstr(part));
}

TEST(NotifyConfig, HostileFilesAreProblems) {
  for (const std::string& text :
       {std::string(100000, '['), std::string("a\0b", 3), std::string("channels: 3"),
        std::string("- a"), std::string("channels: [1, [2]]"), std::string("{{{"),
        std::string("rules: [{channels: {a: b}}]")})
    EXPECT_FALSE(ParseNotifyConfig(text, "n").problems.empty()) << text.substr(0, 20);
  EXPECT_THAT(ParseNotifyConfig("", "n").problems, IsEmpty());
}

TEST(NotifyConfig, UrlsArePrintedWithoutTheirSecrets) {
  EXPECT_EQ(MaskedUrl("https://hooks.slack.com/services/T0/B0/secret"),
            "https://hooks.slack.com/...");
  EXPECT_EQ(MaskedUrl("smtp://mail:25"), "smtp://mail:25");
  EXPECT_EQ(MaskedUrl("http://user:secret@host/x"), "http://...@host");
}

}  // namespace
}  // namespace rankscope::exporter
