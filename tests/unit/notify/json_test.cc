// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/notify/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/unit/notify/sample.h"

namespace rankscope::exporter::notify {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

const ReportOptions kOptions{"http://n1:10177", false};

TEST(Alerts, OfAnEndIsOverWithinTheHour) {
  const Notification n = SampleNotification();
  const json alerts = json::parse(RenderAlerts({&n}, kOptions));
  ASSERT_EQ(alerts.size(), 1u);
  EXPECT_EQ(alerts[0]["labels"]["alertname"], "RankscopeJobVerdict");
  EXPECT_EQ(alerts[0]["labels"]["job_id"], "8841");
  EXPECT_EQ(alerts[0]["labels"]["severity"], "warning") << "its owner's to mend";
  EXPECT_EQ(alerts[0]["startsAt"], "2026-11-27T18:45:51.000Z");
  EXPECT_EQ(alerts[0]["endsAt"], "2026-11-27T21:50:56.000Z");
  EXPECT_EQ(alerts[0]["generatorURL"], "http://n1:10177/job/8841");
}

TEST(Alerts, WhatHungIsResolvedByItsEnd) {
  Notification n = SampleNotification();
  n.set_told(Notification::HUNG);
  n.set_told_code("C2");
  n.set_told_severity("critical");
  n.set_told_domain("unknown");
  const json alerts = json::parse(RenderAlerts({&n}, kOptions));
  ASSERT_EQ(alerts.size(), 2u);
  EXPECT_EQ(alerts[0]["labels"]["code"], "C2");
  EXPECT_EQ(alerts[0]["endsAt"], "2026-11-27T20:50:56.000Z");
  EXPECT_EQ(alerts[1]["labels"]["code"], "A2");
  n.set_status(Notification::RECOVERED);
  EXPECT_EQ(json::parse(RenderAlerts({&n}, kOptions)).size(), 1u);
}

// As RankscopeJobInfrastructureFault, RankscopeJobHangs and RankscopeJobFailed have it.
TEST(Alerts, PageForWhatOperatorsCanMendOrSave) {
  const auto severity = [](const std::string& domain, Notification::Status status,
                           const std::string& of_verdict = "critical") {
    Notification n = SampleNotification();
    n.set_domain(domain);
    n.set_status(status);
    n.set_severity(of_verdict);
    return json::parse(RenderAlerts({&n}, kOptions))[0]["labels"]["severity"].get<std::string>();
  };
  EXPECT_EQ(severity("workload", Notification::FAILED), "warning");
  EXPECT_EQ(severity("unknown", Notification::FAILED), "warning");
  EXPECT_EQ(severity("workload", Notification::DIVERGED), "warning");
  EXPECT_EQ(severity("infrastructure", Notification::FAILED), "critical");
  EXPECT_EQ(severity("workload", Notification::HUNG), "critical");
  EXPECT_EQ(severity("infrastructure", Notification::FAILED, "warning"), "warning");
  EXPECT_EQ(severity("scheduler", Notification::STOPPED, "info"), "info");
}

TEST(Alerts, AHangThatHasEndedPagesNobodyAnyMore) {
  Notification n = SampleNotification();
  n.set_code("C2");
  n.set_domain("unknown");
  n.set_told(Notification::HUNG);
  n.set_told_code("C2");
  n.set_told_severity("critical");
  n.set_told_domain("unknown");
  const json alerts = json::parse(RenderAlerts({&n}, kOptions));
  ASSERT_EQ(alerts.size(), 2u) << "labels are an alert's identity";
  EXPECT_EQ(alerts[0]["labels"]["severity"], "critical");
  EXPECT_EQ(alerts[0]["endsAt"], "2026-11-27T20:50:56.000Z");
  EXPECT_EQ(alerts[1]["labels"]["severity"], "warning");
  n.set_domain("infrastructure");
  n.set_told_domain("infrastructure");
  EXPECT_EQ(json::parse(RenderAlerts({&n}, kOptions)).size(), 1u) << "it is the same";
}

TEST(Alerts, OfASuccessThereAreNone) {
  Notification n = SampleNotification();
  n.set_status(Notification::COMPLETED);
  EXPECT_EQ(RenderAlerts({&n}, kOptions), "[]");
}

TEST(Webhook, HasEveryFact) {
  const Notification n = SampleNotification();
  const json hook = json::parse(RenderWebhook({&n}, kOptions));
  EXPECT_EQ(hook["schema"], 1);
  const json& one = hook["notifications"][0];
  EXPECT_EQ(one["status"], "failed");
  EXPECT_EQ(one["ranks"], json::array({1}));
  EXPECT_EQ(one["exit_code"], 1);
  EXPECT_EQ(one["step"], 5400);
  EXPECT_EQ(one["running"], false);
  EXPECT_FALSE(one.contains("log")) << "the channel may not quote it";
  EXPECT_TRUE(json::parse(RenderWebhook({&n}, {"", true}))["notifications"][0].contains("log"));
}

TEST(Chats, NobodyIsCalledByAJobsName) {
  Notification n = SampleNotification();
  n.set_job_id("<!channel> @everyone [x](http://evil) *b*");
  n.set_job_name("<https://evil|click>");
  const std::string slack = RenderSlack(MakeReport({&n}, kOptions));
  const json message = json::parse(slack);
  EXPECT_THAT(message["text"].get<std::string>(), Not(HasSubstr("<")));
  for (const json& block : message["blocks"]) {
    if (block["text"]["type"] == "plain_text") continue;
    EXPECT_THAT(block["text"]["text"].get<std::string>(), testing::StartsWith("<http://n1:10177/"));
    EXPECT_THAT(block["text"]["text"].get<std::string>(), Not(HasSubstr("!channel")));
  }
  const json teams = json::parse(RenderTeams(MakeReport({&n}, kOptions)));
  for (const json& block : teams["attachments"][0]["content"]["body"])
    EXPECT_EQ(block["type"], "RichTextBlock") << "Markdown means nothing in it";
}

TEST(Chats, NothingIsLongerThanTheyTake) {
  Notification n = SampleNotification();
  n.set_job_id(std::string(4000, 'j'));
  n.set_command("\xC3\xBC" + std::string(9000, 'c'));
  const json message = json::parse(RenderSlack(MakeReport({&n}, kOptions)));
  EXPECT_LE(message["blocks"][0]["text"]["text"].get<std::string>().size(), 150u);
  for (const json& block : message["blocks"])
    EXPECT_LE(block["text"]["text"].get<std::string>().size(), 4100u);
}

}  // namespace
}  // namespace rankscope::exporter::notify
