// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include "detectors/logs/failures/boxed_traceback.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/unit/logs/feed_lines.h"

namespace rankscope::logs {
namespace {

TEST(BoxedTraceback, LinesOfABox) {
  const BoxedLine top = ParseBoxed("╭──── Traceback (most recent call last) ─────╮");
  EXPECT_EQ(top.kind, BoxedLine::Kind::kTop);
  EXPECT_EQ(top.width, 46);
  const BoxedLine frame = ParseBoxed("│ /job/train.py:88 in <module>              │");
  EXPECT_EQ(frame.kind, BoxedLine::Kind::kFrame);
  EXPECT_EQ(frame.file, "/job/train.py");
  EXPECT_EQ(frame.line, 88);
  EXPECT_EQ(frame.function, "<module>");
  const BoxedLine code = ParseBoxed("│ ❱ 88 │   │   return open(path)            │");
  EXPECT_EQ(code.kind, BoxedLine::Kind::kCode);
  EXPECT_EQ(code.code, "return open(path)");
  EXPECT_EQ(ParseBoxed("│ ❱ 8 main()                                │").code, "main()");
  EXPECT_EQ(ParseBoxed("╰────────────────────────────────────────────╯").kind,
            BoxedLine::Kind::kBottom);
}

TEST(BoxedTraceback, OtherLinesOfTheBoxAreNoFrames) {
  for (const char* text : {
           "│   7 │   load(path)                          │",
           "│                                            │",
           "│ ╭────────── locals ──────────╮             │",
           "│ │ path = 'sample 3:7 in vocab' │           │",
           "│ note: 3:7 in set                           │",
       }) {
    EXPECT_EQ(ParseBoxed(text).kind, BoxedLine::Kind::kOther) << text;
  }
  for (const char* text :
       {"", "  | /job/train.py:88 in main", "Epoch 3", "╭──── Model summary ────╮"})
    EXPECT_EQ(ParseBoxed(text).kind, BoxedLine::Kind::kNone) << text;
}

constexpr std::string_view kBox =
    "╭──────────── Traceback (most recent call last) ─────────────╮\n"
    "│ /job/train.py:8 in <module>                                │\n"
    "│                                                            │\n"
    "│   7 │   print(\"a\")                                         │\n"
    "│ ❱ 8 main()                                                 │\n"
    "│                                                            │\n"
    "│ /job/vocabulary.py:4 in load                               │\n"
    "│                                                            │\n"
    "│ ❱ 4 │   return open(path)                                  │\n"
    "│   5 def main():                                            │\n"
    "╰────────────────────────────────────────────────────────────╯\n";

TEST(BoxedTraceback, AMessageIsWrappedToTheBox) {
  const Records records = ReadText(std::string(kBox) +
                                   "FileNotFoundError: [Errno 2] No such file or directory:\n"
                                   "'/data/vocabulary/classes.json'\n"
                                   "done\n");
  ASSERT_EQ(records.incidents.size(), 1u);
  const Incident& incident = records.incidents[0];
  EXPECT_EQ(incident.exception_type, "FileNotFoundError");
  EXPECT_EQ(incident.message,
            "[Errno 2] No such file or directory: '/data/vocabulary/classes.json'");
  bool placed = false;
  for (const Quote& quote : incident.quotes)
    placed |= quote.line.find("return open(path)") != std::string::npos;
  EXPECT_TRUE(placed);
}

TEST(BoxedTraceback, WhatFollowsIsNotTheMessage) {
  for (const char* next :
       {"saving logs", "ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: 1)",
        "[2026-02-03 04:05:06,789] torch.distributed.elastic.multiprocessing.api: [ERROR] "
        "failed"}) {
    const Records records =
        ReadText(std::string(kBox) + "ValueError: the vocabulary holds no classes\n" + next + "\n");
    const auto raised = std::find_if(
        records.incidents.begin(), records.incidents.end(),
        [](const Incident& incident) { return incident.exception_type == "ValueError"; });
    ASSERT_NE(raised, records.incidents.end());
    EXPECT_EQ(raised->message, "the vocabulary holds no classes") << next;
  }
}

TEST(BoxedTraceback, Chains) {
  const std::string text =
      std::string(kBox) +
      "KeyError: 'vocabulary'\n\n"
      "During handling of the above exception, another exception occurred:\n\n" +
      std::string(kBox) + "RuntimeError: no vocabulary\n";
  const Records records = ReadText(text);
  ASSERT_EQ(records.incidents.size(), 1u);
  EXPECT_EQ(records.incidents[0].exception_type, "RuntimeError");
  EXPECT_EQ(records.incidents[0].cause_type, "KeyError");
}

TEST(BoxedTraceback, ATableOfSomebodyElseIsNoTraceback) {
  const Records records = ReadText(
      "╭──────────── Model summary ─────────────╮\n"
      "│ /job/train.py:8 in <module>            │\n"
      "│ ❱ 4 │   return open(path)              │\n"
      "╰────────────────────────────────────────╯\n"
      "ValueErrors: 0\n");
  EXPECT_TRUE(records.incidents.empty());
}

}  // namespace
}  // namespace rankscope::logs
