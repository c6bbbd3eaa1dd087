// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Characters that are seen as nothing and change how others are seen: whoever prints them can make
// a line read as another one, on a page and on a terminal alike. Where text of a job is shown they
// are written out, like \u202e. Any thread.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

#include "detectors/model/utf8.h"

namespace rankscope {

// Controls of terminals (C1; C0 and DEL are their users' matter), directions, joiners, separators
// of lines, marks without width, tags.
inline bool IsHidden(uint32_t code) {
  return (code >= 0x80 && code <= 0x9F) || code == 0xAD || code == 0x61C || code == 0x180E ||
         (code >= 0x200B && code <= 0x200F) || (code >= 0x2028 && code <= 0x202E) ||
         (code >= 0x2060 && code <= 0x206F) || code == 0xFEFF ||
         (code >= 0xFFF9 && code <= 0xFFFB) || (code >= 0xE0000 && code <= 0xE007F);
}

// Of the well-formed sequence of `size` bytes (Utf8Sequence) that `text` begins with.
inline uint32_t CodePoint(std::string_view text, size_t size) {
  const auto lead = static_cast<uint8_t>(text[0]);
  if (size <= 1) return lead;
  uint32_t code = lead & (0x7Fu >> size);
  for (size_t i = 1; i < size; ++i) code = code << 6 | (static_cast<uint8_t>(text[i]) & 0x3Fu);
  return code;
}

// Bytes of the hidden character that `text` begins with; 0 when it begins with none.
inline size_t HiddenSequence(std::string_view text) {
  if (text.empty() || static_cast<uint8_t>(text[0]) < 0xC2) return 0;
  const size_t size = Utf8Sequence(text);
  return size != 0 && IsHidden(CodePoint(text, size)) ? size : 0;
}

// As JSON writes it, in two halves beyond U+FFFF; people read it as well.
inline void AppendWrittenOut(uint32_t code, std::string& out) {
  char text[16];
  if (code > 0xFFFF) {
    const uint32_t rest = code - 0x10000;
    std::snprintf(text, sizeof text, "\\u%04x\\u%04x", 0xD800 + (rest >> 10),
                  0xDC00 + (rest & 0x3FF));
  } else {
    std::snprintf(text, sizeof text, "\\u%04x", code);
  }
  out.append(text);
}

// A text of some lines for a terminal: whatever is not seen there is written out, controls too.
inline std::string Legible(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const size_t size = Utf8Sequence(text);
    const uint32_t code = size == 0 ? 0xFFFD : CodePoint(text, size);
    const bool control = (code < 0x20 && code != '\n') || code == 0x7F;
    if (control || IsHidden(code)) {
      AppendWrittenOut(code, out);
    } else {
      out.append(size == 0 ? std::string_view("\xEF\xBF\xBD") : text.substr(0, size));
    }
    text.remove_prefix(size == 0 ? 1 : size);
  }
  return out;
}

}  // namespace rankscope
