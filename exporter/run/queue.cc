// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/run/queue.h"

#include <chrono>
#include <utility>

namespace rankscope::run {

void Queue::PushBytes(int stream, std::string_view bytes, Timestamp t) {
  const std::lock_guard lock(mutex_);
  int64_t& lost = lost_[static_cast<size_t>(stream)];
  if (bytes_ + bytes.size() > kMaxBytes || items_.size() >= kMaxBlocks) {
    lost += static_cast<int64_t>(bytes.size());
    return;
  }
  QueueItem item;
  item.stream = stream;
  item.t = t;
  item.bytes = bytes;
  item.lost_before = std::exchange(lost, 0);
  bytes_ += bytes.size();
  items_.push_back(std::move(item));
  if (items_.size() == 1) filled_.notify_one();
}

void Queue::Push(QueueItem item) {
  const std::lock_guard lock(mutex_);
  if (item.kind == QueueItem::Kind::kClosed) {
    item.lost_before = std::exchange(lost_[static_cast<size_t>(item.stream)], 0);
  }
  items_.push_back(std::move(item));
  if (items_.size() == 1) filled_.notify_one();
}

std::vector<QueueItem> Queue::TakeUntil(Timestamp deadline) {
  // steady_clock is CLOCK_MONOTONIC on Linux, and so is its epoch.
  const std::chrono::steady_clock::time_point until{std::chrono::nanoseconds(deadline.ns)};
  std::unique_lock lock(mutex_);
  filled_.wait_until(lock, until, [this] { return !items_.empty(); });
  bytes_ = 0;
  return std::exchange(items_, {});
}

}  // namespace rankscope::run
