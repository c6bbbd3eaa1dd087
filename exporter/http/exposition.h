// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The pages of metrics of one tick. Each is encoded when the first client asks for it and shared by
// all who ask in the same tick, so that no number of clients costs more than one encoding a tick
// and format, and a slow reader holds no copy of its own. Any thread.
#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "exporter/metrics/format.h"
#include "exporter/metrics/snapshot.h"

namespace rankscope::http {

using Page = std::shared_ptr<const std::string>;

class Exposition {
 public:
  explicit Exposition(std::shared_ptr<const metrics::Snapshot> snapshot =
                          std::make_shared<const metrics::Snapshot>())
      : snapshot_(std::move(snapshot)) {}

  const metrics::Snapshot& snapshot() const { return *snapshot_; }

  // All families. `gzip`: compressed; null when that failed.
  Page Whole(metrics::Format format, bool gzip) const;

 private:
  struct Slot {
    std::once_flag once;
    Page page;
  };
  std::shared_ptr<const metrics::Snapshot> snapshot_;
  // By format, then plain and compressed.
  mutable std::array<std::array<Slot, 2>, metrics::kFormatNames.size()> slots_;
};

}  // namespace rankscope::http
