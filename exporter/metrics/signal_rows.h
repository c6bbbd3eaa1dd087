// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The rows of the catalogue that signals.inc makes: of ranks and jobs, sorted by name; catalog.h
// merges them with the rest. Metrics of GPUs are named there and have their rows in gpu_rows.h,
// since a GPU is shown whoever's it is. Any thread.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

#include "detectors/model/signal_table.h"
#include "exporter/metrics/metric_row.h"

namespace rankscope::metrics {

// A signal that a series of a rank or a job shows.
constexpr bool IsShown(const SignalRow& row) {
  return !row.metric.empty() && (row.scope == SignalScope::Rank || row.scope == SignalScope::Job);
}
constexpr bool MakesRow(const SignalRow& row) {
  return IsShown(row) && !row.help.empty();
}

// As it stands in the name.
consteval std::string_view UnitOf(const SignalRow& row) {
  if (row.unit == "s") return "seconds";
  if (row.unit == "By") return "bytes";
  if (row.unit == "By/s") return "bytes_per_second";
  if (row.unit == "ratio" || row.unit.empty()) return row.unit;
  throw "signal_rows.h: how does this unit stand in a metric's name?";
}

consteval std::string_view LabelsOf(const SignalRow& row) {
  if (row.scope == SignalScope::Job && row.label().empty()) return "job_id";
  if (row.scope == SignalScope::Job && row.label() == "operation") return "job_id,operation";
  if (row.scope == SignalScope::Job && row.label() == "state") return "job_id,state";
  if (row.scope == SignalScope::Rank && row.label().empty()) return "job_id,rank";
  if (row.scope == SignalScope::Rank && row.label() == "direction") return "job_id,rank,direction";
  if (row.scope == SignalScope::Rank && row.label() == "reason") return "job_id,rank,reason";
  throw "signal_rows.h: a label that no metric has had";
}

// Of ranks: what the dashboard shows. With many ranks the rest is dropped first.
inline constexpr std::array<std::string_view, 4> kMainRankMetrics = {
    "rankscope_rank_cpu_seconds_total", "rankscope_rank_oldest_collective_seconds",
    "rankscope_rank_resident_bytes", "rankscope_rank_sm_active_median_ratio"};

consteval Keep KeepOf(const SignalRow& row) {
  if (row.scope != SignalScope::Rank) return Keep::kTraining;
  return std::find(kMainRankMetrics.begin(), kMainRankMetrics.end(), row.metric_name()) ==
                 kMainRankMetrics.end()
             ? Keep::kRankDetail
             : Keep::kRank;
}

consteval auto MakeSignalRows() {
  constexpr auto kRows =
      static_cast<size_t>(std::count_if(kSignals.begin(), kSignals.end(), MakesRow));
  std::array<MetricRow, kRows> rows{};
  size_t next = 0;
  for (const SignalRow& row : kSignals) {
    if (!MakesRow(row)) continue;
    rows[next++] = {row.metric_name(),
                    row.kind == SignalKind::Counter ? MetricType::kCounter : MetricType::kGauge,
                    UnitOf(row),
                    row.help.data(),
                    LabelsOf(row),
                    KeepOf(row),
                    row.profile == SignalProfile::Full ? Profile::kFull : Profile::kDefault};
  }
  std::sort(rows.begin(), rows.end(),
            [](const MetricRow& a, const MetricRow& b) { return a.name < b.name; });
  return rows;
}
inline constexpr auto kSignalRows = MakeSignalRows();

}  // namespace rankscope::metrics
