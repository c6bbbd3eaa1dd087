// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include "detectors/logs/text/scanner.h"

#include <algorithm>
#include <cassert>

namespace rankscope::logs {
namespace {

constexpr uint32_t kFoldMask = 0xdfdfdf;  // clears the bit that tells lower case from upper

uint32_t WindowAt(const std::string& text, size_t i) {
  return static_cast<uint8_t>(text[i]) |
         static_cast<uint32_t>(static_cast<uint8_t>(text[i + 1])) << 8 |
         static_cast<uint32_t>(static_cast<uint8_t>(text[i + 2])) << 16;
}

// Words that most lines of a training log hold: a window taken from them would sound a false alarm
// on every line.
constexpr std::string_view kCommonText =
    " loss learning_rate: grad_norm epoch iteration number of skipped iterations nan iterations "
    "samples per second elapsed "
    "time per iteration consumed samples consumed tokens global batch size learning rate: lm loss: "
    "loss scale: grad norm: "
    "num zeros step time memory accuracy train training batch throughput INFO running rank worker "
    "data loading done "
    "checkpoint model tokens: version file name value ing the ion ed and for with from start end "
    "error warning";

uint32_t WindowOf(std::string_view window) {
  uint32_t value = 0;
  for (const char c : window) value = value << 8 | static_cast<uint8_t>(c);
  return value;
}

bool StandsInCommonText(std::string_view window) {
  static const std::vector<uint32_t> windows = [] {  // sorted: thousands are asked for
    std::vector<uint32_t> all;
    for (size_t i = 0; i + 3 <= kCommonText.size(); ++i)
      all.push_back(WindowOf(kCommonText.substr(i, 3)));
    std::sort(all.begin(), all.end());
    return all;
  }();
  return std::binary_search(windows.begin(), windows.end(), WindowOf(window));
}

// How common a byte is in training logs, roughly.
int Commonness(char c) {
  if (c == ' ') return 10;
  if (c >= '0' && c <= '9') return 9;
  if (std::string_view("etaoinrsl").find(c) != std::string_view::npos) return 8;
  if (std::string_view(".:,-|/'[]()=_").find(c) != std::string_view::npos) return 6;
  if (c >= 'a' && c <= 'z') return 5;
  return 2;
}

int Commonness(std::string_view window) {
  constexpr int kInCommonWord = 30;
  int score = StandsInCommonText(window) ? kInCommonWord : 0;
  for (const char c : window) score += Commonness(c);
  return score;
}

// Where the three windows that are rarest together begin; the literal has five bytes or more.
size_t BestOffset(const std::string& literal) {
  size_t best = 0;
  int best_score = 1 << 20;
  for (size_t i = 0; i + 5 <= literal.size(); ++i) {
    const std::string_view all(literal.data() + i, 5);
    const int score =
        Commonness(all.substr(0, 3)) + Commonness(all.substr(1, 3)) + Commonness(all.substr(2));
    if (score < best_score) {
      best_score = score;
      best = i;
    }
  }
  return best;
}

}  // namespace

Scanner::Scanner(std::span<const Literal> literals, Case letter_case)
    : fold_(letter_case == Case::kFolded ? kFoldMask : kWindowMask) {
  for (const Literal& literal : literals) {
    assert(literal.text.size() >= 3);
    const auto id = static_cast<uint32_t>(literals_.size());
    literals_.emplace_back(literal.text);
    rows_.push_back(literal.row);
    const std::string& text = literals_.back();
    if (text.size() >= 5) {
      const auto first = static_cast<int32_t>(BestOffset(text));
      for (int32_t offset = first; offset < first + kStride; ++offset)
        AddWindow(WindowAt(text, static_cast<size_t>(offset)), id, offset);
      continue;
    }
    const auto last = static_cast<int32_t>(text.size()) - 3;  // where its last whole window begins
    for (int32_t offset = 0; offset <= last; ++offset)
      AddWindow(WindowAt(text, static_cast<size_t>(offset)), id, offset);
    AddOpenWindows(WindowAt(text, static_cast<size_t>(last)) >> 8, 16, id, last + 1);
    if (text.size() == 3) AddOpenWindows(WindowAt(text, 0) << 8, 0, id, -1);
  }
  const auto bucket_of = [](const Entry& entry) {
    return Hash(entry.window) >> (kTableBits - kBucketBits);
  };
  std::stable_sort(entries_.begin(), entries_.end(),
                   [&](const Entry& a, const Entry& b) { return bucket_of(a) < bucket_of(b); });
  for (const Entry& entry : entries_) {
    const uint32_t hash = Hash(entry.window);
    bits_[hash >> 6] |= uint64_t{1} << (hash & 63);
    ++bucket_begin_[bucket_of(entry) + 1];
  }
  for (size_t b = 1; b < bucket_begin_.size(); ++b) bucket_begin_[b] += bucket_begin_[b - 1];
}

void Scanner::AddWindow(uint32_t window, uint32_t id, int32_t offset) {
  const std::string& text = literals_[id];
  entries_.push_back({window & fold_ & kWindowMask, id, offset, static_cast<uint16_t>(text.size()),
                      static_cast<uint8_t>(text.front()), static_cast<uint8_t>(text.back())});
}

// Windows of which two bytes are the literal's and the third, at `shift`, may be any.
void Scanner::AddOpenWindows(uint32_t known, int shift, uint32_t id, int32_t offset) {
  for (uint32_t any = 0; any < 256; ++any) {
    // Folding maps several bytes to one; entering that window twice would report a hit twice.
    if (((any << shift) & fold_) != any << shift) continue;
    AddWindow(known | any << shift, id, offset);
  }
}

bool Scanner::Same(const char* text, const std::string& literal) const {
  if (fold_ == kWindowMask) return std::memcmp(text, literal.data(), literal.size()) == 0;
  for (size_t i = 0; i < literal.size(); ++i) {
    const auto lower = [](char c) {
      return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
    };
    if (lower(text[i]) != lower(literal[i])) return false;
  }
  return true;
}

}  // namespace rankscope::logs
