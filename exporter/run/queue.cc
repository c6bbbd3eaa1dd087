// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/run/queue.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace rankscope::run {

void Queue::PushBytes(int stream, std::string_view bytes, Timestamp t) {
  const std::lock_guard lock(mutex_);
  while (blocks_ > 0 && (bytes_[0] + bytes_[1] + bytes.size() > kMaxBytes || blocks_ >= kMaxBlocks))
    DropOldest();
  QueueItem item;
  item.stream = stream;
  item.t = t;
  item.bytes = bytes;
  item.lost_before = std::exchange(lost_[static_cast<size_t>(stream)], 0);
  bytes_[static_cast<size_t>(stream)] += bytes.size();
  ++blocks_;
  items_.push_back(std::move(item));
  if (items_.size() == 1) filled_.notify_one();
}

void Queue::DropOldest() {
  const int stream = bytes_[kStdout] >= bytes_[kStderr] ? kStdout : kStderr;
  const auto of_stream = [stream](const QueueItem& item) {
    return item.kind == QueueItem::Kind::kBytes && item.stream == stream;
  };
  const auto oldest = std::find_if(items_.begin(), items_.end(), of_stream);
  if (oldest == items_.end()) return;
  const int64_t lost = oldest->lost_before + static_cast<int64_t>(oldest->bytes.size());
  bytes_[static_cast<size_t>(stream)] -= oldest->bytes.size();
  --blocks_;
  const auto after = items_.erase(oldest);
  const auto next = std::find_if(after, items_.end(), of_stream);
  (next == items_.end() ? lost_[static_cast<size_t>(stream)] : next->lost_before) += lost;
}

void Queue::Push(QueueItem item) {
  const std::lock_guard lock(mutex_);
  if (item.kind == QueueItem::Kind::kClosed) {
    item.lost_before = std::exchange(lost_[static_cast<size_t>(item.stream)], 0);
  }
  items_.push_back(std::move(item));
  if (items_.size() == 1) filled_.notify_one();
}

std::deque<QueueItem> Queue::TakeUntil(Timestamp deadline) {
  // steady_clock is CLOCK_MONOTONIC on Linux, and so is its epoch.
  const std::chrono::steady_clock::time_point until{std::chrono::nanoseconds(deadline.ns)};
  std::unique_lock lock(mutex_);
  filled_.wait_until(lock, until, [this] { return !items_.empty(); });
  bytes_ = {};
  blocks_ = 0;
  return std::exchange(items_, {});
}

}  // namespace rankscope::run
