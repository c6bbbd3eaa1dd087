// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/model/percent_encode.h"

#include <gtest/gtest.h>

namespace rankscope {
namespace {

TEST(PercentEncode, OnlyUnreservedCharactersStay) {
  EXPECT_EQ(PercentEncode("run-1000_a.b~9Z"), "run-1000_a.b~9Z");
  EXPECT_EQ(PercentEncode("a b&c='\"<>/%+"), "a%20b%26c%3D%27%22%3C%3E%2F%25%2B");
  EXPECT_EQ(PercentEncode(std::string_view("\0\xC3\xA4\x7F", 4)), "%00%C3%A4%7F");
}

}  // namespace
}  // namespace rankscope
