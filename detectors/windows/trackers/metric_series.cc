// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/windows/trackers/metric_series.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>

#include "detectors/model/ascii.h"

namespace rankscope::windows {
namespace {

constexpr size_t kNameCap = 48;
constexpr int64_t kForgotten =
    8;  // values of other losses, after which a name is not used any more

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

// The mean over an evaluation without samples is not finite either, and says nothing.
bool NamesLoss(std::string_view name) {
  const std::string lower = LowerAscii(name);
  constexpr std::string_view kElsewhere[] = {"val", "eval", "test", "dev"};
  if (lower.find("loss") == std::string::npos) return false;
  return std::none_of(std::begin(kElsewhere), std::end(kElsewhere),
                      [&](std::string_view word) { return lower.find(word) != std::string::npos; });
}

}  // namespace

void MetricSeries::Add(std::string_view name, double value, bool has_graph, uint32_t stream,
                       int64_t offset, std::string_view line, Timestamp t) {
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
  row.is_loss = row.is_loss || has_graph || NamesLoss(name);
  if (finite && row.is_loss) {
    for (MetricRow& other : rows_) ++other.finite_elsewhere;
  }
  row.finite_elsewhere = 0;
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
  if (row.trailing_nonfinite == 1) row.first_nonfinite = row.last;
}

const MetricRow* MetricSeries::Longest() const {
  const auto longest = std::max_element(
      rows_.begin(), rows_.end(),
      [](const MetricRow& a, const MetricRow& b) { return a.changes < b.changes; });
  return longest->values > 0 ? &*longest : nullptr;
}

const MetricRow* MetricSeries::NotFinite() const {
  const MetricRow* found = nullptr;
  for (const MetricRow& row : rows_) {
    if (!row.is_loss || row.trailing_nonfinite == 0 || row.finite_elsewhere > kForgotten) continue;
    if (found == nullptr || row.trailing_nonfinite > found->trailing_nonfinite) found = &row;
  }
  return found;
}

}  // namespace rankscope::windows
