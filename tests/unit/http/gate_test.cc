// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/http/gate.h"

#include <gtest/gtest.h>

#include <string>

namespace rankscope::http {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// "secret", at the least cost there is.
constexpr char kHash[] = "$2y$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW";

class GateTest : public testing::Test {
 protected:
  Passage Ask(const std::string& authorization, ClientFacts client = {7, true, false, {}}) {
    Request request;
    if (!authorization.empty()) request.headers.push_back({"Authorization", authorization});
    return gate_.Ask(&config_, request, client, now_);
  }

  WebConfig config_;
  GateTime now_ = GateTime() + seconds(1000);
  Gate gate_{{{true, "ann", Role::kVerdict}, {false, "a.example", Role::kLog}}};
};

TEST(BasicCredentials, AreReadStrictly) {
  using Pair = std::pair<std::string, std::string>;
  EXPECT_EQ(BasicCredentials("Basic YW5uOnNlY3JldA=="), Pair("ann", "secret"));
  EXPECT_EQ(BasicCredentials("bAsIc YW5uOmE6Yg=="), Pair("ann", "a:b"));
  EXPECT_EQ(BasicCredentials("Basic OmE="), Pair("", "a"));
  for (const char* bad :
       {"", "Basic", "Basic ", "Basic YW5u", "Basic YW5uOnNlY3JldA=", "Basic !!!!",
        "Bearer YW5uOnNlY3JldA==", "Basic YW5uOgBh", "Basic  YW5uOmE6Yg=="}) {
    EXPECT_FALSE(BasicCredentials(bad)) << bad;
  }
}

TEST_F(GateTest, WithoutUsersTheConnectionSaysWhoItIs) {
  EXPECT_EQ(gate_.Ask(nullptr, {}, {7, false, false, {}}, now_).role, Role::kLog);
  EXPECT_EQ(gate_.Ask(nullptr, {}, {7, true, false, {}}, now_).role, Role::kVerdict);
  EXPECT_EQ(Ask("").role, Role::kVerdict);
  EXPECT_EQ(Ask("", {7, true, true, {"a.example"}}).role, Role::kLog);
  EXPECT_EQ(Ask("", {7, true, true, {"b.example"}}).role, Role::kMetrics);
}

TEST_F(GateTest, APasswordIsCheckedOnceAndAWrongOneEachTime) {
  config_.users = {{"ann", kHash}};
  EXPECT_EQ(Ask("").what, Passage::What::kEnter);
  EXPECT_EQ(Ask("").role, Role::kNone);
  const Passage right = Ask("Basic YW5uOnNlY3JldA==");
  ASSERT_EQ(right.what, Passage::What::kCheckPassword);
  EXPECT_EQ(gate_.Settle(right.credentials, true, {7, true, false, {}}), Role::kVerdict);
  EXPECT_EQ(Ask("Basic YW5uOnNlY3JldA==").what, Passage::What::kEnter);
  EXPECT_EQ(Ask("Basic YW5uOnNlY3JldA==").role, Role::kVerdict);
  for (int i = 0; i < 2; ++i) {
    const Passage wrong = Ask("Basic YW5uOmE6Yg==");
    ASSERT_EQ(wrong.what, Passage::What::kCheckPassword);
    EXPECT_EQ(gate_.Settle(wrong.credentials, false, {7, true, false, {}}), Role::kNone);
  }
  EXPECT_EQ(gate_.wrong(), 2);
  // Another hash of the same user is another password.
  config_.users = {{"ann", std::string(kHash).replace(30, 1, "Z")}};
  EXPECT_EQ(Ask("Basic YW5uOnNlY3JldA==").what, Passage::What::kCheckPassword);
}

TEST_F(GateTest, GuessingIsLimitedPerNetwork) {
  config_.users = {{"ann", kHash}};
  int checked = 0;
  for (int i = 0; i < 30; ++i)
    checked += Ask("Basic YW5uOmE6Yg==").what == Passage::What::kCheckPassword ? 1 : 0;
  EXPECT_EQ(checked, 10);
  EXPECT_EQ(Ask("Basic YW5uOmE6Yg==", {8, true, false, {}}).what, Passage::What::kCheckPassword);
  EXPECT_EQ(Ask("").what, Passage::What::kEnter) << "who guesses nothing is told to";
  now_ += seconds(1);
  EXPECT_EQ(Ask("Basic YW5uOmE6Yg==").what, Passage::What::kCheckPassword);
  EXPECT_EQ(Ask("Basic YW5uOmE6Yg==").what, Passage::What::kTooMany);
}

TEST_F(GateTest, TheRateLimitIsThatOfTheFile) {
  config_.rate_limit = WebConfig::RateLimit{Milliseconds(100), 3};
  const auto entered = [this] {
    int count = 0;
    for (int i = 0; i < 10; ++i) count += Ask("").what == Passage::What::kEnter ? 1 : 0;
    return count;
  };
  EXPECT_EQ(entered(), 3);
  now_ += milliseconds(100);
  EXPECT_EQ(entered(), 1);
  now_ += seconds(10);
  EXPECT_EQ(entered(), 3);
  config_.rate_limit->burst = 5;
  EXPECT_EQ(entered(), 5);
}

TEST(Gate, BcryptDecides) {
  Credentials credentials{"ann", "secret", kHash, true};
  EXPECT_TRUE(Gate::Matches(credentials));
  credentials.known = false;
  EXPECT_FALSE(Gate::Matches(credentials)) << "the hash is another's";
  credentials.known = true;
  credentials.password = "Secret";
  EXPECT_FALSE(Gate::Matches(credentials));
  credentials.password = std::string(600, 'x');
  EXPECT_FALSE(Gate::Matches(credentials));
}

}  // namespace
}  // namespace rankscope::http
