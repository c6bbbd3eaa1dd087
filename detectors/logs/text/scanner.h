// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Which of a few hundred literals occur in a line, in one pass. Looks at every third place only:
// each literal is entered with three neighbouring three-byte windows, one of which begins at such a
// place wherever the literal stands (where it has only three or four bytes, windows that reach over
// its ends are entered with all 256 neighbours). A bit table that stays in the first-level cache
// says whether a window may be one of them; then memcmp decides. Built once, const afterwards; any
// thread.
//
//   text      . . . . . g r a d _ n o r m . . .
//   looked at 0     3     6     9     12    15
//   entered             gra rad ad_                 6 falls on one of them, and so would 5 or 7
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rankscope::logs {

class Scanner {
 public:
  enum class Case : bool { kSensitive, kFolded };

  // Literal i belongs to row rows[i]; literals shorter than three bytes are not allowed.
  struct Literal {
    std::string_view text;
    uint32_t row;
  };
  Scanner(std::span<const Literal> literals, Case letter_case);

  // Calls on_hit(row, position) for each occurrence, by rising window, not by position. on_hit
  // returns whether to go on.
  template <typename OnHit>
  void Scan(std::string_view text, OnHit&& on_hit) const {
    // Four readable bytes are needed to load a window; the last ones are put together.
    const size_t size = text.size();
    // Locals, because on_hit might change what `this` points to, for all the compiler knows.
    const uint32_t fold = fold_;
    const uint64_t* const bits = bits_.data();
    const auto may_be = [fold, bits](uint32_t window) {
      const uint32_t hash = Hash(window & fold);
      return (bits[hash >> 6] >> (hash & 63)) & 1;
    };
    size_t i = 0;
    for (; i + 13 <= size; i += 4 * kStride) {  // four windows, one branch: most hold nothing
      const char* const p = text.data() + i;
      if (((may_be(Load(p)) | may_be(Load(p + 3))) | (may_be(Load(p + 6)) | may_be(Load(p + 9)))) ==
          0) {
        continue;
      }
      for (size_t j = i; j < i + 4 * kStride; j += kStride) {
        const uint32_t window = Load(text.data() + j);
        if (may_be(window) != 0 && !Verify(window & fold_, text, j, on_hit)) return;
      }
    }
    for (; i + 4 <= size; i += kStride) {
      const uint32_t window = Load(text.data() + i);
      if (may_be(window) != 0 && !Verify(window & fold_, text, i, on_hit)) return;
    }
    if (i + 2 <= size) {  // one more; a byte past the end counts as 0
      const uint32_t window =
          Byte(text, i) | Byte(text, i + 1) << 8 | (i + 2 < size ? Byte(text, i + 2) << 16 : 0);
      if (may_be(window) != 0) Verify(window & fold_, text, i, on_hit);
    }
  }

 private:
  static constexpr uint32_t kWindowMask = 0x00ffffff;
  static constexpr int kStride = 3;
  static constexpr int kTableBits =
      16;  // 2^16 bits = 8 KiB: two scanners fit the smallest L1 data cache
  static constexpr uint32_t kMultiplier = 0x9e3779b1;

  struct Entry {
    uint32_t window;  // folded
    uint32_t literal;
    int32_t offset;  // of the window in the literal; -1: it begins one byte before
    uint16_t size;   // of the literal, and its ends: most false alarms go by these
    uint8_t first;
    uint8_t last;
  };

  static uint32_t Hash(uint32_t window) { return (window * kMultiplier) >> (32 - kTableBits); }
  static uint32_t Load(const char* p) {
    uint32_t window;
    std::memcpy(&window, p, sizeof window);
    return window;
  }
  static uint32_t Byte(std::string_view text, size_t i) { return static_cast<uint8_t>(text[i]); }
  void AddWindow(uint32_t window, uint32_t id, int32_t offset);
  void AddOpenWindows(uint32_t known, int shift, uint32_t id, int32_t offset);
  bool Same(const char* text, const std::string& literal) const;

  template <typename OnHit>
  bool Verify(uint32_t window, std::string_view text, size_t i, OnHit&& on_hit) const {
    const uint32_t bucket = Hash(window) >> (kTableBits - kBucketBits);
    for (uint32_t e = bucket_begin_[bucket]; e < bucket_begin_[bucket + 1]; ++e) {
      const Entry& entry = entries_[e];
      if (entry.window != window || static_cast<int64_t>(i) < entry.offset) continue;
      const size_t begin = i - static_cast<size_t>(static_cast<int64_t>(entry.offset));
      if (text.size() < begin + entry.size) continue;
      const char* const p = text.data() + begin;
      const auto differs = [fold = fold_](char c, uint8_t byte) {
        return ((static_cast<uint8_t>(c) ^ byte) & fold & 0xff) != 0;
      };
      if (differs(p[0], entry.first) || differs(p[entry.size - 1], entry.last)) continue;
      if (!Same(p, literals_[entry.literal])) continue;
      if (!on_hit(rows_[entry.literal], begin)) return false;
    }
    return true;
  }

  static constexpr int kBucketBits = 12;

  uint32_t fold_;  // and-mask that folds the case of letters (and harmlessly some other bytes)
  std::array<uint64_t, (size_t{1} << kTableBits) / 64> bits_{};
  std::array<uint32_t, (size_t{1} << kBucketBits) + 1> bucket_begin_{};
  std::vector<Entry> entries_;
  std::vector<std::string> literals_;
  std::vector<uint32_t> rows_;
};

}  // namespace rankscope::logs
