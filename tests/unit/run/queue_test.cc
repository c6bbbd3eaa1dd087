// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/run/queue.h"

#include <gtest/gtest.h>

#include <string>

#include "exporter/run/clock.h"

namespace rankscope::run {
namespace {

TEST(Queue, GivesEverythingInOrder) {
  Queue queue;
  queue.PushBytes(kStdout, "a", {1});
  queue.PushBytes(kStderr, "b", {2});
  const auto items = queue.TakeUntil(MonotonicNow());
  ASSERT_EQ(items.size(), 2u);
  EXPECT_EQ(items[0].bytes + items[1].bytes, "ab");
  EXPECT_EQ(items[1].stream, kStderr);
  EXPECT_TRUE(queue.TakeUntil(MonotonicNow()).empty());
}

TEST(Queue, CountsPerStreamWhatDoesNotFitAndSaysSoOnce) {
  Queue queue;
  queue.PushBytes(kStdout, std::string(Queue::kMaxBytes - 1, 'x'), {1});
  queue.PushBytes(kStdout, "12345", {2});
  queue.PushBytes(kStderr, "123", {2});
  queue.PushBytes(kStdout, "y", {3});  // fits
  auto items = queue.TakeUntil(MonotonicNow());
  ASSERT_EQ(items.size(), 2u);
  EXPECT_EQ(items[0].lost_before, 0);
  EXPECT_EQ(items[1].lost_before, 5);
  QueueItem closed;
  closed.kind = QueueItem::Kind::kClosed;
  closed.stream = kStderr;
  queue.Push(closed);
  closed.stream = kStdout;
  queue.Push(closed);
  items = queue.TakeUntil(MonotonicNow());
  EXPECT_EQ(items[0].lost_before, 3);
  EXPECT_EQ(items[1].lost_before, 0);
}

TEST(Queue, BoundsTheNumberOfBlocksToo) {
  Queue queue;
  for (size_t i = 0; i < Queue::kMaxBlocks + 7; ++i) queue.PushBytes(kStdout, "x", {1});
  EXPECT_EQ(queue.TakeUntil(MonotonicNow()).size(), Queue::kMaxBlocks);
  queue.PushBytes(kStdout, "x", {1});
  EXPECT_EQ(queue.TakeUntil(MonotonicNow())[0].lost_before, 7);
}

}  // namespace
}  // namespace rankscope::run
