// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// A bounded ring of plain values, oldest first. Single writer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace rankscope::windows {

template <typename T, size_t kCapacity>
class Ring {
 public:
  void Push(T value) {
    if (values_.size() < kCapacity) {
      if (values_.empty()) values_.reserve(kCapacity);
      values_.push_back(value);
      return;
    }
    values_[static_cast<size_t>(head_)] = value;
    head_ = static_cast<uint32_t>((head_ + 1) % kCapacity);
  }
  void Clear() {
    values_.clear();
    head_ = 0;
  }
  size_t size() const { return values_.size(); }
  bool empty() const { return values_.empty(); }
  // i = 0 is the oldest.
  const T& operator[](size_t i) const {
    const size_t at = head_ + i;
    return values_[at < values_.size() ? at : at - values_.size()];
  }
  const T& back() const { return (*this)[size() - 1]; }
  std::vector<T> ToVector() const {
    std::vector<T> out;
    out.reserve(size());
    for (size_t i = 0; i < size(); ++i) out.push_back((*this)[i]);
    return out;
  }

  template <class A>
  void Fields(A& a) {
    a(values_, head_);
    if (values_.size() > kCapacity) values_.resize(kCapacity);  // restored from damaged bytes
    if (head_ >= values_.size()) head_ = 0;
  }

 private:
  std::vector<T> values_;
  uint32_t head_ = 0;
};

}  // namespace rankscope::windows
