// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include "detectors/logs/text/number.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>

namespace rankscope::logs {
namespace {

TEST(Number, ReadsWhatProgramsPrint) {
  const struct {
    std::string_view text;
    std::string_view number;
    double value;
  } cases[] = {{"12", "12", 12},
               {"-3.5,", "-3.5", -3.5},
               {"+2 ", "+2", 2},
               {"1.244238E+01 |", "1.244238E+01", 12.44238},
               {"5e-05}", "5e-05", 5e-5},
               {".5", ".5", 0.5},
               {"3. The", "3", 3},
               {"7.)", "7.", 7},
               {"10%", "10", 10},
               {"4/18", "4", 4},
               {"1e400", "1e400", HUGE_VAL},
               {"-1e400", "-1e400", -HUGE_VAL},
               {"1e-400", "1e-400", 0},
               {"inf", "inf", HUGE_VAL},
               {"-Infinity,", "-Infinity", -HUGE_VAL},
               {"2.1048e", "", 0}};
  for (const auto& test : cases) {
    const Number number = ReadNumber(test.text);
    EXPECT_EQ(number.text, test.number) << test.text;
    if (number) {
      EXPECT_DOUBLE_EQ(number.value, test.value) << test.text;
    }
  }
  for (const std::string_view nan : {"nan", "NaN", "NAN", "-nan"}) {
    EXPECT_EQ(ReadNumber(nan).text, nan);
    EXPECT_TRUE(std::isnan(ReadNumber(nan).value)) << nan;
  }
}

// The fast way agrees with the library's: exactly where the digits fit a double, else to its last
// place.
TEST(Number, ValuesAreRight) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 20000; ++i) {
    char text[64];
    const double value =
        std::ldexp(static_cast<double>(random() >> 11), static_cast<int>(random() % 120) - 100);
    std::snprintf(text, sizeof text,
                  i % 3 == 0   ? "%.17g"
                  : i % 3 == 1 ? "%.4f"
                               : "%.6E",
                  i % 2 == 0 ? value : -value);
    const double expected = std::strtod(text, nullptr);
    EXPECT_NEAR(ReadNumber(text).value, expected, std::abs(expected) * 2.3e-16) << text;
    EXPECT_EQ(WholeNumber(text).text.empty(), text[0] == '\0') << text;
  }
  for (const char* text : {"0.1", "5e-05", "2.1048", "1.244238E+01", "123456789012345", "0.000001",
                           "18.1145", "-7e22"}) {
    EXPECT_EQ(ReadNumber(text).value, std::strtod(text, nullptr)) << text;
  }
}

TEST(Number, RefusesWordsAndVersions) {
  for (const std::string_view text : {"", "-", "+", ".", "e5", "5th", "1.2.3", "nano", "info",
                                      "infinite", "nanms", "0x10", "--3", "abc", "1_000", "3d"}) {
    EXPECT_FALSE(ReadNumber(text)) << text;
  }
}

TEST(Number, UnitsMayFollowWhereAsked) {
  EXPECT_EQ(ReadNumber("53.1ms", Ending::kUnit).text, "53.1");
  EXPECT_EQ(ReadNumber("3s/it", Ending::kUnit).text, "3");
  EXPECT_FALSE(ReadNumber("nanms", Ending::kUnit));
}

TEST(Number, ThousandsOnlyEveryThreeDigits) {
  const auto read = [](std::string_view text) {
    return ReadNumber(text, Ending::kDelimiter, Thousands::kYes);
  };
  EXPECT_EQ(read("1,250").value, 1250);
  EXPECT_EQ(read("1,250,000 ").text, "1,250,000");
  EXPECT_EQ(read("12,50").text, "12");
  EXPECT_EQ(read("1234,567").text, "1234");
  EXPECT_EQ(read("1,2345").text, "1");
  EXPECT_EQ(read("5, loss").text, "5");
  EXPECT_EQ(ReadNumber("1,250").text, "1");
}

TEST(Number, HostileDigits) {
  EXPECT_FALSE(ReadNumber(std::string(100000, '9')));
  EXPECT_FALSE(WholeNumber(std::string(100000, '9')));
  EXPECT_FALSE(ReadNumber("1" + std::string(5000, '0') + "e5"));
}

TEST(Number, WholeNumberTakesAllOrNothing) {
  EXPECT_TRUE(WholeNumber("1.5"));
  EXPECT_TRUE(WholeNumber("1e400"));
  EXPECT_TRUE(WholeNumber("nan"));
  EXPECT_FALSE(WholeNumber("1.5 "));
  EXPECT_FALSE(WholeNumber("350/1881"));
  EXPECT_FALSE(WholeNumber("12GB"));
  EXPECT_FALSE(WholeNumber(""));
}

TEST(Number, Index) {
  EXPECT_TRUE(IsIndex(ReadNumber("0")));
  EXPECT_TRUE(IsIndex(ReadNumber("123456")));
  EXPECT_FALSE(IsIndex(ReadNumber("-1")));
  EXPECT_FALSE(IsIndex(ReadNumber("1.0")));
  EXPECT_FALSE(IsIndex(ReadNumber("1e3")));
  EXPECT_FALSE(IsIndex(ReadNumber("nan")));
  EXPECT_FALSE(IsIndex(Number()));
}

// Numbers that end within eight bytes are read in one go; all lengths, with all that may follow.
TEST(Number, ShortOnesAreReadAsLongOnesAre) {
  for (const char* const digits :
       {"0",       "7",         "12",     "305",    "4096",  "12345",    "654321",
        "7654321", "0.5",       "2.5000", "18.125", "99.99", "123.4",    "0.05000",
        "12345.6", "1234567.5", "-3.25",  "-0",     "5.",    "1.2.3",    ".5",
        "1e5",     "2.5E-03",   "0.1e",   "7e",     "3-4",   "12345678", "1.2345678"}) {
    for (const char* const behind :
         {"", " ", ",", "}", "|", "/9", "s", "x5", "\t", "\xff\xff", " 12345678", "         "}) {
      const std::string text = std::string(digits) + behind;
      const Number whole = ReadDecimal(text);
      // The same at the end of a text, where eight bytes cannot be read at once.
      const Number cut =
          ReadDecimal(std::string_view(text).substr(0, std::max<size_t>(whole.text.size(), 1)));
      if (!whole) continue;
      EXPECT_EQ(whole.text, cut.text) << text;
      EXPECT_EQ(whole.value, cut.value) << text;
      EXPECT_EQ(whole.value, std::stod(std::string(whole.text))) << text;
    }
  }
  EXPECT_EQ(ReadDecimal("2.5000 lr 0.5").text, "2.5000");
  EXPECT_EQ(ReadDecimal("12345 lr 0.5").value, 12345);
  EXPECT_EQ(ReadDecimal("7654321 lr").value, 7654321);
  EXPECT_EQ(ReadDecimal("-3.25, 'x'").value, -3.25);
  EXPECT_FALSE(ReadDecimal("5. and more"));
}

}  // namespace
}  // namespace rankscope::logs
