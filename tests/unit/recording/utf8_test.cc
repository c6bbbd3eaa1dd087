// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/model/utf8.h"

#include <gtest/gtest.h>

#include "detectors/proto/recording.pb.h"

namespace rankscope {
namespace {

TEST(Utf8, AcceptsWhatTheStandardAccepts) {
  EXPECT_TRUE(IsUtf8(""));
  EXPECT_TRUE(IsUtf8("plain text, longer than eight bytes"));
  EXPECT_TRUE(IsUtf8("\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80"));
  EXPECT_TRUE(IsUtf8("\xEF\xBF\xBF \xF4\x8F\xBF\xBF \xED\x9F\xBF \xEE\x80\x80"));
}

TEST(Utf8, RefusesOverlongsSurrogatesAndCuts) {
  for (const char* bad :
       {"\x80", "\xC0\xAF", "\xC1\xBF", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xF0\x8F\xBF\xBF",
        "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF", "\xC3", "\xE2\x82", "\xF0\x9F\x98",
        "1234567\xE9", "12345678\xE9", "123456789\xE9 "}) {
    EXPECT_FALSE(IsUtf8(bad)) << bad;
  }
}

TEST(Utf8, ReplacesEachBadByteAndKeepsTheRest) {
  EXPECT_EQ(ToUtf8("a\xFF\xC3\xA9\xE2\x82z"), "a\xEF\xBF\xBD\xC3\xA9\xEF\xBF\xBD\xEF\xBF\xBDz");
}

// Protobuf refuses to read a string field that is not UTF-8, so we must never call valid what it
// refuses.
TEST(Utf8, AgreesWithProtobuf) {
  const uint8_t edges[] = {0x00, 0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF,
                           0xC0, 0xC1, 0xC2, 0xDF, 0xE0, 0xE1, 0xEC, 0xED, 0xEE,
                           0xEF, 0xF0, 0xF1, 0xF3, 0xF4, 0xF5, 0xFF};
  for (const uint8_t a : edges) {
    for (const uint8_t b : edges) {
      for (const uint8_t c : edges) {
        for (const uint8_t d : edges) {
          const std::string text = {static_cast<char>(a), static_cast<char>(b),
                                    static_cast<char>(c), static_cast<char>(d)};
          if (!IsUtf8(text)) continue;
          const std::string wire = std::string("\x0A\x04", 2) + text;  // KeyValue.key
          proto::KeyValue pair;
          ASSERT_TRUE(pair.ParseFromString(wire))
              << int{a} << ' ' << int{b} << ' ' << int{c} << ' ' << int{d};
        }
      }
    }
  }
}

}  // namespace
}  // namespace rankscope
