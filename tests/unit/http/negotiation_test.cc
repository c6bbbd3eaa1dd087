// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/http/negotiation.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

namespace rankscope::http {
namespace {

constexpr std::array<Offer, 3> kOffers = {
    {{"application/json"}, {"text/plain"}, {"application/x-protobuf"}}};

TEST(Choose, FollowsTheClient) {
  const struct {
    const char* accept;
    size_t chosen;
  } kCases[] = {
      {"", 0},
      {"*/*", 0},
      {"text/plain", 1},
      {"TEXT/Plain;charset=utf-8", 1},
      {"application/x-protobuf", 2},
      {"text/plain, application/json", 1},  // a tie goes to the client's order
      {"application/json, text/plain", 0},
      {"text/plain;q=0.5, application/json;q=0.4", 1},
      {"text/plain ; q=0.4 , */* ; q=0.5", 0},
      {"text/*", 1},
      {"text/*;q=0.9, application/json;q=0.8", 1},
      {"*/*, application/json;q=0", 1},  // the most specific range decides: json is refused
      {"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", 0},
      // Nothing fits, or makes sense: the fallback, never 406.
      {"image/png", 0},
      {"text/plain;q=0", 0},
      {";;;,,q=1,/", 0},
      {"text/plain;q=abc", 1},
      {"text/plain;q=7", 1},
      {"text/plainer", 0},
      {"text", 0},
      {"text/", 0},
      {"text /plain", 0},
      {"te\x01t/plain, text/plain;q=0.1", 1},
      {"text/html;x=\"a,text/plain\", application/x-protobuf;q=0.2", 2},  // a comma in quotes
      {"application/x-protobuf;x=\"\\\",q=0", 2},                         // a quote that never ends
      {"application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1", 1},
  };
  for (const auto& one : kCases)
    EXPECT_EQ(Choose(one.accept, kOffers).offer, one.chosen) << one.accept;
}

TEST(Choose, ParametersOfAnOfferCount) {
  static constexpr MediaParameter kOne[] = {{"version", "1"}};
  static constexpr MediaParameter kTwo[] = {{"version", "2"}, {"encoding", "x"}};
  constexpr std::array<Offer, 3> offers = {
      {{"a/b"}, {"v/w", kOne, true}, {"v/w", kTwo, true, true}}};
  const struct {
    const char* accept;
    size_t chosen;
  } kCases[] = {
      {"v/w", 1},  // says nothing of a version
      {"v/w;version=1", 1},
      {"V/W; VERSION=\"1\"", 1},
      {"v/w;version=3", 0},
      {"v/w;version=2", 0},  // the encoding is missing
      {"v/w;version=2;encoding=x", 2},
      {"v/w;encoding=x;version=2;more=y", 2},
      {"v/w;version=2;encoding=y", 0},
      {"v/w;version=1;q=0.1, v/w;version=2;encoding=x;q=0.2", 2},
      {"v/w;version=1;q=0, v/w;q=1", 0},  // the closer range refuses
      {"v/*", 0},
      {"*/*", 0},
  };
  for (const auto& one : kCases) {
    EXPECT_EQ(Choose(one.accept, offers).offer, one.chosen) << one.accept;
  }
  EXPECT_EQ(Choose("v/w;version=1;Escaping=\"dots\"", offers).range.Find("escaping")->value,
            "dots");
  EXPECT_EQ(Choose("x/y;escaping=dots", offers).range.Find("escaping"), nullptr);
}

TEST(ParseAccept, IsBounded) {
  std::string many;
  for (int i = 0; i < 3000; ++i) many.append("a/b;c=d,");
  EXPECT_EQ(ParseAccept(many).size(), kMaxRanges);
  EXPECT_TRUE(ParseAccept(std::string(8000, ',')).empty());
  EXPECT_TRUE(ParseAccept(std::string(8000, '"')).empty());
  EXPECT_EQ(ParseAccept("a/b" + std::string(8000, ';')).size(), 1u);
}

TEST(WantsGzip, OnlyWhenNamedAndLiked) {
  for (const char* yes : {"gzip", "GZIP", "x-gzip", "gzip, deflate, br", "deflate;q=1, gzip;q=0.1",
                          "gzip;q=0.5, identity;q=0.5", "gzip ; q=1.0", "identity;q=0, *",
                          "gzip;q=0.001,identity;q=0"}) {
    EXPECT_TRUE(WantsGzip(yes)) << yes;
  }
  for (const char* no : {"", "identity", "*", "deflate, br", "gzip;q=0", "gzip;q=0.0, *",
                         "gzip;q=0.4, identity;q=0.5", "gzipped", "*;q=0", "identity;q=0, *;q=0",
                         "gzip;q=0, identity;q=0, *", "\"gzip\""}) {
    EXPECT_FALSE(WantsGzip(no)) << no;
  }
}

TEST(EntityTag, TellsContentAndTypeApart) {
  const std::string tag = EntityTag("text/plain", "abc");
  EXPECT_EQ(tag, EntityTag("text/plain", "abc"));
  EXPECT_NE(tag, EntityTag("text/plain", "abd"));
  EXPECT_NE(tag, EntityTag("application/json", "abc"));
  EXPECT_TRUE(NamesTag(tag, tag));
  EXPECT_TRUE(NamesTag("\"x\", W/" + tag, tag));
  EXPECT_TRUE(NamesTag("*", tag));
  EXPECT_FALSE(NamesTag("", tag));
  EXPECT_FALSE(NamesTag("\"x\"", tag));
}

}  // namespace
}  // namespace rankscope::http
