// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Bars that a container's log holds as one record: each redraw is a line of its own.
#include <gtest/gtest.h>

#include <string>

#include "tests/unit/logs/feed_lines.h"

namespace rankscope::logs {
namespace {

std::string InDocker(const std::string& text) {
  return R"({"log":")" + text + R"(\n","stream":"stderr","time":"2026-03-02T10:00:01.5Z"})" + "\n";
}

std::string Bars(int from, int to, const std::string& between) {
  std::string text;
  for (int i = from; i <= to; ++i) {
    text += between + "1|" + std::to_string(i) + "|Loss: 2." + std::to_string(900 - i) +
            ":   4%|4         | " + std::to_string(i) + "/100 [00:0" + std::to_string(i % 10) +
            "<00:50,  1.90it/s]";
  }
  return text;
}

TEST(Redrawn, EachRedrawIsALine) {
  const Records plain = ReadText(Bars(1, 40, "\r") + "\n");
  ASSERT_EQ(plain.rows.size(), 40u);
  const Records docker = ReadText(InDocker(Bars(1, 40, "\\r")));
  ASSERT_EQ(docker.rows.size(), plain.rows.size());
  for (size_t i = 0; i < plain.rows.size(); ++i) {
    EXPECT_EQ(docker.rows[i].step, plain.rows[i].step);
    EXPECT_EQ(docker.rows[i].loss, plain.rows[i].loss);
  }
}

TEST(Redrawn, WhatFollowsABarIsRead) {
  const Records records = ReadText(
      InDocker(Bars(1, 3, "\\r") + "\\rRuntimeError: CUDA error: an illegal memory access was "
                                   "encountered"));
  EXPECT_EQ(records.rows.size(), 3u);
  ASSERT_EQ(records.incidents.size(), 1u);
  EXPECT_EQ(records.incidents[0].line.substr(0, 7), R"({"log":)");  // the stream's own words
}

// Near: a program's own record of JSON, whose text is one value.
TEST(Redrawn, OtherRecordsOfJsonStayWhole) {
  const std::string text = "{\"message\": \"" + Bars(1, 3, "\\r") + "\"}\n";
  EXPECT_LE(ReadText(text).rows.size(), 1u);
  EXPECT_EQ(ReadText(InDocker(Bars(7, 7, ""))).rows.size(), 1u);
}

}  // namespace
}  // namespace rankscope::logs
