// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The lines beside an incident's own that a verdict may quote.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/logs_shapes/feed.h"

namespace rankscope::logs {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::vector<std::string> Lines(const Incident& incident, QuoteRole role) {
  std::vector<std::string> lines;
  for (const Quote& quote : incident.quotes) {
    if (quote.role == role) lines.push_back(quote.line);
  }
  return lines;
}

TEST(Quotes, TheProgramsOwnSourceLine) {
  const std::string text =
      "Traceback (most recent call last):\n"
      "  File \"/w/fit.py\", line 9, in main\n"
      "    loader = build(rows)\n"
      "  File \"/w/rows.py\", line 31, in build\n"
      "    assert len(rows) > 0\n"
      "           ^^^^^^^^^^^^^\n"
      "AssertionError\n";
  const auto got = RunTraceback(text);
  ASSERT_THAT(got, SizeIs(1));
  ASSERT_THAT(got[0].quotes, SizeIs(1));
  EXPECT_THAT(Lines(got[0], QuoteRole::kFrame), ElementsAre("    assert len(rows) > 0"));
  const auto offset = static_cast<size_t>(got[0].quotes[0].offset);
  EXPECT_EQ(text.substr(offset, 24), "    assert len(rows) > 0");
}

TEST(Quotes, ALibrarysLineOnlyWhereTheExceptionIsSilent) {
  const char* frames =
      "Traceback (most recent call last):\n"
      "  File \"/w/fit.py\", line 9, in main\n"
      "    trainer.fit()\n"
      "  File \"/v/lib/python3.11/site-packages/lib/loop.py\", line 2, in fit\n"
      "    assert self.ready\n";
  const auto silent = RunTraceback(std::string(frames) + "AssertionError\n");
  ASSERT_THAT(silent, SizeIs(1));
  EXPECT_THAT(Lines(silent[0], QuoteRole::kFrame),
              ElementsAre("    trainer.fit()", "    assert self.ready"));
  const auto worded = RunTraceback(std::string(frames) + "AssertionError: not ready\n");
  ASSERT_THAT(worded, SizeIs(1));
  EXPECT_THAT(Lines(worded[0], QuoteRole::kFrame), ElementsAre("    trainer.fit()"));
}

TEST(Quotes, TheMessageGoesOnAndItsAdviceDoesNotCount) {
  const auto got = RunTraceback(
      "Traceback (most recent call last):\n"
      "  File \"/w/fit.py\", line 9, in main\n"
      "    net.load_state_dict(state)\n"
      "RuntimeError: Error(s) in loading state_dict for Net:\n"
      "\tsize mismatch for head.weight: copying a param with shape torch.Size([10, 64])\n"
      "\tsize mismatch for head.bias: copying a param with shape torch.Size([10])\n"
      "For debugging consider passing CUDA_LAUNCH_BLOCKING=1.\n");
  ASSERT_THAT(got, SizeIs(1));
  EXPECT_THAT(Lines(got[0], QuoteRole::kMessage), SizeIs(2));
}

TEST(Quotes, SentencesRightBelowAreQuotedAsSuch) {
  const auto got = RunTraceback(
      "Traceback (most recent call last):\n"
      "  File \"/w/fit.py\", line 9, in main\n"
      "    model = load(name)\n"
      "OSError: This repository wants a login.\n"
      "Ask its owner for access at https://hub.example/owner/net.\n"
      "2026-01-02 03:04:05 INFO leaving\n"
      "Nothing of this line belongs to it any more.\n");
  ASSERT_THAT(got, SizeIs(1));
  EXPECT_THAT(Lines(got[0], QuoteRole::kBelow),
              ElementsAre("Ask its owner for access at https://hub.example/owner/net."));
  EXPECT_THAT(Lines(got[0], QuoteRole::kMessage), IsEmpty());
}

TEST(Quotes, AnEmptyLineEndsWhatMayBeTheMessages) {
  const auto got = RunTraceback(
      "Traceback (most recent call last):\n"
      "  File \"/w/fit.py\", line 9, in main\n"
      "    model = load(name)\n"
      "OSError: This repository wants a login.\n"
      "\n"
      "Cleaning up the scratch folder of this job\n");
  ASSERT_THAT(got, SizeIs(1));
  EXPECT_THAT(Lines(got[0], QuoteRole::kBelow), IsEmpty());
}

TEST(Quotes, TheFirstOfAChainAndTheOneBefore) {
  const auto got = RunTraceback(
      "Traceback (most recent call last):\n"
      "  File \"/w/a.py\", line 1, in f\n"
      "    open(path)\n"
      "FileNotFoundError: [Errno 2] No such file or directory: 'a.txt'\n"
      "\n"
      "During handling of the above exception, another exception occurred:\n"
      "\n"
      "Traceback (most recent call last):\n"
      "  File \"/w/a.py\", line 5, in g\n"
      "    fallback()\n"
      "KeyError: 'a'\n"
      "\n"
      "The above exception was the direct cause of the following exception:\n"
      "\n"
      "Traceback (most recent call last):\n"
      "  File \"/w/a.py\", line 9, in h\n"
      "    raise ValueError('no input')\n"
      "ValueError: no input\n");
  ASSERT_THAT(got, SizeIs(1));
  EXPECT_THAT(Lines(got[0], QuoteRole::kCause),
              ElementsAre("FileNotFoundError: [Errno 2] No such file or directory: 'a.txt'",
                          "KeyError: 'a'"));
  EXPECT_THAT(Lines(got[0], QuoteRole::kFrame), ElementsAre("    raise ValueError('no input')"));
}

TEST(Quotes, TheLaunchersWordOnASignal) {
  const auto got = RunMachine<ElasticSummaryMachine>(
      "Root Cause (first observed failure):\n"
      "[0]:\n"
      "  time      : 2026-01-02_03:04:05\n"
      "  host      : n3\n"
      "  rank      : 2 (local_rank: 2)\n"
      "  exitcode  : -11 (pid: 9021)\n"
      "  error_file: <N/A>\n"
      "  traceback : Signal 11 (SIGSEGV) received by PID 9021\n"
      "============================================================\n");
  ASSERT_THAT(got, SizeIs(1));
  EXPECT_THAT(Lines(got[0], QuoteRole::kLauncher),
              ElementsAre("  traceback : Signal 11 (SIGSEGV) received by PID 9021"));
}

TEST(Quotes, AreFewHoweverLongTheMessage) {
  std::string text =
      "Traceback (most recent call last):\n"
      "  File \"/w/fit.py\", line 9, in main\n"
      "    net.load_state_dict(state)\n"
      "RuntimeError: Error(s) in loading state_dict for Net:\n";
  for (int i = 0; i < 50; ++i)
    text += "\tMissing key(s): block" + std::to_string(i) + std::string(400, 'x') + "\n";
  const auto got = RunTraceback(text);
  ASSERT_THAT(got, SizeIs(1));
  EXPECT_THAT(Lines(got[0], QuoteRole::kMessage), SizeIs(kMaxMessageQuotes));
  for (const Quote& quote : got[0].quotes) EXPECT_LE(quote.line.size(), kCitationCap);
}

}  // namespace
}  // namespace rankscope::logs
