// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What requests are answered from: the state and the metrics of one tick, always of the same tick.
// The loop thread publishes, every HTTP thread reads.
#pragma once

#include <memory>
#include <mutex>
#include <utility>

#include "exporter/http/exposition.h"
#include "exporter/metrics/published.h"

namespace rankscope::http {

// Neither pointer is ever null.
struct State {
  std::shared_ptr<const metrics::Published> published =
      std::make_shared<const metrics::Published>();
  std::shared_ptr<const Exposition> exposition = std::make_shared<const Exposition>();
};

class StateHolder {
 public:
  void Publish(std::shared_ptr<const State> next) {
    const std::lock_guard lock(mutex_);
    current_.swap(next);  // the old one is freed outside the lock
  }
  // Never null.
  std::shared_ptr<const State> Current() const {
    const std::lock_guard lock(mutex_);
    return current_;
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const State> current_ = std::make_shared<const State>();
};

}  // namespace rankscope::http
