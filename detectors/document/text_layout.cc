// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/document/text_layout.h"

#include "detectors/model/hidden_text.h"
#include "detectors/model/utf8.h"

namespace rankscope {
namespace {

// Code points, which is columns for all but wide scripts.
size_t Columns(std::string_view text) {
  size_t count = 0;
  for (const char c : text) count += (static_cast<uint8_t>(c) & 0xC0) != 0x80;
  return count;
}

// The bytes of at most `columns` code points.
size_t BytesOf(std::string_view text, size_t columns) {
  size_t at = 0;
  while (at < text.size() && columns > 0) {
    ++at;
    while (at < text.size() && (static_cast<uint8_t>(text[at]) & 0xC0) == 0x80) ++at;
    --columns;
  }
  return at;
}

}  // namespace

std::string Printable(std::string_view text) {
  const std::string valid = ToUtf8(text);
  std::string out;
  out.reserve(valid.size());
  for (size_t i = 0; i < valid.size(); ++i) {
    const auto byte = static_cast<uint8_t>(valid[i]);
    const bool c1 = byte == 0xC2 && static_cast<uint8_t>(valid[i + 1]) < 0xA0;
    if (byte == '\n' || byte == '\r' || byte == '\t') {
      out.push_back(' ');
    } else if (byte < 0x20 || byte == 0x7F || c1) {
      out.push_back('?');
      if (c1) ++i;
    } else if (const size_t hidden = HiddenSequence(std::string_view(valid).substr(i))) {
      AppendWrittenOut(CodePoint(std::string_view(valid).substr(i), hidden), out);
      i += hidden - 1;
    } else {
      out.push_back(valid[i]);
    }
  }
  return out;
}

void Wrap(std::string_view first, std::string_view text, std::string& out) {
  const std::string printable = Printable(text);
  const std::string indent(Columns(first), ' ');
  const size_t width = kColumns - indent.size();
  std::string_view rest = printable;
  out.append(first);
  for (bool more = true; more;) {
    size_t size = BytesOf(rest, width);
    more = size < rest.size();
    if (more && rest[size] != ' ') {
      const size_t blank = rest.substr(0, size).rfind(' ');
      if (blank != std::string_view::npos && blank > 0) size = blank;
    }
    std::string_view line = rest.substr(0, size);
    while (more && line.ends_with(' ')) line.remove_suffix(1);
    out.append(line);
    out.push_back('\n');
    rest.remove_prefix(size);
    while (more && !rest.empty() && rest.front() == ' ') rest.remove_prefix(1);
    more = !rest.empty();
    if (more) out.append(indent);
  }
}

std::string Cut(std::string_view first, std::string_view text) {
  std::string printable = Printable(text);
  while (printable.ends_with(' ')) printable.pop_back();
  const size_t width = kColumns - Columns(first);
  if (Columns(printable) <= width) return std::string(first) + printable + "\n";
  return std::string(first) + printable.substr(0, BytesOf(printable, width - 3)) + "...\n";
}

}  // namespace rankscope
