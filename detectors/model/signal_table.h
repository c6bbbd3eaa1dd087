// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The rows of signals.inc at compile time, and arrays with a place for each signal of a scope. For
// those who generate their own rows from the table. Any thread.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

#include "detectors/model/signals.h"

namespace rankscope {

inline constexpr std::array kSignals = {
#define SIGNAL(id, constant, name, unit, kind, scope, origin, metric, help, profile)       \
  SignalRow{SignalId::constant,   name,   unit, SignalKind::kind,      SignalScope::scope, \
            SignalOrigin::origin, metric, help, SignalProfile::profile},
#include "detectors/model/signals.inc"
#undef SIGNAL
};

constexpr bool SignalsRise() {
  for (size_t i = 1; i < kSignals.size(); ++i) {
    if (kSignals[i].id <= kSignals[i - 1].id) return false;
  }
  return true;
}
static_assert(SignalsRise(), "signals.inc: ids must rise");

template <SignalScope scope>
inline constexpr size_t kSignalsOf = static_cast<size_t>(std::count_if(
    kSignals.begin(), kSignals.end(), [](const SignalRow& row) { return row.scope == scope; }));

// The newest number of each signal of a scope; NaN where it is not known.
template <SignalScope scope>
class SignalValues {
 public:
  SignalValues() { values_.fill(std::numeric_limits<double>::quiet_NaN()); }

  // NaN for a signal of another scope, too.
  double operator[](SignalId id) const {
    const uint8_t place = PlaceOf(id);
    return place == kNowhere ? std::numeric_limits<double>::quiet_NaN() : values_[place];
  }
  // nullptr for a signal of another scope.
  static const SignalRow* RowOf(SignalId id) {
    const uint8_t place = PlaceOf(id);
    return place == kNowhere ? nullptr : &kSignals[kRows[place]];
  }
  void Set(SignalId id, double value) {
    if (const uint8_t place = PlaceOf(id); place != kNowhere) values_[place] = value;
  }

 private:
  static constexpr uint8_t kNowhere = 255;
  static constexpr size_t kIds = static_cast<size_t>(kSignals.back().id) + 1;
  static_assert(kSignalsOf<scope> < kNowhere);

  static constexpr std::array<uint8_t, kIds> kPlaces = [] {
    std::array<uint8_t, kIds> places{};
    places.fill(kNowhere);
    uint8_t next = 0;
    for (const SignalRow& row : kSignals) {
      if (row.scope == scope) places[static_cast<size_t>(row.id)] = next++;
    }
    return places;
  }();

  static constexpr auto kRows = [] {
    std::array<size_t, kSignalsOf<scope>> rows{};
    size_t next = 0;
    for (size_t i = 0; i < kSignals.size(); ++i) {
      if (kSignals[i].scope == scope) rows[next++] = i;
    }
    return rows;
  }();

  static uint8_t PlaceOf(SignalId id) {
    const auto number = static_cast<size_t>(id);
    return number < kIds ? kPlaces[number] : kNowhere;
  }

  std::array<double, kSignalsOf<scope>> values_;
};

using RankSignals = SignalValues<SignalScope::Rank>;
using JobSignals = SignalValues<SignalScope::Job>;

}  // namespace rankscope
