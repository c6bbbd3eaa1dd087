// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/loop/logger.h"

#include <gtest/gtest.h>

namespace rankscope::exporter {
namespace {

TEST(LogfmtBody, QuotesWhatAReaderWouldSplit) {
  EXPECT_EQ(LogfmtBody("up", {{"source", "procfs"}}), "msg=up source=procfs");
  EXPECT_EQ(LogfmtBody("is up", {{"reason", "a=b"}}), "msg=\"is up\" reason=\"a=b\"");
  EXPECT_EQ(LogfmtBody("x", {{"k", ""}}), "msg=x k=\"\"");
  EXPECT_EQ(LogfmtBody("x", {{"k", "a\nlevel=error"}}), "msg=x k=\"a\\nlevel=error\"");
  EXPECT_EQ(LogfmtBody("x", {{"k", "say \"hi\""}}), "msg=x k=\"say \\\"hi\\\"\"");
}

}  // namespace
}  // namespace rankscope::exporter
