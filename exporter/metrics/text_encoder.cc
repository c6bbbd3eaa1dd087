// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Prometheus text format 0.0.4, and what OpenMetrics shares with it: numbers, label values,
// samples.
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "exporter/metrics/encoder.h"

namespace rankscope::metrics {
namespace {

// Info and state sets have no type of their own in this format.
std::string_view TextType(MetricType type) {
  if (type == MetricType::kHistogram) return "histogram";
  return type == MetricType::kCounter ? "counter" : "gauge";
}

void AppendSample(std::string_view name, std::string_view suffix, std::string_view labels,
                  double value, std::string& out) {
  out.append(name).append(suffix).append(labels).push_back(' ');
  AppendValue(value, out);
  out.push_back('\n');
}

void AppendHistogram(const MetricRow& row, const Histogram& histogram, std::string& out) {
  const std::string_view labels =
      histogram.labels ? std::string_view(histogram.labels->text) : std::string_view();
  std::string with_bound = labels.empty() ? "{" : std::string(labels.substr(0, labels.size() - 1));
  with_bound.append(labels.empty() ? "le=\"" : ",le=\"");
  const size_t at = with_bound.size();
  for (size_t i = 0; i < histogram.counts.size(); ++i) {
    with_bound.resize(at);
    AppendBound(i < row.bounds.size() ? row.bounds[i] : std::numeric_limits<double>::infinity(),
                with_bound);
    with_bound.append("\"}");
    AppendSample(row.name, "_bucket", with_bound, histogram.counts[i], out);
  }
  AppendSample(row.name, "_sum", labels, histogram.sum, out);
  AppendSample(row.name, "_count", labels, histogram.counts.back(), out);
}

void AppendHelp(std::string_view help, std::string& out) {
  for (const char c : help) {
    if (c == '\\') {
      out.append("\\\\");
    } else if (c == '\n') {
      out.append("\\n");
    } else {
      out.push_back(c);
    }
  }
}

}  // namespace

void AppendLabelValue(std::string_view value, std::string& out) {
  for (const char c : value) {
    if (c == '\\') {
      out.append("\\\\");
    } else if (c == '"') {
      out.append("\\\"");
    } else if (c == '\n') {
      out.append("\\n");
    } else {
      out.push_back(c);
    }
  }
}

void AppendValue(double value, std::string& out) {
  // The longest shortest form of a double has 24 bytes: -2.2250738585072014e-308.
  std::array<char, 32> digits{};
  char* const begin = digits.data();
  char* const end = begin + digits.size();
  std::to_chars_result written{};
  // Most values are small whole numbers, and those print six times faster as integers.
  constexpr double kWhole = 1e15;
  if (value > -kWhole && value < kWhole && value == std::trunc(value)) {
    written = std::to_chars(begin, end, static_cast<int64_t>(value));
  } else if (std::isnan(value)) {
    out.append("NaN");
    return;
  } else if (std::isinf(value)) {
    out.append(value > 0 ? "+Inf" : "-Inf");
    return;
  } else {
    written = std::to_chars(begin, end, value);
  }
  out.append(begin, static_cast<size_t>(written.ptr - begin));
}

void AppendBound(double bound, std::string& out) {
  const size_t begin = out.size();
  AppendValue(bound, out);
  if (std::isfinite(bound) && out.find_first_of(".e", begin) == std::string::npos) out.append(".0");
}

void AppendSamples(const Family& family, std::string& out) {
  const std::string_view name = family.row->name;
  for (const Series& series : family.series) {
    out.append(name);
    if (series.labels) out.append(series.labels->text);
    out.push_back(' ');
    AppendValue(series.value, out);
    out.push_back('\n');
  }
  for (const Histogram& histogram : family.histograms) {
    AppendHistogram(*family.row, histogram, out);
  }
}

void AppendText(const Snapshot& snapshot, std::string& out, GroupSet groups) {
  for (const Family& family : snapshot.families) {
    if (!groups.Has(*family.row)) continue;
    const std::string_view name = family.row->name;
    out.append("# HELP ").append(name).push_back(' ');
    AppendHelp(family.row->help.text(), out);
    out.append("\n# TYPE ").append(name).push_back(' ');
    out.append(TextType(family.row->type)).push_back('\n');
    AppendSamples(family, out);
  }
}

}  // namespace rankscope::metrics
