// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include "detectors/logs/text/scanner.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace rankscope::logs {
namespace {

using Hits = std::multiset<std::pair<uint32_t, size_t>>;

Hits ScanAll(const Scanner& scanner, std::string_view text) {
  Hits hits;
  scanner.Scan(text, [&](uint32_t row, size_t at) {
    hits.insert({row, at});
    return true;
  });
  return hits;
}

char Lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
}

Hits Naive(std::span<const Scanner::Literal> literals, std::string_view text, bool folded) {
  Hits hits;
  for (const Scanner::Literal& literal : literals) {
    for (size_t i = 0; i + literal.text.size() <= text.size(); ++i) {
      bool same = true;
      for (size_t j = 0; j < literal.text.size() && same; ++j) {
        same =
            folded ? Lower(text[i + j]) == Lower(literal.text[j]) : text[i + j] == literal.text[j];
      }
      if (same) hits.insert({literal.row, i});
    }
  }
  return hits;
}

// Wherever a literal stands, at even and odd places, at the line's begin and end, it is found
// exactly once.
TEST(Scanner, FindsEveryPlace) {
  const Scanner::Literal literals[] = {
      {"abc", 0}, {"loss", 1}, {"Traceback (most recent", 2}, {"sk-", 3}};
  const Scanner scanner(literals, Scanner::Case::kSensitive);
  for (const Scanner::Literal& literal : literals) {
    for (size_t before = 0; before < 20; ++before) {
      for (size_t after = 0; after < 20; ++after) {
        const std::string text =
            std::string(before, '.') + std::string(literal.text) + std::string(after, '.');
        EXPECT_EQ(ScanAll(scanner, text), (Hits{{literal.row, before}})) << text;
      }
    }
  }
}

TEST(Scanner, AgreesWithTheNaiveSearch) {
  std::mt19937 random(7);
  for (const bool folded : {false, true}) {
    for (int round = 0; round < 300; ++round) {
      std::vector<std::string> words;
      for (int i = 0; i < 12; ++i) {
        std::string word;
        const size_t size = 3 + random() % 6;
        while (word.size() < size) word.push_back("abAB_\xe2"[random() % 6]);
        words.push_back(word);
      }
      std::vector<Scanner::Literal> literals;
      for (uint32_t i = 0; i < words.size(); ++i) literals.push_back({words[i], i});
      const Scanner scanner(literals, folded ? Scanner::Case::kFolded : Scanner::Case::kSensitive);
      std::string text;
      const size_t size = random() % 60;
      while (text.size() < size) text.push_back("abAB_\xe2"[random() % 6]);
      EXPECT_EQ(ScanAll(scanner, text), Naive(literals, text, folded)) << text;
    }
  }
}

TEST(Scanner, StopsWhenTold) {
  const Scanner::Literal literals[] = {{"loss", 0}};
  const Scanner scanner(literals, Scanner::Case::kSensitive);
  int hits = 0;
  scanner.Scan("loss loss loss loss loss loss loss", [&](uint32_t, size_t) { return ++hits < 2; });
  EXPECT_EQ(hits, 2);
}

TEST(Scanner, ShortAndBinaryTexts) {
  const Scanner::Literal literals[] = {{"abc", 0}, {std::string_view("a\0b\xff", 4), 1}};
  const Scanner scanner(literals, Scanner::Case::kSensitive);
  EXPECT_TRUE(ScanAll(scanner, "").empty());
  EXPECT_TRUE(ScanAll(scanner, "a").empty());
  EXPECT_TRUE(ScanAll(scanner, "ab").empty());
  EXPECT_EQ(ScanAll(scanner, "abc"), (Hits{{0, 0}}));
  EXPECT_EQ(ScanAll(scanner, std::string_view("\0a\0b\xff\0", 6)), (Hits{{1, 1}}));
}

}  // namespace
}  // namespace rankscope::logs
