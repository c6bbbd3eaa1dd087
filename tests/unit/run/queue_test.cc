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

TEST(Queue, KeepsTheNewestAndCountsWhatItPushedOut) {
  Queue queue;
  queue.PushBytes(kStdout, std::string(Queue::kMaxBytes - 1, 'x'), {1});
  queue.PushBytes(kStdout, "12345", {2});
  queue.PushBytes(kStdout, "y", {3});
  const auto items = queue.TakeUntil(MonotonicNow());
  ASSERT_EQ(items.size(), 2u);
  EXPECT_EQ(items[0].bytes, "12345");
  EXPECT_EQ(items[0].lost_before, static_cast<int64_t>(Queue::kMaxBytes) - 1);
  EXPECT_EQ(items[1].lost_before, 0);
}

TEST(Queue, AFloodOnOneStreamLeavesTheOtherAlone) {
  Queue queue;
  queue.PushBytes(kStderr, "Traceback", {1});
  const std::string block(size_t{1} << 18, 'x');
  constexpr int64_t kBlocks = 200;
  for (int64_t i = 0; i < kBlocks; ++i) queue.PushBytes(kStdout, block, {2});
  int64_t bytes = 0;
  int64_t lost = 0;
  std::string err;
  for (const QueueItem& item : queue.TakeUntil(MonotonicNow())) {
    if (item.stream == kStderr) err += item.bytes;
    if (item.stream == kStdout) bytes += static_cast<int64_t>(item.bytes.size());
    lost += item.lost_before;
  }
  EXPECT_EQ(err, "Traceback");
  EXPECT_EQ(bytes + lost, kBlocks * static_cast<int64_t>(block.size()));
  EXPECT_LE(bytes, static_cast<int64_t>(Queue::kMaxBytes));
}

TEST(Queue, ALossThatNoBlockFollowsIsToldAtTheEnd) {
  Queue queue;
  queue.PushBytes(kStderr, std::string(Queue::kMaxBytes / 2 + 2, 'e'), {1});
  queue.PushBytes(kStdout, std::string(Queue::kMaxBytes / 2, 'o'), {2});
  QueueItem closed;
  closed.kind = QueueItem::Kind::kClosed;
  closed.stream = kStderr;
  queue.Push(closed);
  const auto items = queue.TakeUntil(MonotonicNow());
  ASSERT_EQ(items.size(), 2u);
  EXPECT_EQ(items[0].stream, kStdout);
  EXPECT_EQ(items[1].lost_before, static_cast<int64_t>(Queue::kMaxBytes) / 2 + 2);
}

TEST(Queue, BoundsTheNumberOfBlocksToo) {
  Queue queue;
  for (size_t i = 0; i < Queue::kMaxBlocks + 7; ++i) queue.PushBytes(kStdout, "x", {1});
  const auto items = queue.TakeUntil(MonotonicNow());
  EXPECT_EQ(items.size(), Queue::kMaxBlocks);
  EXPECT_EQ(items[0].lost_before, 7);
}

}  // namespace
}  // namespace rankscope::run
