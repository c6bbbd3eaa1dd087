// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The process_* metrics that every Prometheus client library has, as a prometheus-cpp Collectable.
// What /proc does not report is left out. Loop thread, once per tick.
#pragma once

#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>

#include <string>
#include <vector>

namespace rankscope::metrics {

class ProcessMetrics final : public prometheus::Collectable {
 public:
  // `proc_self`: /proc/self. `proc_stat`: /proc/stat, for the time of boot.
  ProcessMetrics(std::string proc_self, std::string proc_stat);

  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  std::string proc_self_;
  std::string proc_stat_;
};

}  // namespace rankscope::metrics
