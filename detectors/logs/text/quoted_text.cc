// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include "detectors/logs/text/quoted_text.h"

#include <algorithm>

#include "detectors/logs/text/number.h"

namespace rankscope::logs {
namespace {

constexpr std::string_view kBlanks = "    ";
constexpr size_t kFewest = 4;  // lines that can be a quoted piece
constexpr int kDeepest = 3;    // a reply to a reply to a reply

// The lines that have the mark, and those that stand around them.
struct Piece {
  size_t marked = 0;
  size_t others = 0;
  bool torn = false;      // others stand between the marked lines
  bool apart = true;      // an empty line, or nothing, stands before the first
  size_t own_shapes = 0;  // marked lines that begin with no small letter
};

Piece FindPiece(std::string_view text, QuoteMark mark) {
  Piece piece;
  bool ended = false;
  bool empty_before = true;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    const bool cut = end == text.size();
    text.remove_prefix(std::min(end + 1, text.size()));
    if (cut && piece.marked + piece.others > kFewest) break;  // the beginning may end in a line
    if (line.ends_with('\r')) line.remove_suffix(1);
    const bool empty = Trimmed(line).empty();
    const size_t width = QuoteWidth(line, mark);
    if (!empty && width > 0) {
      if (piece.marked == 0) piece.apart = empty_before;
      piece.torn |= ended;
      ++piece.marked;
      const std::string_view rest = line.substr(width);
      if (rest.empty() || rest.front() < 'a' || rest.front() > 'z') ++piece.own_shapes;
    } else if (!empty) {
      ended = piece.marked > 0;
      ++piece.others;
    }
    empty_before = empty;
  }
  return piece;
}

}  // namespace

QuoteMark FindQuoteMark(std::string_view beginning) {
  const size_t first = beginning.find_first_not_of("\r\n");
  if (first == std::string_view::npos) return QuoteMark::kNone;
  // Megatron tells what it does by "> setting random seeds": in small letters.
  if (const Piece piece = FindPiece(beginning, QuoteMark::kSign);
      piece.marked >= kFewest && !piece.torn && piece.marked >= piece.others &&
      4 * piece.own_shapes >= piece.marked)
    return QuoteMark::kSign;
  // Markdown has an empty line before a block; a dump of stacks has its title there.
  if (const Piece piece = FindPiece(beginning, QuoteMark::kBlanks);
      piece.marked >= kFewest && !piece.torn && piece.apart && piece.marked >= 4 * piece.others)
    return QuoteMark::kBlanks;
  return QuoteMark::kNone;
}

size_t QuoteWidth(std::string_view line, QuoteMark mark) {
  if (mark == QuoteMark::kBlanks) return line.starts_with(kBlanks) ? kBlanks.size() : 0;
  if (mark == QuoteMark::kNone) return 0;
  size_t width = 0;
  for (int depth = 0; depth < kDeepest && width < line.size() && line[width] == '>'; ++depth) {
    if (width + 1 < line.size() && line[width + 1] != ' ') break;
    width += std::min<size_t>(2, line.size() - width);
  }
  return width;
}

}  // namespace rankscope::logs
