// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Prometheus text format 0.0.4, and what OpenMetrics shares with it: numbers, label values,
// samples.
#include <algorithm>
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

// The longest shortest form of a double has 24 bytes: -2.2250738585072014e-308.
constexpr size_t kMaxValueBytes = 32;

// Behind what was written.
char* Write(std::string_view text, char* to) {
  return std::copy(text.begin(), text.end(), to);
}

char* WriteValue(double value, char* to) {
  // Most values are small whole numbers, and those print six times faster as integers.
  constexpr double kWhole = 1e15;
  if (value > -kWhole && value < kWhole && value == std::trunc(value))
    return std::to_chars(to, to + kMaxValueBytes, static_cast<int64_t>(value)).ptr;
  if (std::isnan(value)) return Write("NaN", to);
  if (std::isinf(value)) return Write(value > 0 ? "+Inf" : "-Inf", to);
  return std::to_chars(to, to + kMaxValueBytes, value).ptr;
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
  std::array<char, kMaxValueBytes> digits;
  const char* const end = WriteValue(value, digits.data());
  out.append(digits.data(), static_cast<size_t>(end - digits.data()));
}

void AppendBound(double bound, std::string& out) {
  const size_t begin = out.size();
  AppendValue(bound, out);
  if (std::isfinite(bound) && out.find_first_of(".e", begin) == std::string::npos) out.append(".0");
}

void AppendSamples(const Family& family, std::string& out) {
  const std::string_view name = family.row->name;
  // Room for all first: most of a page is written here, and asking at each word costs a third more.
  const size_t begin = out.size();
  size_t most = family.series.size() * (name.size() + kMaxValueBytes + 2);
  for (const Series& series : family.series) most += series.labels ? series.labels->text.size() : 0;
  out.resize(begin + most);
  char* to = out.data() + begin;
  for (const Series& series : family.series) {
    to = Write(name, to);
    if (series.labels) to = Write(series.labels->text, to);
    *to++ = ' ';
    to = WriteValue(series.value, to);
    *to++ = '\n';
  }
  out.resize(static_cast<size_t>(to - out.data()));
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
