// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <sstream>

#include "detectors/document/verdict_json.h"
#include "detectors/document/verdict_words.h"
#include "detectors/model/utf8.h"
#include "tests/unit/verdict_json/example.h"

namespace rankscope {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using ::testing::StrEq;

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

size_t Columns(const std::string& line) {
  size_t count = 0;
  for (const char c : line) count += (static_cast<uint8_t>(c) & 0xC0) != 0x80;
  return count;
}

TEST(VerdictText, HeadlineSaysItAll) {
  EXPECT_THAT(VerdictToText(testing::ExampleVerdict()),
              StartsWith("job 8841 attempt 2  A2 signal_kill (sigkill)  confidence 0.85, two "
                         "sources agree  rank 1  "
                         "final\non node n1\n"));
}

TEST(VerdictText, WhatAReaderNeedsFirstStandsFirst) {
  const std::string text = VerdictToText(testing::ExampleVerdict());
  size_t before = 0;
  for (const char* section :
       {"Shows", "Implies", "Do now", "Cannot decide", "Next tests", "Warnings", "Ruled out"}) {
    const size_t at = text.find(std::string("\n") + section);
    ASSERT_NE(at, std::string::npos) << section;
    EXPECT_GT(at, before) << section;
    before = at;
  }
}

TEST(VerdictText, TheShortFormBeginsWithWhatDecidedItAndCountsTheRest) {
  proto::Verdict verdict = testing::ExampleVerdict();
  // The root of the chain is the scheduler's record.
  verdict.mutable_cause_chain(0)->set_evidence(2);
  for (uint32_t id = 5; id < 9; ++id) {
    auto* more = verdict.add_shows();
    more->set_id(id);
    more->set_text("something else " + std::to_string(id));
    more->mutable_cite()->mutable_log()->set_line(std::string(300, 'x'));
  }
  const std::string text = VerdictToText(verdict, Detail::kShort);
  EXPECT_THAT(text, HasSubstr("\nShows\n  [2] the scheduler says so\n"));
  EXPECT_THAT(text, HasSubstr("\n  - and 6 more (--all)\n"));
  EXPECT_THAT(text, HasSubstr("\nRuled out (reasons: --all): B1 E1\nNot decidable: B2\n"));
  EXPECT_THAT(text, Not(HasSubstr("no allocator text")));
  EXPECT_THAT(text, HasSubstr("rerun from step 40"));
  for (const std::string& line : Lines(text)) EXPECT_LE(Columns(line), 100u) << line;
}

TEST(VerdictText, TheShortFormCutsALineThatItCites) {
  proto::Verdict verdict;
  auto* evidence = verdict.add_shows();
  evidence->set_text("it said so");
  evidence->mutable_cite()->mutable_log()->set_stream("stdout");
  evidence->mutable_cite()->mutable_log()->set_line(std::string(300, 'x'));
  const std::vector<std::string> lines = Lines(VerdictToText(verdict, Detail::kShort));
  const auto cited = std::find_if(lines.begin(), lines.end(), [](const std::string& line) {
    return line.starts_with("      | stdout");
  });
  ASSERT_NE(cited, lines.end());
  EXPECT_EQ(Columns(*cited), 100u);
  EXPECT_TRUE(cited->ends_with("..."));
}

TEST(VerdictText, TheHeadlineNamesAFewNodesAndCountsTheOthers) {
  proto::Verdict verdict = testing::ExampleVerdict();
  for (const char* node : {"n2", "n3", "n4", "n5", "n6"}) verdict.add_nodes(node);
  EXPECT_THAT(Lines(VerdictToText(verdict))[1], StrEq("on nodes n1,n2,n3,n4 and 2 more"));
}

TEST(VerdictText, SaysTheThreePartsAndWhatToDo) {
  const std::string text = VerdictToText(testing::ExampleVerdict());
  EXPECT_THAT(text, HasSubstr("\nShows\n  [0] rank 1 ended by SIGKILL, no traceback\n"
                              "      | run log @18231: exitcode  : -9 (pid: 312)\n"));
  EXPECT_THAT(text, HasSubstr("\nImplies\n  - the process did not end itself [0]\n"));
  EXPECT_THAT(text, HasSubstr("\nCannot decide\n  - who sent SIGKILL (needs kernel data: not "
                              "supported on this node)\n"));
  EXPECT_THAT(text, HasSubstr("\nRuled out\n  - B1 E1: no allocator text\n"));
  EXPECT_THAT(
      text,
      HasSubstr("\nNot decidable here\n  - B2: needs GPU data (not applicable to this job)\n"));
  EXPECT_THAT(text, HasSubstr("\nWarnings\n  - loss_spike rank 0: loss rose and came back\n"));
  EXPECT_THAT(text, HasSubstr("\nDo now, then rerun\n  - rerun from step 40\n"));
  EXPECT_THAT(text, HasSubstr("\nNext tests\n  $ journalctl -k"));
  EXPECT_THAT(text, Not(HasSubstr("Data quality")));
}

TEST(VerdictDigest, IsOneLineOfWhatItWasHowItEndedAndWhy) {
  proto::Verdict verdict = testing::ExampleVerdict();
  const std::string head =
      "job 8841 attempt 2  A2 signal_kill (sigkill)  confidence 0.85, two sources agree  rank 1  "
      "final";
  EXPECT_THAT(VerdictToDigest(verdict), StartsWith(head));
  EXPECT_THAT(VerdictToDigest(verdict), HasSubstr(": rank 1 ended by SIGKILL, no traceback"));
  verdict.mutable_disposition()->set_kind("time_limit");
  verdict.mutable_shows(0)->set_text("a\nb\r\x1b[31m\tc");
  const std::string digest = VerdictToDigest(verdict);
  EXPECT_EQ(Lines(digest).size(), 1u);
  EXPECT_THAT(digest, HasSubstr("a b ?[31m c"));
  EXPECT_THAT(digest, StartsWith(head + ", "));
}

TEST(VerdictText, SaysWhatTheConfidenceRestsOn) {
  proto::Verdict verdict = testing::ExampleVerdict();
  verdict.set_ground(proto::GROUND_RECORD);
  const auto says = [&verdict](proto::Tier tier, double confidence) {
    verdict.set_tier(tier);
    verdict.set_confidence(confidence);
    return ConfidenceWords(verdict);
  };
  EXPECT_EQ(says(proto::TIER_C, 0.85), "0.85, two sources agree");
  EXPECT_EQ(says(proto::TIER_S, 0.65), "0.65, one source");
  EXPECT_EQ(says(proto::TIER_W, 0.35), "0.35, heuristic");
  for (auto& evidence : *verdict.mutable_shows()) evidence.set_store(proto::STORE_LOG);
  EXPECT_EQ(says(proto::TIER_P, 0.95), "0.95, authoritative record");
  verdict.mutable_shows(0)->set_store(proto::STORE_KERNEL);
  EXPECT_EQ(says(proto::TIER_P, 0.95), "0.95, kernel record");
  EXPECT_THAT(VerdictToText(verdict), HasSubstr("  confidence 0.95, kernel record  rank"));
  verdict.set_ground(proto::GROUND_UNSEEN_SIDE);
  EXPECT_EQ(says(proto::TIER_P, 0.7), "0.7, kernel record, one side unseen");
  verdict.set_contradicted(true);
  EXPECT_EQ(says(proto::TIER_P, 0.35),
            "0.35, kernel record, one side unseen, contradicted by one source");
}

TEST(VerdictText, ACitationWithoutTextIsNoLine) {
  proto::Verdict verdict = testing::ExampleVerdict();
  verdict.mutable_shows(0)->mutable_cite()->mutable_kernel()->set_source("connection");
  EXPECT_THAT(VerdictToText(verdict), Not(HasSubstr("| connection")));
}

TEST(VerdictText, SaysWhenTheDataWasNotWhole) {
  proto::Verdict verdict = testing::ExampleVerdict();
  verdict.mutable_data_quality()->set_exact(false);
  verdict.mutable_data_quality()->set_truncated_at(4096);
  verdict.mutable_data_quality()->set_lost_bytes(17);
  const std::string text = VerdictToText(verdict);
  EXPECT_THAT(text, HasSubstr("\nData quality\n"));
  EXPECT_THAT(text, HasSubstr("ends at byte 4096"));
  EXPECT_THAT(text, HasSubstr("17 bytes lost"));
}

TEST(VerdictText, WhatNobodySeesIsWrittenOut) {
  proto::Verdict verdict = testing::ExampleVerdict();
  verdict.add_implies()->set_text("loss \u202e0.5\u202c\u200b \xc2\x9b");
  EXPECT_THAT(VerdictToText(verdict), HasSubstr("loss \\u202e0.5\\u202c\\u200b ?"));
}

TEST(VerdictText, NoLineIsWiderThanTheTerminal) {
  proto::Verdict verdict = testing::ExampleVerdict();
  for (int i = 0; i < 500; ++i) verdict.add_ranks(i);
  std::string words;
  for (int i = 0; i < 60; ++i) words += "word" + std::to_string(i) + " ";
  verdict.add_implies()->set_text(words);
  verdict.add_implies()->set_text(std::string(350, 'x'));
  std::string accents;
  for (int i = 0; i < 250; ++i) accents += "\xC3\xA9";
  verdict.add_implies()->set_text(accents);
  const std::string text = VerdictToText(verdict);
  for (const std::string& line : Lines(text)) {
    EXPECT_LE(Columns(line), 100u) << line;
    EXPECT_TRUE(IsUtf8(line));
  }
  std::string joined = text;
  std::erase_if(joined, [](char c) { return c == ' ' || c == '\n'; });
  EXPECT_THAT(joined, HasSubstr(std::string(350, 'x')));
  EXPECT_THAT(joined, HasSubstr(accents));
  EXPECT_THAT(joined, HasSubstr("word58word59"));
}

TEST(VerdictText, NothingQuotedCanSteerTheTerminal) {
  std::mt19937 random(5);
  for (int round = 0; round < 300; ++round) {
    std::string hostile =
        "\x1B]0;owned\x07\x1B[2J\xC2\x9B"
        "31m\r\n\b\x7F";
    for (int i = 0; i < 100; ++i) hostile.push_back(static_cast<char>(random() % 256));
    proto::Verdict verdict = testing::ExampleVerdict();
    verdict.set_job_id(hostile);
    verdict.mutable_shows(0)->mutable_cite()->mutable_log()->set_line(hostile);
    const std::string text = VerdictToText(verdict);
    ASSERT_TRUE(IsUtf8(text));
    ASSERT_EQ(text.find("\xC2\x9B"), std::string::npos);
    for (const char byte : text) {
      ASSERT_TRUE(byte == '\n' || (static_cast<uint8_t>(byte) >= 0x20 && byte != 0x7F))
          << int{byte};
    }
    for (const std::string& line : Lines(text)) ASSERT_LE(Columns(line), 100u);
  }
}

TEST(VerdictText, WhatIsSaidOfSeveralRanksIsSaidOnce) {
  proto::Verdict verdict;
  uint32_t id = 0;
  const auto shows = [&](const std::string& text) {
    proto::Evidence* evidence = verdict.add_shows();
    evidence->set_id(id++);
    evidence->set_text(text);
    evidence->mutable_cite()->mutable_log()->set_stream("rank " + std::to_string(id) + " stderr");
    evidence->mutable_cite()->mutable_log()->set_line("line");
  };
  for (const int rank : {1, 0, 3, 2, 7}) {
    shows("rank " + std::to_string(rank) + " was killed");
    shows("rank " + std::to_string(rank) + " waits for " + std::to_string(rank));
  }
  shows("pid 12 was killed");
  shows("rank 5 was killed by another");
  const std::string text = VerdictToText(verdict);
  EXPECT_THAT(text, HasSubstr("  [0,2,4,6,8] ranks 0-3,7 were killed\n"
                              "      | rank 1 stderr @0: line\n"
                              "      | and 4 more like it\n"
                              "  [1] rank 1 waits for 1\n"));
  EXPECT_THAT(text, HasSubstr("  [10] pid 12 was killed\n"));
  EXPECT_THAT(text, HasSubstr("  [11] rank 5 was killed by another\n"));
}

TEST(VerdictText, SeveralRanksAreRanges) {
  proto::Verdict verdict = testing::ExampleVerdict();
  for (const int rank : {0, 2, 3, 9}) verdict.add_ranks(rank);
  EXPECT_THAT(Lines(VerdictToText(verdict))[0], HasSubstr("  ranks 0-3,9  "));
  for (int rank = 20; rank < 60; rank += 2) verdict.add_ranks(rank);
  const std::string text = VerdictToText(verdict);
  EXPECT_THAT(text.substr(0, text.find("Shows")), HasSubstr("0-3,9,20,22,24,26,28,30 and 14"));
}

TEST(VerdictText, AnEmptyVerdictIsItsHeadlineAndItsDataQuality) {
  EXPECT_EQ(Lines(VerdictToText({})).size(), 4u);
}

}  // namespace
}  // namespace rankscope
