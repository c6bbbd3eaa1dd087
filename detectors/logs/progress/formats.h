// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The tables of what rankscope can read in text. A progress dialect, a marker or a failure shape is
// a row: constants and a function pointer, in an explicit list. Rows are stateless; what spans
// lines (tracebacks, launcher summaries) is a machine of its own that the reader owns.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "detectors/logs/record.h"

namespace rankscope::logs {

// A row is tried on a line only when one of its anchors occurs in the line: literals of at least
// three bytes, matched case-sensitively against the cleaned text.
struct BlockDialect;  // block.h

struct FormatRow {
  std::string_view name;       // snake_case, a label value
  std::string_view framework;  // as shown to people
  std::span<const std::string_view> anchors;
  // Appends the records of this line; returns whether the line was claimed (no further *format* is
  // tried).
  bool (*parse)(const CleanLine& line, RecordList& out);
  std::string_view example;  // a line that it claims, or the lines of a record that spans several;
                             // nobody else's example may be claimed
  const BlockDialect* block = nullptr;  // of a dialect whose records span lines
};

struct ShapeRow {
  std::string_view name;
  std::string_view what;  // one phrase for the generated table
  std::span<const std::string_view> anchors;
  // Appends the incidents of this line. Shapes do not exclude each other.
  void (*parse)(const CleanLine& line, RecordList& out);
  std::string_view example;
};

// Progress dialects and markers, most specific first, generic fallback last. formats.cc
std::span<const FormatRow> Formats();

// Offers the line to one row: to a dialect also without what stands before its own words. Whether
// the row claims it. formats.cc
class OwnText;  // own_line.h
bool ParseRow(size_t row, OwnText& text, RecordList& out);

// Single-line failure shapes. shapes.cc
std::span<const ShapeRow> Shapes();

}  // namespace rankscope::logs
