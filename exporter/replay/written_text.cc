// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/replay/written_text.h"

#include <algorithm>
#include <cstdint>
#include <initializer_list>

namespace rankscope::replay {
namespace {

bool StartsWithAny(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(),
                     [text](std::string_view word) { return text.starts_with(word); });
}

// Python's statements at a module's level that no program prints as a line.
bool IsStatement(std::string_view line) {
  if (StartsWithAny(line, {"import ", "def ", "class ", "async def ", "if __name__", "@", "\"\"\"",
                           "#!", "with ", "for ", "try:", "return ", "else:", "except"}))
    return true;
  return line.starts_with("from ") && line.find(" import ") != std::string_view::npos;
}

// Indented, a comment or a statement: what most lines of a program are.
bool IsCode(std::string_view line) {
  return line.front() == ' ' || line.front() == '\t' || line.front() == '#' || IsStatement(line);
}

bool IsHeading(std::string_view line) {
  const size_t marks = line.find_first_not_of('#');
  return marks != 0 && marks != std::string_view::npos && marks <= 6 && line[marks] == ' ';
}

struct Counts {
  std::string_view first, last;
  int64_t lines = 0;
  int64_t code = 0;
  int64_t statements = 0;
  int64_t fences = 0;
};

Counts Count(std::string_view text) {
  Counts counts;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.find_first_not_of(" \t") == std::string_view::npos) continue;
    if (counts.first.empty()) counts.first = line;
    counts.last = line;
    ++counts.lines;
    counts.code += IsCode(line) ? 1 : 0;
    counts.statements += IsStatement(line) ? 1 : 0;
    counts.fences += line.starts_with("```") ? 1 : 0;
  }
  return counts;
}

}  // namespace

std::string_view WrittenByHand(std::string_view text) {
  const Counts counts = Count(text);
  if (counts.first.empty()) return {};
  // Output that follows a program's text ends with what was printed.
  const bool program = counts.statements >= 2 && IsCode(counts.first) && IsCode(counts.last) &&
                       2 * counts.code > counts.lines;
  if (program) return "a program's source";
  // Fences stand in pairs.
  if (IsHeading(counts.first) && counts.fences >= 2 && counts.fences % 2 == 0) return "a document";
  return {};
}

}  // namespace rankscope::replay
