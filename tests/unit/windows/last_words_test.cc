// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/windows/last_words.h"

#include <gtest/gtest.h>

#include <string>

namespace rankscope::windows {
namespace {

TEST(LastWords, OfNothing) {
  const LastWords words;
  EXPECT_EQ(words.At(0).offset, -1);
  EXPECT_EQ(words.At(LastWords::kLines + 7).offset, -1);
}

TEST(LastWords, NewestFirstAndOnlyWhatSaysSomething) {
  LastWords words;
  words.Add(1, 0, "test accuracy 0.71", {1});
  words.Add(1, 20, "=====================", {1});
  words.Add(1, 40, "", {1});
  words.Add(1, 50, "all done", {1});
  EXPECT_EQ(words.At(0).text, "all done");
  EXPECT_EQ(words.At(1).text, "test accuracy 0.71");
  EXPECT_EQ(words.At(2).offset, -1);
}

TEST(LastWords, OfAProgressBarOnlyItsNewestState) {
  LastWords words;
  words.Add(1, 0, "loading", {1});
  for (int i = 1; i < 100; ++i) {
    words.Add(1, i * 40, " " + std::to_string(i) + "%|##   | " + std::to_string(i) + "/100", {1});
  }
  EXPECT_EQ(words.At(0).text, " 99%|##   | 99/100");
  EXPECT_TRUE(words.At(0).bar);
  EXPECT_EQ(words.At(1).text, "loading");
}

TEST(LastWords, IsBoundedInLinesAndBytes) {
  LastWords words;
  for (size_t i = 0; i < 3 * LastWords::kLines; ++i)
    words.Add(1, static_cast<int64_t>(i), std::string(5000, 'x'), {1});
  EXPECT_EQ(words.At(0).text.size(), LastWords::kLongest);
  EXPECT_EQ(words.At(LastWords::kLines - 1).offset, static_cast<int64_t>(2 * LastWords::kLines));
  EXPECT_EQ(words.At(LastWords::kLines).offset, -1);
}

TEST(LastWords, KnowsTrainingRecords) {
  LastWords words;
  words.Add(1, 0, "step 1 loss 2.5", {1});
  words.MarkRecord();
  words.Add(1, 16, "done", {1});
  EXPECT_FALSE(words.At(0).record);
  EXPECT_TRUE(words.At(1).record);
}

}  // namespace
}  // namespace rankscope::windows
