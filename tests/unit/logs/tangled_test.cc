// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include "detectors/logs/failures/tangled.h"

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

TEST(Tangled, CaretsOfAnotherWriterBetweenThePieces) {
  EXPECT_EQ(WithoutCarets("json.decoder.^^JSONDecodeError^: Expecting value"),
            "json.decoder.JSONDecodeError: Expecting value");
  EXPECT_EQ(WithoutCarets("json.decoder^.JSONDecodeError^^^"), "json.decoder.JSONDecodeError");
  EXPECT_EQ(WithoutCarets("^^KeyError: ^^ "), "KeyError");
  EXPECT_EQ(WithoutCarets(".JSONDecodeError: Expecting value"), "JSONDecodeError: Expecting value");
  // A message keeps its own.
  EXPECT_EQ(WithoutCarets("SyntaxError^: bad 'a ^ b'"), "SyntaxError: bad 'a ^ b'");
  for (const char* one_writer : {"ValueError: a ^ b", "json.decoder.JSONDecodeError: x", "", "^^^"})
    EXPECT_EQ(WithoutCarets(one_writer), "") << one_writer;
}

TEST(Tangled, MessagesOnTheLineBelow) {
  const std::string_view type = "json.decoder.JSONDecodeError";
  EXPECT_EQ(WithoutPieces(type, ": Expecting value"), "Expecting value");
  EXPECT_EQ(WithoutPieces(type, "Expecting valuejson.decoder"), "Expecting valuejson.decoder");
  EXPECT_EQ(WithoutPieces(type, ": Expecting valuejson.decoder.JSONDecodeError"),
            "Expecting value");
  EXPECT_EQ(WithoutPieces(type, "json.decoder: Expecting value.JSONDecodeError: Expecting value"),
            "Expecting value");
  EXPECT_EQ(WithoutPieces("KeyError", "'id'"), "'id'");
}

// What `python -u` writes of an exception with a module, 3.11's carets one by one.
std::vector<std::string> Pieces(std::string_view module, std::string_view name,
                                std::string_view message) {
  std::vector<std::string> pieces = {"Traceback (most recent call last):\n",
                                     "  File \"/job/train.py\", line 90, in <module>\n",
                                     "    ",
                                     "main()",
                                     "\n",
                                     "  File \"/job/train.py\", line 70, in build\n",
                                     "    ",
                                     "return build(make(name))",
                                     "\n",
                                     "    "};
  if (!module.empty()) {
    pieces.insert(pieces.end(), 7, " ");
    pieces.insert(pieces.end(), 16, "^");
    pieces.insert(pieces.end(), {"\n", std::string(module), "."});
  } else {
    pieces.pop_back();
  }
  pieces.insert(pieces.end(), {std::string(name), ": ", std::string(message), "\n"});
  return pieces;
}

// One order in which `writers` may write. `stays`: how likely the one who wrote writes again.
std::string Shuffled(const std::vector<std::string>& pieces, size_t writers, double stays,
                     std::mt19937& random) {
  std::vector<size_t> next(writers);
  std::uniform_real_distribution<double> chance(0, 1);
  std::string text;
  size_t writer = 0;
  for (size_t left = writers * pieces.size(); left > 0; --left) {
    if (chance(random) >= stays) writer = random() % writers;
    while (next[writer] == pieces.size()) writer = (writer + 1) % writers;
    text += pieces[next[writer]++];
  }
  return text;
}

struct Reading {
  int whole = 0;  // type and message as raised
  int typed = 0;  // the type at least
};

Reading ReadShuffled(std::string_view module, std::string_view name, std::string_view message,
                     double stays, int runs) {
  const std::vector<std::string> pieces = Pieces(module, name, message);
  const std::string type =
      module.empty() ? std::string(name) : std::string(module) + "." + std::string(name);
  Reading reading;
  for (int seed = 0; seed < runs; ++seed) {
    std::mt19937 random(static_cast<uint32_t>(seed));
    const std::string text = Shuffled(pieces, 2 + seed % 3, stays, random);
    bool whole = false, typed = false;
    for (const Incident& incident : ReadText(text).incidents) {
      const bool is_type = incident.exception_type == type || incident.exception_type == name;
      typed |= is_type;
      whole |= incident.exception_type == type && incident.message == message;
      // Nothing that no program raised.
      EXPECT_EQ(incident.exception_type.find("ErrorValue"), std::string::npos) << text;
    }
    reading.whole += whole;
    reading.typed += typed;
  }
  return reading;
}

// Uniformly random writes tangle far worse than real ranks do; the rest is honestly unread.
TEST(Tangled, RanksThatDieAtOnceAreReadInAnyOrderOfTheirWrites) {
  constexpr int kRuns = 2000;
  const Reading plain = ReadShuffled("", "ValueError", "unknown optimizer 'adamx'", 0, kRuns);
  EXPECT_GT(plain.whole, kRuns * 7 / 10);
  RecordProperty("read", plain.whole);
}

// As schedulers let them: a writer mostly writes on.
TEST(Tangled, RanksThatDieAtOnceWithModulesAndCarets) {
  constexpr int kRuns = 1000;
  const Reading dotted =
      ReadShuffled("json.decoder", "JSONDecodeError",
                   "Expecting ',' delimiter: line 1 column 16 (char 15)", 0.7, kRuns);
  RecordProperty("whole", dotted.whole);
  RecordProperty("typed", dotted.typed);
  EXPECT_GT(dotted.whole, kRuns * 9 / 10);
  EXPECT_GT(dotted.typed, kRuns * 98 / 100);
}

TEST(Tangled, AShortMessageOfEqualParts) {
  const UntangledLine line = Untangle("KeyErrorKeyError: : 'id''id'");
  EXPECT_EQ(line.type, "KeyError");
  EXPECT_EQ(line.message, "'id'");
  EXPECT_EQ(line.copies, 2);
}

}  // namespace
}  // namespace rankscope::logs
