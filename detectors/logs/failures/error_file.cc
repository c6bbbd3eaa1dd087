// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// torchelastic's error file: one JSON object on one line, the traceback in it as a string with
// escaped line ends. It is unfolded and read like any other traceback.
#include <algorithm>
#include <string>
#include <utility>

#include "detectors/logs/failures/shape_groups.h"
#include "detectors/logs/failures/traceback.h"

namespace rankscope::logs {
namespace {

constexpr std::string_view kAnchors[] = {"\"py_callstack\": \""};
constexpr size_t kLongest = 64 * 1024;  // as the line itself

// What a JSON string holds, up to its closing quote. Characters beyond ASCII that are escaped are
// shown as '?': names of files and exceptions hardly have any.
std::string Unescape(std::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size() && text[i] != '"' && plain.size() < kLongest; ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      plain += text[i];
      continue;
    }
    switch (const char c = text[++i]; c) {
      case 'n':
        plain += '\n';
        break;
      case 't':
        plain += '\t';
        break;
      case 'r':
        break;
      case 'u':
        plain += '?';
        i += 4;
        break;
      default:
        plain += c;
    }
  }
  return plain;
}

void ParseErrorFile(const CleanLine& line, RecordList& out) {
  const size_t at = line.text.find(kAnchors[0]);
  if (at == std::string_view::npos || !line.text.starts_with('{')) return;
  const std::string stack = Unescape(line.text.substr(at + kAnchors[0].size()));
  TracebackMachine machine;
  RecordList unfolded;
  std::string_view rest = stack;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    CleanLine one = line;
    one.text = one.original = rest.substr(0, end);
    machine.Feed(one, unfolded);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  machine.Flush(unfolded);
  for (Record& record : unfolded) {
    auto* incident = std::get_if<Incident>(&record);
    if (incident == nullptr) continue;
    // The stream holds only the folded line.
    incident->line = line.original.substr(0, kCitationCap);
    incident->offset = line.offset;
    incident->quotes.clear();
    out.push_back(std::move(record));
  }
}

constexpr ShapeRow kRows[] = {
    {"error_file", "torchelastic's error file: a traceback within JSON", kAnchors, ParseErrorFile,
     "{\"message\": {\"message\": \"KeyError: 'mask'\", \"extraInfo\": {\"py_callstack\": "
     "\"Traceback (most recent call last):\\n  File \\\"fit.py\\\", line 9, in main\\n    "
     "batch['mask']\\nKeyError: 'mask'\\n\", \"timestamp\": \"1763781312\"}}}"},
};

}  // namespace

std::span<const ShapeRow> ErrorFileShapes() {
  return kRows;
}

}  // namespace rankscope::logs
