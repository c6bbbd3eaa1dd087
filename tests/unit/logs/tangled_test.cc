// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include "detectors/logs/tangled.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "tests/unit/logs/feed_lines.h"

namespace rankscope::logs {
namespace {

TEST(Tangled, TakesEqualTextsApart) {
  struct Row {
    std::string_view text, type, message;
    int copies;
  };
  const Row rows[] = {
      {"ValueErrorValueError: : unknown optimizer 'x'unknown optimizer 'x'", "ValueError",
       "unknown optimizer 'x'", 2},
      {"ValueErrorValueErrorValueError: : : bad configbad configbad config", "ValueError",
       "bad config", 3},
      {"ValueErrorValueError: : bad config", "ValueError", "bad config", 2},
      {"ValueErrorValueError: bad config: bad config", "ValueError", "bad config", 2},
      {"ValueError: ValueError: bad configbad config", "ValueError", "bad config", 2},
      {"ValueError: bad configValueError: bad config", "ValueError", "bad config", 2},
      {"ValueError: bad configValueError", "ValueError", "bad config", 2},
      {"json.decoderjson.decoder..JSONDecodeErrorJSONDecodeError: : Expecting valueExpecting value",
       "json.decoder.JSONDecodeError", "Expecting value", 2},
      {"KeyboardInterruptKeyboardInterrupt", "KeyboardInterrupt", "", 2},
  };
  for (const Row& row : rows) {
    const UntangledLine line = Untangle(row.text);
    EXPECT_EQ(line.type, row.type) << row.text;
    EXPECT_EQ(line.message, row.message) << row.text;
    EXPECT_EQ(line.copies, row.copies) << row.text;
  }
}

TEST(Tangled, LeavesOneWritersLineAlone) {
  for (const char* text : {
           "ValueError: unknown optimizer 'x'",
           "ValueError: no such option: ",
           "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB",
           "RuntimeError: size mismatch for a.weight: size mismatch for b.weight",
           "KeyError: 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'",
           "AssertionError",
           "Epoch 1: loss 0.5 loss 0.5",
           "",
           "::::",
       }) {
    EXPECT_EQ(Untangle(text).type, "") << text;
  }
}

// What `python -u` writes, write by write.
std::vector<std::string> Pieces() {
  return {"Traceback (most recent call last):\n",
          "  File \"/job/train.py\", line 90, in <module>\n",
          "    ",
          "main()",
          "\n",
          "  File \"/job/train.py\", line 70, in build\n",
          "    ",
          "raise ValueError(f\"unknown optimizer '{name}'\")",
          "\n",
          "ValueError",
          ": ",
          "unknown optimizer 'adamx'",
          "\n"};
}

TEST(Tangled, RanksThatDieAtOnceAreReadInAnyOrderOfTheirWrites) {
  int read = 0;
  constexpr int kRuns = 2000;
  for (int seed = 0; seed < kRuns; ++seed) {
    std::mt19937 random(static_cast<uint32_t>(seed));
    const size_t writers = 2 + seed % 3;
    const std::vector<std::string> pieces = Pieces();
    std::vector<size_t> next(writers);
    std::string text;
    for (size_t left = writers * pieces.size(); left > 0; --left) {
      size_t writer = random() % writers;
      while (next[writer] == pieces.size()) writer = (writer + 1) % writers;
      text += pieces[next[writer]++];
    }
    const Records kept = ReadText(text);
    bool found = false;
    for (const Incident& incident : kept.incidents) {
      found |= incident.exception_type == "ValueError" &&
               incident.message == "unknown optimizer 'adamx'";
      // Nothing that no program raised.
      EXPECT_EQ(incident.exception_type.find("ErrorValue"), std::string::npos) << text;
    }
    read += found;
  }
  // Uniformly random writes tangle far worse than real ranks do; the rest is honestly unread.
  EXPECT_GT(read, kRuns * 7 / 10);
  RecordProperty("read", read);
}

TEST(Tangled, AShortMessageOfEqualParts) {
  const UntangledLine line = Untangle("KeyErrorKeyError: : 'id''id'");
  EXPECT_EQ(line.type, "KeyError");
  EXPECT_EQ(line.message, "'id'");
  EXPECT_EQ(line.copies, 2);
}

}  // namespace
}  // namespace rankscope::logs
