// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The columns of the catalogue. For catalog.h and the files whose rows it takes together. Any
// thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "exporter/metrics/help_text.h"

namespace rankscope::metrics {

enum class MetricType : uint8_t {
  kGauge,
  kCounter,    // name ends in _total, or is dcgm-exporter's
  kInfo,       // always 1, the labels are the message; name ends in _info
  kStateSet,   // a gauge of 0 and 1 with every state present
  kHistogram,  // counts by bucket, of which each holds the ones before it
};

// Which profile shows the row: `full` shows all, but for those that have a switch of their own.
// kDcgmFull: needs both.
enum class Profile : uint8_t { kDefault, kFull, kDcgmNames, kDcgmFull };

constexpr bool IsOfFullProfile(Profile profile) {
  return profile == Profile::kFull || profile == Profile::kDcgmFull;
}
constexpr bool IsDcgmName(Profile profile) {
  return profile == Profile::kDcgmNames || profile == Profile::kDcgmFull;
}

// The order in which series are kept when the node's cap is reached; the last are dropped first,
// and before them all that is about jobs that have ended, but for kVerdictInfo. The first two are
// never dropped.
enum class Keep : uint8_t {
  kAlways,
  kVerdictInfo,  // what alerts on verdicts are made of
  kGpu,
  kVerdict,
  kJob,
  kTraining,
  kDcgm,  // dcgm-exporter's names
  kGpuDetail,
  kSlurm,
  kVerdictDetail,
  kLog,
  kRank,  // which ranks there are, and what the dashboard shows of each
  kRankDetail,
};
inline constexpr size_t kKeeps = static_cast<size_t>(Keep::kRankDetail) + 1;

constexpr bool IsDroppable(Keep keep) {
  return keep > Keep::kVerdictInfo;
}

// When a counter was 0. Unknown for what a job's recording restores: its past is counted again.
enum class Since : uint8_t { kUnknown, kStart };  // kStart: of the exporter

struct MetricRow {
  std::string_view name;
  MetricType type;
  std::string_view unit;  // as it stands in the name (seconds, bytes, ratio); empty = none
  HelpText help;
  std::string_view labels;  // names, comma separated, in the order of the values
  Keep keep = Keep::kAlways;
  Profile profile = Profile::kDefault;
  Since since = Since::kUnknown;
  std::span<const double> bounds = {};  // of a histogram's buckets, rising, but for infinity
};

// Series of one set of labels: a histogram has one for each bucket, infinity's, sum and count.
constexpr size_t SeriesOf(const MetricRow& row) {
  return row.type == MetricType::kHistogram ? row.bounds.size() + 3 : 1;
}

}  // namespace rankscope::metrics
