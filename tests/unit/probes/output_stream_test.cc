// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/probes/stdio/output_stream.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "exporter/probes/stdio/recent_lines.h"

namespace rankscope::probes {
namespace {

struct Said {
  std::string text;
  int64_t offset;
  int64_t lost_before;
  bool operator==(const Said&) const = default;
};

class OutputStreamTest : public testing::Test {
 protected:
  void Hear(std::string_view bytes, bool begins_line = false) {
    stream_.Hear(bytes, begins_line, Timestamp{1}, emit_);
  }

  std::vector<Said> said_;
  OutputStream::Emit emit_ = [this](const LogLine& line, Timestamp) {
    EXPECT_EQ(line.stream, 7u);
    EXPECT_EQ(line.rank, 3);
    if (line.text == "no news") return false;
    said_.push_back({std::string(line.text), line.offset, line.lost_before});
    return true;
  };
  OutputStream stream_{StreamLabel{7, "rank 3 stdout", "j", {30, 100}, 3, 3, 0}};
};

TEST_F(OutputStreamTest, OnePrintIsManyWrites) {
  for (const char* piece : {"step", " ", "1", "\n", "step 2\nst", "ep 3\n"}) Hear(piece);
  EXPECT_EQ(said_, (std::vector<Said>{{"step 1", 0, 0}, {"step 2", 7, 0}, {"step 3", 14, 0}}));
}

TEST_F(OutputStreamTest, EachLineSaysWhereItEndsInItsFile) {
  std::vector<int64_t> ends;
  const OutputStream::Emit note = [&](const LogLine& line, Timestamp) {
    EXPECT_EQ(line.file.inode, line.file.end == 0 ? 0u : 42u);
    ends.push_back(line.file.end);
    return true;
  };
  OutputStream stream(StreamLabel{7, "rank 3 stdout", "j", {30, 100}, 3, 3, 0, {1, 42, 0}});
  stream.Hear("step 1\nst", true, Timestamp{1}, note, 1000);
  stream.Hear("ep 2\r\n", false, Timestamp{1}, note, 1009);
  // Another has written to the file in between.
  stream.Hear("step 3\n", true, Timestamp{1}, note, 2000);
  stream.Lose(100);
  stream.Hear("5\nstep 4\nst", false, Timestamp{1}, note, 2107);
  stream.Hear("somewhere\n", false, Timestamp{1}, note);
  EXPECT_EQ(ends, (std::vector<int64_t>{1007, 1015, 2007, 2116, 0}));
}

TEST_F(OutputStreamTest, WhatCanBeReadAgainIsLeftOpen) {
  OutputStream placed(StreamLabel{7, "rank 3 stdout", "j", {30, 100}, 3, 3, 0, {1, 42, 0}});
  placed.Hear("step 1\nste", true, Timestamp{1}, emit_, 0);
  placed.Leave(Timestamp{1}, emit_);
  EXPECT_EQ(said_, (std::vector<Said>{{"step 1", 0, 0}}));
  Hear("half");
  stream_.Leave(Timestamp{1}, emit_);
  EXPECT_EQ(said_.back(), (Said{"half", 0, 0}));
}

TEST_F(OutputStreamTest, AGapTakesTheLinesItStandsInWithIt) {
  Hear("step 1\nloss 2");
  stream_.Lose(100);
  Hear("5.5\nstep 9\n");
  EXPECT_EQ(said_, (std::vector<Said>{{"step 1", 0, 0}, {"step 9", 117, 6 + 100 + 4}}));
  EXPECT_EQ(stream_.lost(), 110);
}

TEST_F(OutputStreamTest, AGapBetweenLinesTakesNone) {
  Hear("step 1\n");
  stream_.Lose(100);
  Hear("step 9\n", true);
  EXPECT_EQ(said_, (std::vector<Said>{{"step 1", 0, 0}, {"step 9", 107, 100}}));
}

TEST_F(OutputStreamTest, TheEndTellsWhatIsOpenAndWhatIsLost) {
  Hear("no end");
  stream_.Close(Timestamp{2}, emit_);
  EXPECT_EQ(said_, (std::vector<Said>{{"no end", 0, 0}}));
  said_.clear();
  stream_.Lose(50);
  stream_.Close(Timestamp{2}, emit_);
  EXPECT_EQ(said_, (std::vector<Said>{{"", 56, 50}}));
}

TEST_F(OutputStreamTest, WhatWasLostIsToldWithTheNextLineThatIsTold) {
  stream_.Lose(100);
  Hear("no news\nnews\n", true);
  EXPECT_EQ(said_, (std::vector<Said>{{"news", 108, 100}}));
}

TEST(RecentLines, ACopyIsToldByItsText) {
  RecentLines lines;
  lines.Note("j", "step 1 loss 2.5");
  EXPECT_TRUE(lines.Holds("j", "step 1 loss 2.5"));
  EXPECT_TRUE(lines.Holds("j", "[default0]:step 1 loss 2.5"));
  EXPECT_FALSE(lines.Holds("j", "step 2 loss 2.5"));
  EXPECT_FALSE(lines.Holds("k", "step 1 loss 2.5"));
  lines.Note("j", "");
  EXPECT_FALSE(lines.Holds("j", "  "));
  for (size_t i = 0; i < RecentLines::kMost; ++i) lines.Note("j", "line " + std::to_string(i));
  EXPECT_FALSE(lines.Holds("j", "step 1 loss 2.5")) << "too long ago";
  EXPECT_TRUE(lines.Holds("j", "line 0"));
}

TEST(RecentLines, ACopyThatTwoThreadsOfALauncherHaveTornIsOne) {
  RecentLines lines;
  lines.Note("j", "step 0 loss 4.0 of rank 1");
  EXPECT_TRUE(lines.Holds("j", "[default0]:step 8 [default1]:step 0 loss 4.0 of rank 1"));
  EXPECT_TRUE(lines.Holds("j", "[3] of 4 [default1]:step 0 loss 4.0 of rank 1"));
  EXPECT_FALSE(lines.Holds("j", "[default0]:step 8 [default1]:step 0 loss 4.0"));
  EXPECT_FALSE(lines.Holds("j", "the launcher says step 0 loss 4.0 of rank 1"));
}

TEST_F(OutputStreamTest, SecretsAreMaskedAndKeepTheirLength) {
  Hear("token hf_abcdefghijklmnopqrstuvwxyz0123 ok\n");
  ASSERT_EQ(said_.size(), 1u);
  EXPECT_EQ(said_[0].text, "token " + std::string(33, '*') + " ok");
}

}  // namespace
}  // namespace rankscope::probes
