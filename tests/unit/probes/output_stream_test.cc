// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/probes/output_stream.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

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
    said_.push_back({std::string(line.text), line.offset, line.lost_before});
  };
  OutputStream stream_{StreamLabel{7, "rank 3 stdout", "j", {30, 100}, 3, 3, 0}};
};

TEST_F(OutputStreamTest, OnePrintIsManyWrites) {
  for (const char* piece : {"step", " ", "1", "\n", "step 2\nst", "ep 3\n"}) Hear(piece);
  EXPECT_EQ(said_, (std::vector<Said>{{"step 1", 0, 0}, {"step 2", 7, 0}, {"step 3", 14, 0}}));
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

TEST_F(OutputStreamTest, SecretsAreMaskedAndKeepTheirLength) {
  Hear("token hf_abcdefghijklmnopqrstuvwxyz0123 ok\n");
  ASSERT_EQ(said_.size(), 1u);
  EXPECT_EQ(said_[0].text, "token " + std::string(33, '*') + " ok");
}

}  // namespace
}  // namespace rankscope::probes
