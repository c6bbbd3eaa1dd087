// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include "detectors/model/hidden_text.h"

#include <gtest/gtest.h>

namespace rankscope {
namespace {

TEST(HiddenText, WhatNobodySeesIsWrittenOut) {
  EXPECT_EQ(Legible("loss \u202e5.0\u202c"), "loss \\u202e5.0\\u202c");
  EXPECT_EQ(Legible("a\u2066b\u2069\u200f\u061c"), "a\\u2066b\\u2069\\u200f\\u061c");
  EXPECT_EQ(Legible("\ufeffzero\u200bwidth"), "\\ufeffzero\\u200bwidth");
  EXPECT_EQ(Legible("tag \U000E0041"), "tag \\udb40\\udc41");
  EXPECT_EQ(Legible("\x1b[2J\x7f \xc2\x9b"), "\\u001b[2J\\u007f \\u009b");
  EXPECT_EQ(Legible("\xe2\x80"), "\ufffd\ufffd");
}

TEST(HiddenText, WhatIsSeenStays) {
  for (const std::string_view text :
       {"step 5 loss 4.2\nnext line", "\u05e9\u05dc\u05d5\u05dd", "\u0645\u0631\u062d\u0628\u0627",
        "\u65e5\u672c\u8a9e \u2014 \u2192 \u2588 \U0001F600", "\u00e9\u00a0\u2026"}) {
    EXPECT_EQ(Legible(text), text);
  }
}

}  // namespace
}  // namespace rankscope
