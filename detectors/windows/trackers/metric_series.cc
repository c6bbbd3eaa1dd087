// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/windows/trackers/metric_series.h"

#include <algorithm>
#include <cmath>

namespace rankscope::windows {
namespace {

constexpr size_t kNameCap = 48;

// Of the letters alone, in lower case: "epoch_3 Loss" and "epoch_4 loss" are one name.
uint64_t HashOf(std::string_view name) {
  uint64_t hash = 0xcbf2'9ce4'8422'2325;  // FNV-1a
  for (const char c : name) {
    const char lower = static_cast<char>(c | 0x20);
    if (lower < 'a' || lower > 'z') continue;
    hash = (hash ^ static_cast<uint8_t>(lower)) * 0x100'0000'01b3;
  }
  return hash;
}

}  // namespace

void MetricSeries::Add(std::string_view name, double value, uint32_t stream, int64_t offset,
                       std::string_view line, Timestamp t) {
  const uint64_t hash = HashOf(name);
  const auto known = std::find_if(rows_.begin(), rows_.end(), [hash](const MetricRow& row) {
    return row.values > 0 && row.name_hash == hash;
  });
  MetricRow& row =
      known != rows_.end()
          ? *known
          : *std::min_element(
                rows_.begin(), rows_.end(), [](const MetricRow& a, const MetricRow& b) {
                  return a.changes != b.changes ? a.changes < b.changes : a.values < b.values;
                });
  if (known == rows_.end()) {
    row = {};
    row.name_hash = hash;
    row.name.assign(name.substr(0, kNameCap));
  }
  const bool finite = std::isfinite(value);
  if (row.values > 0 && value != row.last.value && (finite || std::isfinite(row.last.value)))
    ++row.changes;
  row.trailing_nonfinite = finite ? 0 : row.trailing_nonfinite + 1;
  if (finite && std::isnan(row.first)) row.first = value;
  row.last.value = value;
  row.last.index = row.values++;
  row.last.stream = stream;
  row.last.offset = offset;
  row.last.t = t;
  row.last.line.assign(line.substr(0, logs::kCitationCap));
}

const MetricRow* MetricSeries::Longest() const {
  const auto longest = std::max_element(
      rows_.begin(), rows_.end(),
      [](const MetricRow& a, const MetricRow& b) { return a.changes < b.changes; });
  return longest->values > 0 ? &*longest : nullptr;
}

}  // namespace rankscope::windows
