// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/notify/news.h"

#include <gtest/gtest.h>

namespace rankscope::exporter::notify {
namespace {

rankscope::proto::Verdict Live(const std::string& code, const std::string& symptom,
                               const std::string& severity) {
  rankscope::proto::Verdict verdict;
  verdict.set_state(rankscope::proto::LIVE);
  verdict.mutable_attempt()->set_ordinal(1);
  verdict.set_code(code);
  verdict.mutable_triage()->set_symptom(symptom);
  verdict.mutable_triage()->set_severity(severity);
  verdict.set_confidence(0.85);
  return verdict;
}

rankscope::proto::Verdict Final(const std::string& code, const std::string& kind,
                                const std::string& severity = "critical") {
  rankscope::proto::Verdict verdict = Live(code, "", severity);
  verdict.set_state(rankscope::proto::FINAL);
  verdict.mutable_disposition()->set_kind(kind);
  return verdict;
}

proto::ToldJob Told(Notification::Status status, const std::string& code, bool final = false) {
  proto::ToldJob told;
  told.set_attempt(1);
  told.set_messages(1);
  told.set_status(status);
  told.set_code(code);
  told.set_final(final);
  return told;
}

Notification::Status Status(const rankscope::proto::Verdict& verdict,
                            const proto::ToldJob* told = nullptr) {
  const auto news = NewsOf(verdict, told, 1000);
  return news ? news->status : Notification::STATUS_UNSPECIFIED;
}

TEST(News, OfAJobThatNobodyKnows) {
  EXPECT_EQ(Status(Live("C2", "hang", "critical")), Notification::HUNG);
  EXPECT_EQ(Status(Live("E1", "wrong_result", "critical")), Notification::DIVERGED);
  EXPECT_EQ(Status(Live("A2", "one_rank_crashed", "critical")), Notification::STATUS_UNSPECIFIED);
  EXPECT_EQ(Status(Live("D3", "slow", "warning")), Notification::STATUS_UNSPECIFIED);
  EXPECT_EQ(Status(Live("G1", "healthy", "ok")), Notification::STATUS_UNSPECIFIED);
  EXPECT_EQ(Status(Final("A2", "failed")), Notification::FAILED);
  EXPECT_EQ(Status(Final("F3", "time_limit")), Notification::STOPPED);
  EXPECT_EQ(Status(Final("G1", "completed", "ok")), Notification::COMPLETED);
}

TEST(News, NobodyIsWokenForAGuess) {
  rankscope::proto::Verdict verdict = Live("E1", "wrong_result", "critical");
  verdict.set_confidence(0.55);
  EXPECT_EQ(Status(verdict), Notification::STATUS_UNSPECIFIED);
  verdict = Final("A1", "failed");
  verdict.set_confidence(0.35);
  EXPECT_EQ(Status(verdict), Notification::FAILED) << "that it failed is certain";
}

TEST(News, ARunThatEndedWellAndLearnedNothingDiverged) {
  rankscope::proto::Verdict verdict = Final("E1", "completed");
  verdict.mutable_triage()->set_symptom("wrong_result");
  EXPECT_EQ(Status(verdict), Notification::DIVERGED);
}

TEST(News, AHangIsToldOnceAndFollowed) {
  const proto::ToldJob told = Told(Notification::HUNG, "C2");
  EXPECT_EQ(Status(Live("C2", "hang", "critical"), &told), Notification::STATUS_UNSPECIFIED);
  EXPECT_EQ(Status(Live("G1", "healthy", "ok"), &told), Notification::RECOVERED);
  EXPECT_EQ(Status(Live("U0", "", "warning"), &told), Notification::STATUS_UNSPECIFIED);
  EXPECT_EQ(Status(Final("C2", "cancelled"), &told), Notification::STOPPED);
  const auto other = NewsOf(Live("X21", "hang", "critical"), &told, 1000);
  ASSERT_TRUE(other);
  EXPECT_TRUE(other->corrects);
}

TEST(News, WhatDiesIsNoRecovery) {
  const proto::ToldJob told = Told(Notification::HUNG, "C2");
  EXPECT_EQ(Status(Live("A2", "one_rank_crashed", "critical"), &told),
            Notification::STATUS_UNSPECIFIED);
}

TEST(News, AnEndIsToldOnceUnlessItIsAnother) {
  const proto::ToldJob told = Told(Notification::FAILED, "A2", true);
  EXPECT_FALSE(NewsOf(Final("A2", "failed"), &told, 1000));
  const auto news = NewsOf(Final("F1", "node_lost"), &told, 1000);
  ASSERT_TRUE(news);
  EXPECT_TRUE(news->corrects);
}

TEST(News, AnotherAttemptIsToldAgain) {
  proto::ToldJob told = Told(Notification::FAILED, "A2", true);
  told.set_attempt(0);
  EXPECT_EQ(Status(Final("A2", "failed"), &told), Notification::FAILED);
}

TEST(News, WhoHasCancelledHisOwnJobKnows) {
  rankscope::proto::Verdict verdict = Final("X20", "cancelled", "info");
  verdict.mutable_disposition()->set_uid(1000);
  EXPECT_TRUE(NewsOf(verdict, nullptr, 1000)->own);
  EXPECT_FALSE(NewsOf(verdict, nullptr, 1001)->own);
  const proto::ToldJob told = Told(Notification::HUNG, "C2");
  EXPECT_FALSE(NewsOf(verdict, &told, 1000)->own) << "the others have heard of the hang";
}

TEST(News, WhatFlapsIsToldAFewTimes) {
  proto::ToldJob told = Told(Notification::RECOVERED, "G1");
  told.set_messages(6);
  EXPECT_FALSE(NewsOf(Live("C2", "hang", "critical"), &told, 1000));
  EXPECT_TRUE(NewsOf(Final("C2", "failed"), &told, 1000));
}

}  // namespace
}  // namespace rankscope::exporter::notify
