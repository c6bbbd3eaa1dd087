// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The exporter's own low-rate metrics, kept in a prometheus-cpp Registry, and the seam through
// which any other prometheus::Collectable joins /metrics. Loop thread.
#pragma once

#include <prometheus/collectable.h>
#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "exporter/metrics/catalog.h"
#include "exporter/metrics/labels.h"

namespace rankscope::metrics {

// Why series are left out: the cap, by what they belong to; or a name that is no row of the
// catalogue.
std::string_view DropReason(Keep keep);
inline constexpr std::string_view kOfEndedJob = "cap_ended";
inline constexpr std::string_view kNotCatalogued = "not_catalogued";

class SelfMetrics {
 public:
  explicit SelfMetrics(const std::string& version);

  void CountDropped(std::string_view reason, size_t series);
  void SetSeries(size_t series) { series_->Set(static_cast<double>(series)); }

  const prometheus::Collectable& registry() const { return registry_; }
  size_t series_count() const { return series_count_; }  // that the registry shows, always

 private:
  prometheus::Registry registry_;
  prometheus::Gauge* series_;
  std::map<std::string, prometheus::Counter*, std::less<>> dropped_;
  size_t series_count_ = 0;
};

// What a Collectable gives, series by series. A family that is no row, or whose labels or type are
// not the row's, is passed to `dropped` with the number of its series.
void ForEachSeries(const prometheus::Collectable& collectable,
                   const std::function<void(MetricId id, LabelPointer labels, double value)>& take,
                   const std::function<void(size_t series)>& dropped);

}  // namespace rankscope::metrics
