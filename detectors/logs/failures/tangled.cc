// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include "detectors/logs/failures/tangled.h"

#include <algorithm>

#include "detectors/logs/failures/incident_text.h"

namespace rankscope::logs {
namespace {

constexpr size_t kNameCap = 256;      // of the run of names at the line's beginning
constexpr size_t kMessageScan = 512;  // of the message, where its second copy is looked for
constexpr size_t kNameRepeat = 4;     // shortest piece of a name that does not repeat by itself
constexpr size_t kTextRepeat = 8;     // the same of a message

bool IsNameByte(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '.';
}

// "json.decoderjson.decoder..JSONDecodeErrorJSONDecodeError" -> "json.decoder.JSONDecodeError": a
// piece that is followed by itself is there once. Returns the most copies that any piece had.
int CollapseRepeats(std::string& name) {
  int copies = 1;
  for (size_t at = 0; at < name.size(); ++at) {
    for (size_t size = (name.size() - at) / 2; size > 0; --size) {
      if (size < kNameRepeat && !(size == 1 && name[at] == '.')) continue;
      int here = 1;
      while (name.compare(at + size, size, name, at, size) == 0 && at + 2 * size <= name.size()) {
        name.erase(at + size, size);
        ++here;
      }
      copies = std::max(copies, here);
      size = std::min(size, (name.size() - at) / 2 + 1);
    }
  }
  return copies;
}

// How many of the pieces of the line "TYPE: TEXT" other than TEXT `rest` begins with; they are
// removed.
int SkipPieces(std::string_view type, std::string_view& rest) {
  for (int skipped = 0;; ++skipped) {
    if (rest.starts_with(": ")) {
      rest.remove_prefix(2);
    } else if (rest == ":") {  // its space was trimmed
      rest = {};
    } else if (rest.starts_with(type)) {
      rest.remove_prefix(type.size());
    } else {
      return skipped;
    }
  }
}

// Copies of `message` in `rest` when nothing else but pieces of the line is in it; 0 otherwise.
// `pieces`: how many of those there were.
int CopiesOf(std::string_view message, std::string_view type, std::string_view rest, int& pieces) {
  int copies = 0;
  pieces = 0;
  while (!rest.empty()) {
    const int skipped = SkipPieces(type, rest);
    pieces += skipped;
    if (rest.empty()) break;
    if (rest.starts_with(message)) {
      rest.remove_prefix(message.size());
      ++copies;
    } else if (skipped == 0 || Trim(rest) != ":") {
      return 0;
    } else {
      break;
    }
  }
  return copies;
}

// The shortest text of which `rest` consists, with the line's other pieces between; all of `rest`
// when there is none.
std::string_view OneCopy(std::string_view type, std::string_view rest, int& copies) {
  const size_t last = std::min(rest.size(), kMessageScan);
  for (size_t size = std::min(kTextRepeat, last); size < last; ++size) {
    const std::string_view next = rest.substr(size);
    if (next[0] != rest[0] && !next.starts_with(": ") && !next.starts_with(type)) continue;
    int pieces = 0;
    const int found = CopiesOf(rest.substr(0, size), type, rest, pieces);
    // "no such key: " is how a message may end; only more of the line's pieces make it two writers.
    if (found > 1 || (found == 1 && next.starts_with(type))) {
      copies = std::max(copies, std::max(found, 2));
      return rest.substr(0, size);
    }
  }
  return rest;
}

// One of the `count` equal parts that `text` consists of, however short; empty where it does not.
std::string_view EqualParts(std::string_view text, int count) {
  const auto parts = static_cast<size_t>(count);
  if (count < 2 || text.empty() || text.size() % parts != 0) return {};
  const std::string_view part = text.substr(0, text.size() / parts);
  for (size_t at = 0; at < text.size(); at += part.size()) {
    if (text.substr(at, part.size()) != part) return {};
  }
  return part;
}

}  // namespace

UntangledLine Untangle(std::string_view text) {
  size_t size = 0;
  while (size < text.size() && IsNameByte(text[size])) ++size;
  if (size < kTextRepeat || size > kNameCap) return {};
  UntangledLine line;
  line.type.assign(text.substr(0, size));
  line.copies = CollapseRepeats(line.type);
  const std::string_view last = LastComponent(line.type);
  if (last.empty() || last.front() < 'A' || last.front() > 'Z') return {};
  std::string_view rest = text.substr(size);
  const int pieces = SkipPieces(line.type, rest);
  if (pieces > 1) line.copies = std::max(line.copies, 2);
  const std::string_view exact = EqualParts(Trim(rest), line.copies);
  line.message.assign(exact.empty() ? Trim(OneCopy(line.type, rest, line.copies)) : exact);
  if (line.copies < 2 || (pieces == 0 && !rest.empty())) return {};
  return line;
}

std::string_view BehindCarets(std::string_view text) {
  const size_t at = text.find_first_not_of(" ^~");
  if (at == std::string_view::npos || at == 0) return text;
  const std::string_view before = text.substr(0, at);
  const size_t caret = before.find_last_of("^~");
  return caret == std::string_view::npos ? text : text.substr(caret + 1);
}

std::string WithoutCarets(std::string_view text) {
  std::string name;
  size_t at = 0;
  for (; at < text.size() && name.size() <= kNameCap; ++at) {
    const char c = text[at];
    if (IsNameByte(c) && !(c == '.' && name.empty())) {
      name.push_back(c);
    } else if (c != '^' && c != '~' && c != '.') {
      break;
    }
  }
  if (name.size() == at || name.empty() || name.size() > kNameCap) return {};
  std::string_view rest = text.substr(at);
  // Carets behind the colon are the other writer's too.
  if (Trim(rest).find_first_not_of(":^~ ") == std::string_view::npos) rest = {};
  return name.append(rest);
}

std::string_view WithoutPieces(std::string_view type, std::string_view message) {
  const std::string_view name = LastComponent(type);
  std::string_view module = type.substr(0, type.size() - name.size());
  if (module.ends_with(".")) module.remove_suffix(1);
  const std::string_view pieces[] = {name, module, ".", ":"};
  const auto strip = [&](auto&& stands, auto&& remove) {
    for (bool cut = true; cut;) {
      cut = false;
      message = Trim(message);
      for (const std::string_view piece : pieces) {
        if (piece.empty() || message.size() <= piece.size() || !stands(piece)) continue;
        remove(piece.size());
        cut = true;
      }
    }
  };
  strip([&](std::string_view piece) { return message.starts_with(piece); },
        [&](size_t size) { message.remove_prefix(size); });
  const size_t again = message.find(name);
  if (again == std::string_view::npos) return message;
  message = message.substr(0, again);
  strip([&](std::string_view piece) { return message.ends_with(piece); },
        [&](size_t size) { message.remove_suffix(size); });
  return message;
}

}  // namespace rankscope::logs
