// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include "detectors/logs/text/assembler.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "detectors/model/archive.h"

namespace rankscope::logs {
namespace {

struct Got {
  std::string text;
  int64_t offset = 0;
  LineEnd end = LineEnd::kUnspecified;
  int32_t cut_bytes = 0;
  int64_t lost_before = 0;
  bool operator==(const Got&) const = default;
};

void PrintTo(const Got& got, std::ostream* out) {
  *out << "'" << got.text.substr(0, 40) << "' at " << got.offset << " end "
       << static_cast<int>(got.end) << " cut " << got.cut_bytes << " lost " << got.lost_before;
}

class Lines {
 public:
  explicit Lines(int64_t start = 0) : assembler_(start) {}
  Lines& Feed(std::string_view bytes) {
    assembler_.Feed(bytes, Keep());
    return *this;
  }
  Lines& Lose(int64_t bytes) {
    assembler_.Lose(bytes, Keep());
    return *this;
  }
  Lines& Flush(LineEnd end = LineEnd::kFlush) {
    assembler_.Flush(end, Keep());
    return *this;
  }
  std::vector<Got> got;
  LineAssembler assembler_;

 private:
  std::function<void(const AssembledLine&)> Keep() {
    return [this](const AssembledLine& line) {
      got.push_back(
          {std::string(line.text), line.offset, line.end, line.cut_bytes, line.lost_before});
    };
  }
};

std::vector<Got> Whole(std::string_view bytes) {
  return Lines().Feed(bytes).Flush().got;
}

TEST(Assembler, EndsAtLfCrAndCrLf) {
  EXPECT_EQ(Whole("a\nbc\rd\r\ne"), (std::vector<Got>{{"a", 0, LineEnd::kLf},
                                                      {"bc", 2, LineEnd::kCr},
                                                      {"d", 5, LineEnd::kLf},
                                                      {"e", 8, LineEnd::kFlush}}));
}

TEST(Assembler, KeepsEmptyLinesAndLoneCarriageReturns) {
  EXPECT_EQ(Whole("\n\r\r\n\n"), (std::vector<Got>{{"", 0, LineEnd::kLf},
                                                   {"", 1, LineEnd::kCr},
                                                   {"", 2, LineEnd::kLf},
                                                   {"", 4, LineEnd::kLf}}));
}

// However the bytes are cut into pieces, the lines, their ends and their offsets are the same.
TEST(Assembler, CutsMakeNoDifference) {
  const std::string text =
      "one\r\ntwo\rthree\n\r\r\n\xff\xfe\0nul\n  5%|\xe2\x96\x88|\r 6%|\r\nlast"
      "\r";
  const std::vector<Got> whole = Whole(text);
  for (size_t i = 0; i <= text.size(); ++i) {
    for (size_t j = i; j <= text.size(); ++j) {
      const std::string_view all(text);
      EXPECT_EQ(
          Lines().Feed(all.substr(0, i)).Feed(all.substr(i, j - i)).Feed(all.substr(j)).Flush().got,
          whole)
          << i << " " << j;
    }
  }
  Lines bytewise;
  for (const char c : text) bytewise.Feed({&c, 1});
  EXPECT_EQ(bytewise.Flush().got, whole);
}

TEST(Assembler, WholeLinesAreNotCopied) {
  const std::string text = "first\nsecond\n";
  LineAssembler assembler;
  std::vector<const char*> begins;
  assembler.Feed(text, [&](const AssembledLine& line) { begins.push_back(line.text.data()); });
  EXPECT_EQ(begins, (std::vector<const char*>{text.data(), text.data() + 6}));
}

TEST(Assembler, StartsAtAnOffset) {
  EXPECT_EQ(Lines(1000).Feed("ab\nc\n").got,
            (std::vector<Got>{{"ab", 1000, LineEnd::kLf}, {"c", 1003, LineEnd::kLf}}));
}

TEST(Assembler, LineOfTheCapIsWhole) {
  const std::string line(kLineCap, 'x');
  const auto got = Whole(line + "\n");
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].text, line);
  EXPECT_EQ(got[0].cut_bytes, 0);
}

TEST(Assembler, LongLineKeepsHeadAndTail) {
  std::string line;
  for (size_t i = 0; line.size() < (size_t{10} << 20); ++i) line += std::to_string(i) + " ";
  const std::string bytes = line + "\nnext\n";
  for (const size_t block :
       {size_t{1} << 24, size_t{4096}, kLineCap, kLineTail - 1, kLineCap - kLineTail}) {
    Lines lines;
    for (size_t i = 0; i < bytes.size(); i += block)
      lines.Feed(std::string_view(bytes).substr(i, block));
    ASSERT_EQ(lines.got.size(), 2u) << block;
    const Got& got = lines.got[0];
    EXPECT_EQ(got.text.size(), kLineCap);
    EXPECT_EQ(got.text, line.substr(0, kLineCap - kLineTail) + line.substr(line.size() - kLineTail))
        << block;
    EXPECT_EQ(got.cut_bytes, static_cast<int32_t>(line.size() - kLineCap));
    EXPECT_EQ(lines.got[1], (Got{"next", static_cast<int64_t>(line.size()) + 1, LineEnd::kLf}));
  }
}

TEST(Assembler, EndlessLineTakesBoundedMemory) {
  Lines lines;
  const std::string block(1 << 20, 'z');
  for (int i = 0; i < 64; ++i) lines.Feed(block);
  EXPECT_TRUE(lines.got.empty());
  EXPECT_TRUE(lines.assembler_.has_open_line());
  ArchiveWriter writer;
  writer(lines.assembler_);
  EXPECT_LT(writer.Take().size(), kLineCap + 2 * kLineTail);
}

TEST(Assembler, LostBytesEndTheLineAndAreSaidOnce) {
  EXPECT_EQ(Lines().Feed("ab\ncd").Lose(100).Feed("ef\ngh\n").got,
            (std::vector<Got>{{"ab", 0, LineEnd::kLf},
                              {"cd", 3, LineEnd::kFlush},
                              {"ef", 105, LineEnd::kLf, 0, 100},
                              {"gh", 108, LineEnd::kLf}}));
}

TEST(Assembler, LosesAddUp) {
  EXPECT_EQ(Lines().Lose(3).Lose(4).Lose(0).Feed("x\n").got,
            (std::vector<Got>{{"x", 7, LineEnd::kLf, 0, 7}}));
}

TEST(Assembler, FlushOfNothingIsNothing) {
  EXPECT_TRUE(Lines().Flush().got.empty());
  EXPECT_TRUE(Lines().Feed("a\n").Flush().got.size() == 1);
}

TEST(Assembler, CarriageReturnAtTheEndIsFlushed) {
  Lines lines;
  lines.Feed(" 50%|###\r");
  EXPECT_TRUE(lines.got.empty());
  EXPECT_TRUE(lines.assembler_.has_open_line());
  EXPECT_EQ(lines.Flush(LineEnd::kClosed).got, (std::vector<Got>{{" 50%|###", 0, LineEnd::kCr}}));
}

TEST(Assembler, StateSurvives) {
  Lines before;
  before.Feed("ab\nhalf of a li").Lose(0);
  ArchiveWriter writer;
  writer(before.assembler_);
  const std::string bytes = writer.Take();
  Lines after;
  ArchiveReader reader(bytes);
  reader(after.assembler_);
  ASSERT_TRUE(reader.Complete());
  EXPECT_EQ(after.Feed("ne\n").got, (std::vector<Got>{{"half of a line", 3, LineEnd::kLf}}));
}

}  // namespace
}  // namespace rankscope::logs
