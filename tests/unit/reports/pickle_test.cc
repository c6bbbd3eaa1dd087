// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/reports/pickle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace rankscope::reports {
namespace {

using namespace std::string_literals;

// The value of `body` between PROTO 2 and STOP; the error where it is refused.
std::string Refusal(const std::string& body) {
  const std::string bytes = "\x80\x02"s + body + ".";
  const auto read = ReadPickle(bytes);
  return read ? "" : read.error();
}

TEST(Pickle, NumbersOfAllWidths) {
  const std::string bytes =
      "\x80\x02]q\0(K\x07M\x01\x02J\xff\xff\xff\xff\x8a\x05\0\0\0\0\x80\x8a\x01\xfe\x8a\0"s
      "G\x3f\xe0\0\0\0\0\0\0e."s;
  const auto read = ReadPickle(bytes);
  ASSERT_TRUE(read) << read.error();
  const Tree& tree = read->tree;
  const auto at = [&](size_t i) { return tree.Int(tree.At(read->root, i)); };
  EXPECT_EQ(at(0), 7);
  EXPECT_EQ(at(1), 513);
  EXPECT_EQ(at(2), -1);
  EXPECT_EQ(at(3), -549755813888);  // five bytes, two's complement
  EXPECT_EQ(at(4), -2);
  EXPECT_EQ(at(5), 0);
  EXPECT_EQ(tree.Number(tree.At(read->root, 6)), 0.5);
}

TEST(Pickle, TextsTuplesAndMemo) {
  const std::string bytes = "\x80\x02}q\0(X\x01\0\0\0aq\1\x89X\x01\0\0\0bNh\1\x86q\2u."s;
  const auto read = ReadPickle(bytes);
  ASSERT_TRUE(read) << read.error();
  const Tree& tree = read->tree;
  EXPECT_EQ(tree.Bool(tree.Get(read->root, "a")), false);
  const Tree::Id pair = tree.Get(read->root, "b");
  ASSERT_EQ(tree.size(pair), 2u);
  EXPECT_EQ(tree.kind(tree.At(pair, 0)), Tree::Kind::kNull);
  EXPECT_EQ(tree.String(tree.At(pair, 1)), "a");  // recalled
}

TEST(Pickle, WhatDoesMoreThanHoldDataIsRefusedByName) {
  using testing::HasSubstr;
  EXPECT_THAT(Refusal("cos\nsystem\n"), HasSubstr("GLOBAL"));
  EXPECT_THAT(Refusal("K\1)R"), HasSubstr("REDUCE"));
  EXPECT_THAT(Refusal("(ios\nsystem\n"), HasSubstr("INST"));
  EXPECT_THAT(Refusal("(o"), HasSubstr("OBJ"));
  EXPECT_THAT(Refusal("}}b"), HasSubstr("BUILD"));
  EXPECT_THAT(Refusal("\x81"), HasSubstr("NEWOBJ"));
  EXPECT_THAT(Refusal("\x82\1"), HasSubstr("EXT1"));
  EXPECT_THAT(Refusal("Pid\n"), HasSubstr("PERSID"));
  EXPECT_THAT(Refusal("\x93"), HasSubstr("STACK_GLOBAL"));
  EXPECT_THAT(Refusal("I1\n"), HasSubstr("0x49"));  // data, and of a protocol that nobody writes
}

TEST(Pickle, DamageIsSaidWithItsPlace) {
  using testing::HasSubstr;
  EXPECT_THAT(Refusal("X\xff\xff\0\0abc"s), HasSubstr("ends within a text, at byte 2"));
  EXPECT_THAT(Refusal("e"), HasSubstr("appends to nothing"));
  EXPECT_THAT(Refusal("K\1K\2a"), HasSubstr("appends to no list"));
  EXPECT_THAT(Refusal("}(K\1u"), HasSubstr("a key without a value"));
  EXPECT_THAT(Refusal("h\x05"), HasSubstr("never memorised"));
  EXPECT_THAT(Refusal("K\1r\xff\xff\xff\xff"), HasSubstr("memo too large"));
  EXPECT_THAT(Refusal("\x8a\x09"), HasSubstr("beyond 64 bits"));
  EXPECT_THAT(Refusal("K\1K\2"), HasSubstr("more than one value"));
  EXPECT_FALSE(ReadPickle(""));
  EXPECT_FALSE(ReadPickle("\x80\x02"));
}

TEST(Pickle, AListWithinItselfIsRead) {
  const std::string bytes = "\x80\x02]q\0(h\0K\5e."s;
  const auto read = ReadPickle(bytes);
  ASSERT_TRUE(read) << read.error();
  EXPECT_EQ(read->tree.At(read->root, 0), read->root);
  EXPECT_EQ(read->tree.Int(read->tree.At(read->root, 1)), 5);
}

TEST(Pickle, MemoryIsBounded) {
  std::string bytes = "\x80\x02]"s;
  bytes.append(Tree::kMaxValues / 100, '(');
  std::string body = "(";
  body.append(60000, 'N').append("e");
  std::string many = "\x80\x02]"s;
  for (int i = 0; i < 20; ++i) many += body;
  many += ".";
  const auto read = ReadPickle(many);
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error(), testing::HasSubstr("values"));
  std::string deep = "\x80\x02";
  deep.append(70000, ']').append(".");
  EXPECT_THAT(ReadPickle(deep).error(), testing::HasSubstr("nested too deeply"));
}

}  // namespace
}  // namespace rankscope::reports
