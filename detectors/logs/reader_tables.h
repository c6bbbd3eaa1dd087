// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// All anchors of a stream's reader in one scanner, and sets of the rows that they belong to.
// Private to reader.cc; immutable once made, any thread.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "detectors/logs/failures/elastic_summary.h"
#include "detectors/logs/failures/traceback.h"
#include "detectors/logs/progress/dialects.h"
#include "detectors/logs/progress/formats.h"
#include "detectors/logs/text/scanner.h"

namespace rankscope::logs {

// A bit for each row of both tables and for the two machines.
using RowSet = std::vector<uint64_t>;

// What launchers that start a node's ranks themselves are called by, and print: under them a task
// of srun is a node's launcher, and its number no rank.
inline constexpr std::string_view kNodeLaunchers[] = {
    "torchrun --",      "torch.distributed.elastic", "torch/distributed/run.py", "--nproc_per_node",
    "--nproc-per-node", "accelerate launch ",        "deepspeed.launcher",       "[launch.py:"};

// All anchors in one scanner. Rows: formats, then shapes, then the traceback machine, then the
// summary machine, then the launchers of nodes.
struct Tables {
  std::span<const FormatRow> formats = Formats();
  std::span<const ShapeRow> shapes = Shapes();
  uint32_t traceback_row = static_cast<uint32_t>(formats.size() + shapes.size());
  uint32_t summary_row = traceback_row + 1;
  uint32_t node_row = summary_row + 1;
  uint32_t keras_row = 0;
  size_t words = node_row / 64 + 1;  // of a set of rows
  RowSet spanning = RowSet(words);   // dialects whose records stand on several lines
  Scanner scanner;

  Tables() : scanner(Literals(), Scanner::Case::kSensitive) {
    while (keras_row < formats.size() && formats[keras_row].name != "keras") ++keras_row;
    for (size_t row = 0; row < formats.size(); ++row) {
      if (formats[row].parse == SpansLines) spanning[row / 64] |= uint64_t{1} << (row % 64);
    }
  }

  std::vector<Scanner::Literal> Literals() const {
    std::vector<Scanner::Literal> literals;
    uint32_t row = 0;
    for (const FormatRow& format : formats) {
      for (const std::string_view anchor : format.anchors) literals.push_back({anchor, row});
      ++row;
    }
    for (const ShapeRow& shape : shapes) {
      for (const std::string_view anchor : shape.anchors) literals.push_back({anchor, row});
      ++row;
    }
    literals.push_back({TracebackMachine::kAnchor, traceback_row});
    literals.push_back({TracebackMachine::kRayAnchor, traceback_row});
    literals.push_back({TracebackMachine::kTerminateAnchor, traceback_row});
    for (const std::string_view anchor : TracebackMachine::kContextAnchors)
      literals.push_back({anchor, traceback_row});
    for (const std::string_view anchor : ElasticSummaryMachine::kAnchors)
      literals.push_back({anchor, summary_row});
    for (const std::string_view anchor : kNodeLaunchers) literals.push_back({anchor, node_row});
    return literals;
  }
};

inline const Tables& SharedTables() {
  static const Tables tables;
  return tables;
}

inline bool Overlap(const RowSet& a, const RowSet& b) {
  uint64_t common = 0;
  for (size_t i = 0; i < a.size(); ++i) common |= a[i] & b[i];
  return common != 0;
}

inline bool Has(const RowSet& rows, uint32_t row) {
  return (rows[row / 64] >> (row % 64)) & 1;
}

// Calls fn(row) for the rows in [begin, end) by rising number, until it returns true.
template <typename Fn>
bool AnyRow(const RowSet& rows, uint32_t begin, uint32_t end, Fn&& fn) {
  for (uint32_t word = begin / 64; word < rows.size() && word * 64 < end; ++word) {
    uint64_t bits = rows[word];
    if (word == begin / 64) bits &= ~uint64_t{0} << (begin % 64);
    while (bits != 0) {
      const uint32_t row = word * 64 + static_cast<uint32_t>(std::countr_zero(bits));
      if (row >= end) return false;
      if (fn(row)) return true;
      bits &= bits - 1;
    }
  }
  return false;
}

}  // namespace rankscope::logs
