// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include "detectors/logs/failures/boxed_traceback.h"

#include "detectors/logs/failures/incident_text.h"

namespace rankscope::logs {
namespace {

constexpr std::string_view kTopCorner = "╭─";
constexpr std::string_view kBottomCorner = "╰─";
constexpr std::string_view kSide = "│";
constexpr std::string_view kPointer = "❱ ";
constexpr std::string_view kTitle = " Traceback (most recent call last) ─";

bool TakePrefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

// "❱ 8 │   │   return x" without its number and the guides that stand for its indentation.
void ReadCode(std::string_view text, BoxedLine& out) {
  const size_t digits = text.find_first_not_of("0123456789");
  if (digits == 0 || digits == std::string_view::npos || text[digits] != ' ') return;
  text = TrimLeft(text.substr(digits));
  while (TakePrefix(text, kSide)) text = TrimLeft(text);
  out.kind = BoxedLine::Kind::kCode;
  out.code = text;
}

// "/job/train.py:8 in build"
void ReadFrame(std::string_view text, BoxedLine& out) {
  const size_t in = text.find(" in ");
  if (in == std::string_view::npos) return;
  const std::string_view place = text.substr(0, in);
  const size_t colon = place.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return;
  const auto line = LeadingInt(place.substr(colon + 1));
  const bool digits_only =
      place.find_first_not_of("0123456789", colon + 1) == std::string_view::npos;
  const std::string_view file = place.substr(0, colon);
  const bool is_file = file.ends_with(".py") || file.front() == '/' || file.front() == '<';
  if (!line || !digits_only || !is_file || *line <= 0 || *line >= (1 << 30)) return;
  out.kind = BoxedLine::Kind::kFrame;
  out.file = file;
  out.line = static_cast<int32_t>(*line);
  out.function = Trim(text.substr(in + 4));
}

}  // namespace

BoxedLine ParseBoxed(std::string_view text) {
  BoxedLine out;
  if (text.starts_with(kTopCorner)) {
    if (!Contains(text, kTitle)) return out;
    out.kind = BoxedLine::Kind::kTop;
    out.width = Characters(text);
  } else if (text.starts_with(kBottomCorner)) {
    out.kind = BoxedLine::Kind::kBottom;
  } else if (TakePrefix(text, kSide)) {
    out.kind = BoxedLine::Kind::kOther;
    if (text.ends_with(kSide)) text.remove_suffix(kSide.size());
    text = Trim(text);
    if (TakePrefix(text, kPointer)) {
      ReadCode(TrimLeft(text), out);
    } else {
      ReadFrame(text, out);
    }
  }
  return out;
}

int32_t Characters(std::string_view text) {
  int32_t count = 0;
  for (const char byte : text) count += (static_cast<uint8_t>(byte) & 0xC0) != 0x80;
  return count;
}

}  // namespace rankscope::logs
