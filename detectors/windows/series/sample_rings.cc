// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/windows/series/sample_rings.h"

#include <algorithm>
#include <limits>

#include "detectors/windows/series/statistics.h"

namespace rankscope::windows {
namespace {

template <size_t n, typename C>
void AddCoarse(C& coarse, std::array<float, n>& ring, uint32_t& written, int64_t slot,
               double value) {
  if (slot != coarse.slot) {
    if (coarse.count > 0) ring[written++ % n] = static_cast<float>(coarse.sum / coarse.count);
    coarse.sum = 0;
    coarse.count = 0;
    coarse.slot = slot;
  }
  coarse.sum += value;
  ++coarse.count;
}

template <size_t n>
std::vector<float> InOrder(const std::array<float, n>& ring, uint32_t written) {
  std::vector<float> values;
  for (size_t i = written - std::min<size_t>(written, n); i < written; ++i)
    values.push_back(ring[i % n]);
  return values;
}

}  // namespace

void SampleRings::Add(SignalId signal, double value, Timestamp t) {
  Column& column = FindOrAdd(signal);
  column.last = t;
  column.newest = value;
  column.second_ring[column.seconds++ % kSeconds] = static_cast<float>(value);
  AddCoarse(column.ten, column.ten_ring, column.tens, t.ns / 10'000'000'000, value);
  AddCoarse(column.minute, column.minute_ring, column.minutes, t.ns / 60'000'000'000, value);
}

double SampleRings::Last(SignalId signal) const {
  const Column* column = Find(signal);
  return column == nullptr ? std::numeric_limits<double>::quiet_NaN() : column->newest;
}

Timestamp SampleRings::LastTime(SignalId signal) const {
  const Column* column = Find(signal);
  return column == nullptr ? Timestamp{} : column->last;
}

double SampleRings::MedianOf(SignalId signal, size_t n) const {
  const Column* column = Find(signal);
  if (column == nullptr) return std::numeric_limits<double>::quiet_NaN();
  const size_t have = std::min<size_t>({n, column->seconds, kSeconds});
  std::vector<double> values;
  values.reserve(have);
  for (size_t i = 0; i < have; ++i) {
    values.push_back(
        static_cast<double>(column->second_ring[(column->seconds - 1 - i) % kSeconds]));
  }
  return Median(values);
}

double SampleRings::GrownOver(SignalId signal, size_t n) const {
  const Column* column = Find(signal);
  const size_t have = column == nullptr ? 0 : std::min<size_t>({n, column->seconds, kSeconds});
  if (have < 2) return std::numeric_limits<double>::quiet_NaN();
  const auto back = [column](size_t i) {
    return static_cast<double>(column->second_ring[(column->seconds - 1 - i) % kSeconds]);
  };
  double grown = 0;
  for (size_t i = 0; i + 1 < have; ++i) {
    if (back(i) < back(i + 1)) return std::numeric_limits<double>::quiet_NaN();
    grown += back(i) - back(i + 1);
  }
  return grown;
}

std::vector<float> SampleRings::TenSecondMeans(SignalId signal) const {
  const Column* column = Find(signal);
  return column == nullptr ? std::vector<float>() : InOrder(column->ten_ring, column->tens);
}

std::vector<float> SampleRings::MinuteMeans(SignalId signal) const {
  const Column* column = Find(signal);
  return column == nullptr ? std::vector<float>() : InOrder(column->minute_ring, column->minutes);
}

const SampleRings::Column* SampleRings::Find(SignalId signal) const {
  for (const Column& column : columns_) {
    if (column.signal == signal) return &column;
  }
  return nullptr;
}

SampleRings::Column& SampleRings::FindOrAdd(SignalId signal) {
  if (hint_ >= columns_.size()) hint_ = 0;
  if (hint_ < columns_.size() && columns_[hint_].signal == signal) return columns_[hint_++];
  for (size_t i = 0; i < columns_.size(); ++i) {
    if (columns_[i].signal != signal) continue;
    hint_ = i + 1;
    return columns_[i];
  }
  columns_.emplace_back().signal = signal;
  hint_ = columns_.size();
  return columns_.back();
}

}  // namespace rankscope::windows
