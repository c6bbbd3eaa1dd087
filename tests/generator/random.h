// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Random numbers of the generator: the same on every machine and standard library for one seed.
// `In` and `Share` draw from the ranges of README.md, which --widen makes wider. Single thread.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <vector>

namespace rankscope::generator {

struct Range {
  double low = 0;
  double high = 0;
};

class Random {
 public:
  explicit Random(uint64_t seed, double widen = 1) : state_(seed), widen_(widen) {}

  // A stream of its own: what one part draws does not move what another draws.
  Random Fork(uint64_t salt) const {
    Random forked(state_ ^ (salt * 0x9E3779B97F4A7C15ull), widen_);
    forked.Next();
    return forked;
  }

  // SplitMix64.
  uint64_t Next() {
    uint64_t z = (state_ += 0x9E3779B97F4A7C15ull);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
  }
  double Unit() { return static_cast<double>(Next() >> 11) * 0x1.0p-53; }
  double Between(double low, double high) { return low + (high - low) * Unit(); }
  int Int(int low, int high) {
    return low + static_cast<int>(Next() % static_cast<uint64_t>(high - low + 1));
  }
  bool Chance(double p) { return Unit() < p; }
  double Normal() {
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += Unit();
    return sum;
  }
  double Around(double mean, double relative) {
    return mean * std::max(0.05, 1 + relative * Normal());
  }

  // Log-uniform in a range of positive numbers; widened about its geometric middle.
  double In(Range range) {
    const double middle = std::sqrt(range.low * range.high);
    const double reach = std::pow(range.high / middle, widen_);
    return middle * std::pow(reach, 2 * Unit() - 1);
  }
  // Uniform in a range of shares; widened about its middle, within 0 to 1.
  double Share(double low, double high) {
    const double middle = (low + high) / 2;
    return std::clamp(middle + (high - low) / 2 * widen_ * (2 * Unit() - 1), 0.0, 1.0);
  }
  int InInt(double low, double high) {
    return std::max(1, static_cast<int>(std::lround(In({low, high}))));
  }

  template <class T>
  const T& Pick(const std::vector<T>& of) {
    return of[static_cast<size_t>(Next() % of.size())];
  }
  const char* Pick(std::initializer_list<const char*> of) { return of.begin()[Next() % of.size()]; }
  // The index of a weight.
  int Weighted(std::initializer_list<double> weights) {
    double sum = 0;
    for (const double weight : weights) sum += weight;
    double at = Unit() * sum;
    int index = 0;
    for (const double weight : weights) {
      if ((at -= weight) < 0) return index;
      ++index;
    }
    return index - 1;
  }

 private:
  uint64_t state_;
  double widen_;
};

}  // namespace rankscope::generator
