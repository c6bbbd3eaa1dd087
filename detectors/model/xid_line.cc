// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/model/xid_line.h"

#include <algorithm>

#include "detectors/model/line_cursor.h"
#include "detectors/model/pci_card.h"

namespace rankscope {
namespace {

// "PCI:0000:4F:00", ".0" and " GPU-I:05" behind it where they are.
bool TakePlace(LineCursor& cursor) {
  cursor.Take("PCI:");
  if (!cursor.TakePciPlace()) return false;
  return !cursor.Take(" GPU-I:") || cursor.TakeNumber().has_value();
}

}  // namespace

size_t LoggedSize(std::string_view text, size_t bytes) {
  size_t at = 0;
  for (size_t i = 0; i < bytes && at < text.size(); ++i)
    at += text.substr(at).starts_with("\\x") ? 4 : 1;
  return std::min(at, text.size());
}

std::optional<XidLine> ReadXidLine(std::string_view text) {
  LineCursor cursor(text);
  if (!cursor.Take("NVRM: Xid (")) return std::nullopt;
  XidLine line;
  line.bus_id = PciCard(cursor.rest());
  if (!TakePlace(cursor) || !cursor.Take("): ")) return std::nullopt;
  const std::optional<int64_t> code = cursor.TakeNumber();
  constexpr int64_t kMaxCode = 9999;
  if (!code || *code > kMaxCode || !cursor.Take(",")) return std::nullopt;
  line.code = static_cast<int32_t>(*code);
  cursor.Take(" ");
  if (cursor.Take("pid=")) {
    if (!cursor.Take("'<unknown>'") && !cursor.Take("<unknown>")) {
      const std::optional<int64_t> pid = cursor.TakeNumber();
      if (!pid || *pid > INT32_MAX) return std::nullopt;
      line.pid = static_cast<int32_t>(*pid);
    }
    cursor.Take(",");
    cursor.Take(" ");
  }
  if (!cursor.Take("name=")) {
    line.detail = cursor.rest();
    return line;
  }
  // A name may hold ", " and then what looks like the driver's words: they begin behind the last
  // one that a name of full length could end before.
  const std::string_view rest = cursor.rest();
  const size_t end = rest.substr(0, LoggedSize(rest, kCommBytes + 2)).rfind(", ");
  line.name = rest.substr(0, end);
  if (end != std::string_view::npos) line.detail = rest.substr(end + 2);
  return line;
}

}  // namespace rankscope
