// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/reports/json.h"

#include <gtest/gtest.h>

#include <string>

namespace rankscope::reports {
namespace {

TEST(Json, ValuesOfAllKinds) {
  const std::string text =
      R"( {"a": 1, "b": -2.5, "c": [true, false, null, "x\n\u00e9\ud83d\ude00"], "d": {"e": "7"}} )";
  const auto read = ReadJson(text);
  ASSERT_TRUE(read) << read.error();
  const Tree& tree = read->tree;
  EXPECT_EQ(tree.Int(tree.Get(read->root, "a")), 1);
  EXPECT_EQ(tree.Number(tree.Get(read->root, "b")), -2.5);
  const Tree::Id list = tree.Get(read->root, "c");
  EXPECT_EQ(tree.Bool(tree.At(list, 0)), true);
  EXPECT_EQ(tree.kind(tree.At(list, 2)), Tree::Kind::kNull);
  EXPECT_EQ(tree.String(tree.At(list, 3)), "x\n\xc3\xa9\xf0\x9f\x98\x80");
  EXPECT_EQ(tree.Int(tree.Get(tree.Get(read->root, "d"), "e")), 7);  // digits count as a number
  EXPECT_EQ(read->repaired, 0);
  EXPECT_FALSE(read->cut);
}

TEST(Json, CommasMayBeMissingOrTooMany) {
  const std::string text = R"({"a": 1 "b": [1 2,,3] "c": {} "d": "x",})";
  const auto read = ReadJson(text);
  ASSERT_TRUE(read);
  const Tree& tree = read->tree;
  EXPECT_EQ(tree.Int(tree.Get(read->root, "a")), 1);
  EXPECT_EQ(tree.size(tree.Get(read->root, "b")), 3u);
  EXPECT_TRUE(tree.is_dict(tree.Get(read->root, "c")));
  EXPECT_EQ(tree.String(tree.Get(read->root, "d")), "x");
  EXPECT_EQ(read->repaired, 5);
  EXPECT_FALSE(read->cut);
}

TEST(Json, WhatWasCompleteSurvivesACut) {
  const std::string text = R"({"a": 1, "b": [{"c": 2}, {"c": 3, "d": "unfin)";
  const auto read = ReadJson(text);
  ASSERT_TRUE(read);
  EXPECT_TRUE(read->cut);
  const Tree& tree = read->tree;
  EXPECT_EQ(tree.Int(tree.Get(read->root, "a")), 1);
  EXPECT_EQ(tree.Int(tree.Get(tree.At(tree.Get(read->root, "b"), 1), "c")), 3);
}

TEST(Json, NoJsonIsAnError) {
  EXPECT_FALSE(ReadJson(""));
  EXPECT_FALSE(ReadJson("Job summary"));
}

TEST(Json, DepthIsBounded) {
  const std::string text(100000, '[');
  const auto read = ReadJson(text);
  ASSERT_TRUE(read);
  EXPECT_TRUE(read->cut);
  EXPECT_LT(read->tree.values(), 100u);
}

TEST(Json, NumbersThatAreNoneAreNull) {
  const std::string text = R"({"a": NaN, "b": -Infinity, "c": 1e3})";
  const auto read = ReadJson(text);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->tree.Number(read->tree.Get(read->root, "a")), std::nullopt);
  EXPECT_EQ(read->tree.Int(read->tree.Get(read->root, "c")), 1000);
}

}  // namespace
}  // namespace rankscope::reports
