// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What requests are answered from: the state and the metrics of one tick, always of the same tick.
// The loop thread publishes, every HTTP thread reads.
#pragma once

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "exporter/http/exposition.h"
#include "exporter/http/job_document.h"
#include "exporter/http/part.h"
#include "exporter/metrics/published.h"

namespace rankscope::http {

// No pointer is ever null.
class State {
 public:
  State() : State(std::make_shared<const metrics::Published>(), {}, nullptr) {}
  // `exposition`: null: of no metrics. The documents of jobs that `before` has, too, are taken from
  // there; it may be null.
  State(std::shared_ptr<const metrics::Published> published,
        std::shared_ptr<const Exposition> exposition, const State* before);

  const metrics::Published& published() const { return *published_; }
  const Exposition& exposition() const { return *exposition_; }
  // Of the published jobs, in their order.
  const std::vector<std::shared_ptr<const JobDocument>>& documents() const { return documents_; }

 private:
  std::shared_ptr<const metrics::Published> published_;
  std::shared_ptr<const Exposition> exposition_;
  std::vector<std::shared_ptr<const JobDocument>> documents_;
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
