// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/http/negotiation.h"

#include <gtest/gtest.h>

#include <array>

namespace rankscope::http {
namespace {

constexpr std::array<std::string_view, 3> kOffers = {"application/json", "text/plain",
                                                     "application/x-protobuf"};

TEST(ChooseMediaType, FollowsTheClient) {
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
      {"application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1", 1},
  };
  for (const auto& one : kCases)
    EXPECT_EQ(ChooseMediaType(one.accept, kOffers), one.chosen) << one.accept;
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
