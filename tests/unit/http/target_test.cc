// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/http/target.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rankscope::http {
namespace {

using testing::HasSubstr;

TEST(PercentDecode, IsStrict) {
  EXPECT_EQ(PercentDecode("a%20b%2fC", false), "a b/C");
  EXPECT_EQ(PercentDecode("a+b", false), "a+b");
  EXPECT_EQ(PercentDecode("a+b", true), "a b");
  EXPECT_EQ(PercentDecode("%2B", true), "+");
  EXPECT_EQ(PercentDecode("%25", false), "%");
  EXPECT_EQ(PercentDecode("%2541", false), "%41");  // decoded once
  EXPECT_EQ(PercentDecode("%C3%A4", false), "\xC3\xA4");
  for (const char* bad : {"%", "%4", "a%", "%zz", "%4g", "%%41", "% 41"}) {
    EXPECT_EQ(PercentDecode(bad, false), std::nullopt) << bad;
  }
  for (const char* control : {"%00", "a%0d%0ab", "%7F", "\x01"}) {
    EXPECT_EQ(PercentDecode(control, false), std::nullopt) << control;
  }
}

TEST(DecodePath, TakesOriginAndAbsoluteForm) {
  EXPECT_EQ(*DecodePath("/metrics"), "/metrics");
  EXPECT_EQ(*DecodePath("/%6detrics"), "/metrics");
  EXPECT_EQ(*DecodePath("http://host:9/metrics"), "/metrics");
  EXPECT_EQ(*DecodePath("http://host"), "/");
  for (const char* bad : {"", "*", "metrics", "ftp://h/metrics", "/%"}) {
    EXPECT_FALSE(DecodePath(bad)) << bad;
  }
}

TEST(ParseQuery, KeepsOrderAndRepeats) {
  const auto parameters = ParseQuery("a=1&b&a=%26&&c=x=y");
  ASSERT_TRUE(parameters);
  EXPECT_EQ(*parameters, (Parameters{{"a", "1"}, {"b", ""}, {"a", "&"}, {"c", "x=y"}}));
  EXPECT_TRUE(ParseQuery("")->empty());
  EXPECT_FALSE(ParseQuery("a=%"));
  EXPECT_FALSE(ParseQuery("%=a"));
  std::string many;
  for (int i = 0; i < 65; ++i) many.append("a=1&");
  EXPECT_FALSE(ParseQuery(many));
}

TEST(JobIdOf, KnowsTheAlias) {
  EXPECT_EQ(**JobIdOf({{"job_id", "8841"}}), "8841");
  EXPECT_EQ(**JobIdOf({{"x", "y"}, {"slurm_job_id", "8841"}}), "8841");
  EXPECT_EQ(**JobIdOf({{"job_id", "1"}, {"slurm_job_id", "1"}}), "1");
  EXPECT_EQ(*JobIdOf({{"jobid", "1"}}), std::nullopt);
  EXPECT_THAT(JobIdOf({{"job_id", "1"}, {"slurm_job_id", "2"}}).error(), HasSubstr("'1' and '2'"));
  EXPECT_THAT(JobIdOf({{"job_id", ""}}).error(), HasSubstr("job_id is empty"));
}

TEST(ParseWallTime, SecondsAndRfc3339) {
  constexpr int64_t kSecond = 1'000'000'000;
  EXPECT_EQ(ParseWallTime("0"), 0);
  EXPECT_EQ(ParseWallTime("1795444481"), 1795444481 * kSecond);
  EXPECT_EQ(ParseWallTime("1795444481.25"), 1795444481 * kSecond + 250'000'000);
  EXPECT_EQ(ParseWallTime("2026-11-23T14:34:41Z"), 1795444481 * kSecond);
  EXPECT_EQ(ParseWallTime("2026-11-23T15:34:41.000000001+01:00"), 1795444481 * kSecond + 1);
  EXPECT_EQ(ParseWallTime("2026-11-23T09:04:41-05:30"), 1795444481 * kSecond);
  EXPECT_EQ(ParseWallTime("2024-02-29T00:00:00Z"), 1709164800 * kSecond);
  for (const char* text :
       {"", "-1", "yesterday", "1795444481s", "1e9", "99999999999", "2026-11-23",
        "2026-11-23T14:34:41", "2026-13-01T00:00:00Z", "2026-02-30T00:00:00Z",
        "2026-11-23T24:00:00Z", "2026-11-23T14:34:61Z", "2026-11-23 14:34:41Z",
        "2026-11-23T14:34:41Zx", "1969-12-31T23:59:59Z", "1795444481.", "2026-11-23T14:34:41+1"}) {
    EXPECT_FALSE(ParseWallTime(text)) << text;
  }
}

}  // namespace
}  // namespace rankscope::http
