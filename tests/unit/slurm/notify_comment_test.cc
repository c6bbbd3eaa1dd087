// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/slurm/notify_comment.h"

#include <gtest/gtest.h>

namespace rankscope::exporter::slurm {
namespace {

TEST(WishInComment, IsAWordOfTheComment) {
  EXPECT_EQ(WishInComment("rankscope:notify=chat"), "chat");
  EXPECT_EQ(WishInComment("run 7 of the paper; rankscope:notify=mail:me@example.org,chat,completed "
                          "thanks"),
            "mail:me@example.org,chat,completed");
  EXPECT_EQ(WishInComment("\"rankscope:notify=me@example.org\""), "me@example.org");
}

TEST(WishInComment, IsNoUrlAndNothingThatALetterOfAMailCouldBe) {
  EXPECT_EQ(WishInComment("rankscope:notify=https://evil.example/hook"), "");
  EXPECT_EQ(WishInComment("rankscope:notify=a@b\r\nBcc:x@y"), "");
  EXPECT_EQ(WishInComment("rankscope:notify=a@b%0aBcc"), "");
  EXPECT_EQ(WishInComment("rankscope:notify=" + std::string(2000, 'a')), "");
}

TEST(WishInComment, OfOtherCommentsThereIsNone) {
  EXPECT_EQ(WishInComment(""), "");
  EXPECT_EQ(WishInComment("(null)"), "");
  EXPECT_EQ(WishInComment("rankscope:notify="), "");
  EXPECT_EQ(WishInComment("notify=chat"), "");
  EXPECT_EQ(WishInComment("norankscope:notify=chat"), "") << "another program's";
  EXPECT_EQ(WishInComment("norankscope:notify=chat rankscope:notify=ops"), "ops");
}

}  // namespace
}  // namespace rankscope::exporter::slurm
