// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include "detectors/logs/progress/plain_record.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "detectors/logs/progress/progress_fields.h"

namespace rankscope::logs {
namespace {

constexpr size_t kMaxBlanks = 16;  // between a key and its number
constexpr Progress kNothing;       // one copy is less than to fill it anew

inline void Put(Progress& progress, Key key, const Number& number) {
  switch (key) {
    case Key::kOther:
      return;
    case Key::kStep:
      return SetStep(progress, number);
    case Key::kLoss:
      return SetLoss(progress, number);
    case Key::kGradNorm:
      return SetGradNorm(progress, number);
    case Key::kLearningRate:
      return SetLearningRate(progress, number);
    case Key::kStepMilliseconds:
    case Key::kStepRate:
    case Key::kMfu:
      return SetFact(progress, key, number.value);
    default:
      if (const auto field = kFactFields[static_cast<size_t>(key)]) progress.*field = number.value;
  }
}

uint64_t WordAt(const char* p) {
  uint64_t word;
  std::memcpy(&word, p, sizeof word);
  return word;
}

// Whether the `size` bytes at p are the literal's, without the calls of memcmp that they would cost
// more than. Behind the literal there is room for a word, behind p up to `end` perhaps not.
inline bool Begins(const char* p, const char* end, const char* literal, size_t size) {
  if (static_cast<size_t>(end - p) < size) return false;
  for (; size >= 8; size -= 8, p += 8, literal += 8) {
    if (WordAt(p) != WordAt(literal)) return false;
  }
  if (size == 0) return true;
  if (std::endian::native != std::endian::little || end - p < 8)
    return std::memcmp(p, literal, size) == 0;
  return (WordAt(p) ^ WordAt(literal)) << (64 - 8 * size) == 0;
}

// "[2026-02-03 04:05:06.123456] " and blanks at the start of `text` are taken off.
std::string_view SkipTimeStamp(std::string_view text) {
  constexpr size_t kLongest = 32;
  text = LeftTrimmed(text);
  if (!text.starts_with('[')) return text;
  size_t i = 1;
  while (i < text.size() && i < kLongest && text[i] != ']') {
    if (!IsDigit(text[i]) && std::string_view("-:. ").find(text[i]) == std::string_view::npos)
      return text;
    ++i;
  }
  return i < text.size() && text[i] == ']' ? LeftTrimmed(text.substr(i + 1)) : text;
}

}  // namespace

bool PlainReader::Shape::Match(std::string_view text, Progress& out) const {
  const char* p = text.data();
  const char* const end = p + text.size();
  const auto take = [&p, end, this](size_t begin, size_t size) {
    if (!Begins(p, end, literals.data() + begin, size)) return false;
    p += size;
    return true;
  };
  if (slots == 0 || !take(slot[0].begin, slot[0].size)) return false;
  out = kNothing;
  for (size_t i = 0; i < slots; ++i) {
    const Slot& s = slot[i];
    if (i != 0 && !take(s.begin, s.size)) return false;
    const char* const blanks = p;
    while (p != end && *p == ' ') ++p;
    if ((p != blanks) != s.blanks || static_cast<size_t>(p - blanks) > kMaxBlanks) return false;
    const Number number = ReadDecimal({p, static_cast<size_t>(end - p)});
    const bool index = index_step && (s.key == Key::kStep || s.key == Key::kTotalSteps);
    if (!number || (index && !IsIndex(number))) return false;
    Put(out, s.key, number);
    p += number.text.size();
  }
  if (static_cast<size_t>(end - p) != tail_size || !take(tail_begin, tail_size)) return false;
  out.format = format;
  out.loss_key_missing = loss_key_missing;
  return true;
}

void PlainReader::Shape::Learn(std::string_view text, const PlainItems& items) {
  slots = 0;
  if (items.size > kSlots || text.size() > kLiterals) return;
  size_t used = 0;
  const char* p = text.data();
  const auto keep = [&used, this](std::string_view literal) {
    std::copy(literal.begin(), literal.end(), literals.begin() + static_cast<ptrdiff_t>(used));
    used += literal.size();
    return static_cast<uint16_t>(used - literal.size());
  };
  for (size_t i = 0; i < items.size; ++i) {
    const PlainItems::Item& item = items.item[i];
    std::string_view literal(p, static_cast<size_t>(item.number.text.data() - p));
    p = item.number.text.data() + item.number.text.size();
    slot[i].blanks = literal.ends_with(' ');
    while (literal.ends_with(' ')) literal.remove_suffix(1);
    slot[i].size = static_cast<uint16_t>(literal.size());
    slot[i].begin = keep(literal);
    slot[i].key = item.key;
  }
  const std::string_view tail(p, static_cast<size_t>(text.data() + text.size() - p));
  tail_size = static_cast<uint16_t>(tail.size());
  tail_begin = keep(tail);
  format = items.format;
  index_step = items.index_step;
  loss_key_missing = items.loss_key_missing;
  slots = static_cast<uint16_t>(items.size);
}

bool PlainReader::Parse(std::string_view text, Progress& out) {
  if (text.empty()) return false;
  const char first = text[0];
  const bool megatron = first == ' ' || first == '[';
  if (!megatron && first != '{' && (first < 'a' || first > 'z')) return false;
  if (megatron) text = SkipTimeStamp(text);
  for (const Shape& shape : shapes_) {
    // What stands behind blanks or a time is Megatron's or nobody's.
    if ((!megatron || shape.format == "megatron") && shape.Match(text, out)) return true;
  }
  PlainItems items;
  const bool plain = first == '{' ? ReadPlainDict(text, items)
                     : text.starts_with("iteration ") && ReadPlainMegatron(text, items)
                         ? true
                         : !megatron && ReadPlainLoop(text, items);
  if (!plain) return false;
  out = kNothing;
  for (size_t i = 0; i < items.size; ++i) Put(out, items.item[i].key, items.item[i].number);
  out.format = items.format;
  out.loss_key_missing = items.loss_key_missing;
  shapes_[oldest_].Learn(text, items);
  oldest_ = (oldest_ + 1) % shapes_.size();
  return true;
}

}  // namespace rankscope::logs
