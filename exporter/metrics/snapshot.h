// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Metric families at one tick, immutable: what every encoder turns into bytes. SnapshotBuilder
// lives on the loop thread and is called once per tick; a Snapshot may be read by any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "detectors/model/time.h"
#include "exporter/metrics/catalog.h"
#include "exporter/metrics/published.h"

namespace rankscope::metrics {

// Rendered once and shared by all series and snapshots that carry it.
struct LabelSet {
  std::string text;                 // {job_id="8841",rank="3"}, escaped for the text formats
  std::string wire;                 // the same as LabelPairs of a Metric, for protobuf
  std::vector<std::string> values;  // unescaped, in the order of the row's label names
};

struct Series {
  std::shared_ptr<const LabelSet> labels;  // null: no labels
  double value = 0;
};

// One series for each bucket, and those of sum and count.
struct Histogram {
  std::shared_ptr<const LabelSet> labels;  // without le; null: none
  // By bound of the row, each with what the ones before it hold; the last is of everything.
  std::vector<double> counts;
  double sum = 0;
};

struct Family {
  const MetricRow* row = nullptr;
  std::vector<Series> series;              // empty where the row is a histogram
  std::vector<Histogram> histograms = {};  // empty where it is none; never both

  size_t SeriesCount() const { return series.size() + histograms.size() * SeriesOf(*row); }
};

struct Snapshot {
  Timestamp tick;
  double start_wall_seconds = 0;  // when counters with Since::kStart were 0
  std::vector<Family> families;   // sorted by name, each once
  size_t left_out = 0;            // series that max_series has no room for

  size_t SeriesCount() const;
};

struct SnapshotOptions {
  Profile profile = Profile::kDefault;
  bool dcgm_names = false;        // also what dcgm-exporter calls it
  bool dcgm_names_yield = false;  // for good, once the source dcgm finds a dcgm-exporter
  int32_t max_series = 0;  // of the page; 0: the profile's. What does not fit is dropped by Keep
  std::string proc_self = "/proc/self";
  std::string proc_stat = "/proc/stat";
};

// Of the page where the configuration names no number. 8 GPUs with all names, 16 jobs, and what the
// dashboard shows of 144 ranks fit in the first (tests/unit/metrics/budget_test.cc), and so do
// 1,024 failed jobs of the last hour beside 16 GPUs.
constexpr int32_t MaxSeriesOf(Profile profile) {
  return profile == Profile::kFull ? 16000 : 5000;
}

// How long a finished job's series outlive its final verdict, in seconds after the verdict's last
// change.
inline constexpr double kRankSeriesAfterEndSeconds =
    60;  // four scrapes at 15 s: ranks, training, logs
inline constexpr double kJobSeriesAfterEndSeconds = 300;
inline constexpr double kFailureSeriesAfterEndSeconds = 3600;  // its verdict, and whose it was

class SnapshotBuilder {
 public:
  explicit SnapshotBuilder(SnapshotOptions options = {});
  ~SnapshotBuilder();
  SnapshotBuilder(const SnapshotBuilder&) = delete;
  SnapshotBuilder& operator=(const SnapshotBuilder&) = delete;

  std::shared_ptr<const Snapshot> Build(const Published& published);
  void SetMaxSeries(int32_t max_series);  // from the next on

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rankscope::metrics
