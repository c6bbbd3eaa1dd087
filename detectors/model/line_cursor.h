// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Reads a line whose form is known from its front, part by part: nothing is looked for further
// behind, where a stranger may have written. A part that is not there is left where it is. Pure,
// any thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>

namespace rankscope {

class LineCursor {
 public:
  explicit LineCursor(std::string_view text) : rest_(text) {}

  std::string_view rest() const { return rest_; }
  bool at_end() const { return rest_.empty(); }

  bool Take(std::string_view text) {
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }

  // As many as there are of `allowed`, at least one and at most `most`; empty where there is none,
  // or where more follow.
  std::string_view TakeAll(std::string_view allowed, size_t most) {
    const size_t size = std::min(rest_.find_first_not_of(allowed), rest_.size());
    if (size > most) return {};
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }

  // A decimal number.
  std::optional<int64_t> TakeNumber() {
    constexpr size_t kMostDigits = 18;  // fits 64 bits
    const std::string_view digits = TakeAll("0123456789", kMostDigits);
    if (digits.empty()) return std::nullopt;
    int64_t value = 0;
    for (const char digit : digits) value = 10 * value + (digit - '0');
    return value;
  }

  bool TakeHex(size_t least, size_t most) {
    return TakeAll("0123456789abcdefABCDEF", most).size() >= least;
  }

  // "0000:4f:00", with ".0" behind it where a function is named.
  bool TakePciPlace() {
    if (!TakeHex(1, 8) || !Take(":") || !TakeHex(2, 2) || !Take(":") || !TakeHex(2, 2))
      return false;
    return !Take(".") || TakeHex(1, 1);
  }

 private:
  std::string_view rest_;
};

}  // namespace rankscope
