// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/windows/last_words.h"

#include <algorithm>
#include <cstring>

namespace rankscope::windows {
namespace {

// Three letters in a row, a digit, or a terminal's echo of Ctrl-C, within what is kept of the line.
bool SaysSomething(std::string_view text) {
  if (text == "^C") return true;
  int letters = 0;
  for (const char c : text) {
    const bool letter = ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
    letters = letter ? letters + 1 : 0;
    if (letters == 3 || (c >= '0' && c <= '9')) return true;
  }
  return false;
}

// tqdm and Rich: " 24%|##   | 114/468 [..", "Epoch 19/99 ---- 1400/1400 0:04:13".
bool IsBar(std::string_view text) {
  const void* percent = std::memchr(text.data(), '%', text.size());
  if (percent == nullptr) return false;
  const size_t at = static_cast<size_t>(static_cast<const char*>(percent) - text.data());
  return at + 1 < text.size() && text[at + 1] == '|';
}

}  // namespace

void LastWords::Add(uint32_t stream, int64_t offset, std::string_view text, Timestamp t) {
  text = text.substr(0, kLongest);
  if (!SaysSomething(text)) return;
  const bool bar = IsBar(text);
  const bool same = bar && count_ > 0 && At(0).bar && At(0).stream == stream;
  if (!same) ++count_;
  SaidLine& line = lines_[static_cast<size_t>(count_ - 1) % kLines];
  line.stream = stream;
  line.offset = offset;
  line.bar = bar;
  line.record = false;
  line.t = t;
  line.text.assign(text);
}

void LastWords::MarkRecord() {
  if (count_ > 0) lines_[static_cast<size_t>(count_ - 1) % kLines].record = true;
}

const SaidLine& LastWords::At(size_t age) const {
  static const SaidLine kNothing;
  const auto kept = static_cast<size_t>(std::min<int64_t>(count_, kLines));
  if (age >= kept) return kNothing;
  return lines_[static_cast<size_t>(count_ - 1 - static_cast<int64_t>(age)) % kLines];
}

}  // namespace rankscope::windows
