// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Time as the detectors know it: nanoseconds of CLOCK_MONOTONIC on the node that recorded, handed
// in and never read. Wall time exists only as an offset carried by Epoch observations. Any thread.
#pragma once

#include <compare>
#include <cstdint>

namespace rankscope {

struct Duration {
  int64_t ns = 0;

  auto operator<=>(const Duration&) const = default;
  template <class A>
  void Fields(A& a) {
    a(ns);
  }
  double seconds() const { return static_cast<double>(ns) * 1e-9; }
};

struct Timestamp {
  int64_t ns = 0;

  auto operator<=>(const Timestamp&) const = default;
  template <class A>
  void Fields(A& a) {
    a(ns);
  }
};

constexpr Duration Seconds(double s) {
  return {static_cast<int64_t>(s * 1e9)};
}
constexpr Duration Milliseconds(int64_t ms) {
  return {ms * 1'000'000};
}

constexpr Duration operator-(Timestamp a, Timestamp b) {
  return {a.ns - b.ns};
}
constexpr Timestamp operator+(Timestamp t, Duration d) {
  return {t.ns + d.ns};
}
constexpr Timestamp operator-(Timestamp t, Duration d) {
  return {t.ns - d.ns};
}
constexpr Duration operator+(Duration a, Duration b) {
  return {a.ns + b.ns};
}

}  // namespace rankscope
