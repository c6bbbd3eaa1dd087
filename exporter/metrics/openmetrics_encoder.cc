// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// OpenMetrics 1.0 text (https://prometheus.io/docs/specs/om/open_metrics_spec/), where it differs
// from text 0.0.4:
//
//   a counter's family is named without _total, an info's without _info; samples keep their names
//   TYPE, UNIT, HELP in this order; a unit is the family name's last word; HELP escapes quotes too
//   the last line is "# EOF"
//
// State sets stay gauges: the format's own type wants a label named like the metric, which would
// give the series other labels here than in the other formats. No _created lines either: a server
// that does not know them makes series of them, and one that asks for start times asks for
// protobuf.
#include "exporter/metrics/encoder.h"

namespace rankscope::metrics {
namespace {

constexpr std::string_view kTotal = "_total";
constexpr std::string_view kInfo = "_info";

bool IsUnitOf(std::string_view unit, std::string_view name) {
  return !unit.empty() && name.size() > unit.size() && name.ends_with(unit) &&
         name[name.size() - unit.size() - 1] == '_';
}

}  // namespace

OpenMetricsHead OpenMetricsHeadOf(const MetricRow& row) {
  const auto without = [&](std::string_view suffix) {
    return row.name.substr(0, row.name.size() - suffix.size());
  };
  if (row.type == MetricType::kCounter && row.name.ends_with(kTotal))
    return {without(kTotal), "counter"};
  // A counter of that format has that ending, and these names are another's.
  if (row.type == MetricType::kCounter) return {row.name, "unknown"};
  // An info whose stem is a metric already (rankscope_verdict_info) has no family name left.
  if (row.type == MetricType::kInfo && FindMetric(without(kInfo)) == nullptr) {
    return {without(kInfo), "info"};
  }
  if (row.type == MetricType::kHistogram) return {row.name, "histogram"};
  return {row.name, "gauge"};
}

void AppendOpenMetrics(const Snapshot& snapshot, std::string& out, GroupSet groups) {
  for (const Family& family : snapshot.families) {
    const MetricRow& row = *family.row;
    if (!groups.Has(row)) continue;
    const auto [name, type] = OpenMetricsHeadOf(row);
    out.append("# TYPE ").append(name).append(" ").append(type).push_back('\n');
    if (IsUnitOf(row.unit, name)) {
      out.append("# UNIT ").append(name).append(" ").append(row.unit).push_back('\n');
    }
    out.append("# HELP ").append(name).push_back(' ');
    AppendLabelValue(row.help.text(), out);
    out.push_back('\n');
    AppendSamples(family, out);
  }
  out.append("# EOF\n");
}

}  // namespace rankscope::metrics
