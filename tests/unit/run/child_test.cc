// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/run/child.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace rankscope::run {
namespace {

TEST(Child, ExitCodes) {
  EXPECT_EQ(ExitCodeOf(0), 0);
  EXPECT_EQ(ExitCodeOf(42 << 8), 42);
  EXPECT_EQ(ExitCodeOf(9), 137);
  EXPECT_EQ(ExitCodeOf(11 | 0x80), 139);  // with a core dump
  EXPECT_EQ(ExitCodeOfExecFailure(ENOENT), 127);
  EXPECT_EQ(ExitCodeOfExecFailure(ENOTDIR), 127);
  EXPECT_EQ(ExitCodeOfExecFailure(EACCES), 126);
  EXPECT_EQ(ExitCodeOfExecFailure(E2BIG), 126);
}

TEST(Child, MergedStreamsShareOnePipe) {
  StandardStreams streams;
  streams.merged = true;
  const auto pipes = MakePipes(streams, true);
  ASSERT_TRUE(pipes);
  EXPECT_TRUE(pipes->read[kStdout]);
  EXPECT_FALSE(pipes->read[kStderr]);
  streams = {};
  streams.open[kStdout] = false;
  const auto one = MakePipes(streams, true);
  ASSERT_TRUE(one);
  EXPECT_FALSE(one->read[kStdout]);
  EXPECT_TRUE(one->read[kStderr]);
}

}  // namespace
}  // namespace rankscope::run
