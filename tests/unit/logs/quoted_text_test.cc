// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include "detectors/logs/text/quoted_text.h"

#include <gtest/gtest.h>

#include <string>

namespace rankscope::logs {
namespace {

constexpr std::string_view kLines[] = {"step 10 loss 2.5",
                                       "step 20 loss 2.4",
                                       "",
                                       "[rank3]: Traceback (most recent call last):",
                                       "[rank3]:   File \"fit.py\", line 90, in <module>",
                                       "[rank3]: KeyError: 'mask'"};

std::string Each(std::string_view mark, std::string_view of_empty = "") {
  std::string text;
  for (const std::string_view line : kLines)
    text.append(line.empty() ? of_empty : mark).append(line).append("\n");
  return text;
}

TEST(QuotedText, IsKnownByItsMark) {
  EXPECT_EQ(FindQuoteMark(Each("> ", ">")), QuoteMark::kSign);
  EXPECT_EQ(FindQuoteMark("On Monday Ann wrote:\n" + Each("> ", ">") + "\nLook at rank 3.\n"),
            QuoteMark::kSign);
  EXPECT_EQ(FindQuoteMark(Each("    ")), QuoteMark::kBlanks);
  EXPECT_EQ(FindQuoteMark("It ends so:\n\n" + Each("    ")), QuoteMark::kBlanks);
  EXPECT_EQ(FindQuoteMark(Each("    ").substr(0, 100)), QuoteMark::kBlanks);  // cut in a line
}

TEST(QuotedText, AProgramsOwnLayoutIsNone) {
  EXPECT_EQ(FindQuoteMark(""), QuoteMark::kNone);
  EXPECT_EQ(FindQuoteMark(Each("")), QuoteMark::kNone);
  EXPECT_EQ(FindQuoteMark("    a\n    b\n"), QuoteMark::kNone);
  // Megatron
  EXPECT_EQ(FindQuoteMark("> initializing torch distributed ...\n> setting random seeds to 1\n"
                          "> compiling dataset index builder ...\n> padded vocab (size: 50257)\n"),
            QuoteMark::kNone);
  // A traceback and a dump of stacks
  EXPECT_EQ(FindQuoteMark("Traceback (most recent call last):\n  File \"a.py\", line 1, in f\n"
                          "    g()\n  File \"a.py\", line 2, in g\n    h()\nKeyError: 1\n"),
            QuoteMark::kNone);
  EXPECT_EQ(FindQuoteMark("Thread 12 (idle): \"MainThread\"\n    wait (a.py:1)\n    get (a.py:2)\n"
                          "    next (a.py:3)\n    main (a.py:4)\n    run (a.py:5)\n"),
            QuoteMark::kNone);
  // A configuration that stands in the middle
  EXPECT_EQ(FindQuoteMark("config:\n\n    a: 1\n    b: 2\n    c: 3\n    d: 4\n" + Each("")),
            QuoteMark::kNone);
}

TEST(QuotedText, ALineMayHaveNone) {
  EXPECT_EQ(QuoteWidth("> x", QuoteMark::kSign), 2u);
  EXPECT_EQ(QuoteWidth("> > x", QuoteMark::kSign), 4u);
  EXPECT_EQ(QuoteWidth(">", QuoteMark::kSign), 1u);
  EXPECT_EQ(QuoteWidth(">=3 x", QuoteMark::kSign), 0u);
  EXPECT_EQ(QuoteWidth("      x", QuoteMark::kBlanks), 4u);
  EXPECT_EQ(QuoteWidth("   x", QuoteMark::kBlanks), 0u);
  EXPECT_EQ(QuoteWidth("> x", QuoteMark::kNone), 0u);
}

}  // namespace
}  // namespace rankscope::logs
