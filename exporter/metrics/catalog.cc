// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/metrics/catalog.h"

#include <algorithm>

namespace rankscope::metrics {

std::span<const MetricRow> Catalog() {
  return kCatalog;
}

const MetricRow* FindMetric(std::string_view name) {
  const auto row =
      std::lower_bound(kCatalog.begin(), kCatalog.end(), name,
                       [](const MetricRow& r, std::string_view wanted) { return r.name < wanted; });
  return row != kCatalog.end() && row->name == name ? &*row : nullptr;
}

std::string_view TypeName(MetricType type) {
  switch (type) {
    case MetricType::kGauge:
      return "gauge";
    case MetricType::kCounter:
      return "counter";
    case MetricType::kInfo:
      return "info";
    case MetricType::kStateSet:
      return "stateset";
    case MetricType::kHistogram:
      return "histogram";
  }
  return "gauge";
}

}  // namespace rankscope::metrics
