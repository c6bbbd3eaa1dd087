// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/http/exposition.h"

#include <optional>

#include "exporter/http/compression.h"
#include "exporter/metrics/encoder.h"

namespace rankscope::http {

Page Exposition::Whole(metrics::Format format, bool gzip) const {
  Slot& slot = slots_[static_cast<size_t>(format)][gzip ? 1 : 0];
  std::call_once(slot.once, [&] {
    if (gzip) {
      std::optional<std::string> packed = Gzip(*Whole(format, false));
      if (packed) slot.page = std::make_shared<const std::string>(*std::move(packed));
      return;
    }
    // More than most have. Memory that is never written costs nothing.
    constexpr size_t kBytesOfSeries = 100;
    std::string bytes;
    bytes.reserve(snapshot_->SeriesCount() * kBytesOfSeries);
    metrics::Append(format, *snapshot_, metrics::GroupSet::All(), bytes);
    slot.page = std::make_shared<const std::string>(std::move(bytes));
  });
  return slot.page;
}

}  // namespace rankscope::http
