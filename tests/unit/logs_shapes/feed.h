// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Feeds text to the failure machines and rows the way the reader does, without its prefixes and
// progress dialects.
#pragma once

#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "detectors/logs/failures/elastic_summary.h"
#include "detectors/logs/failures/traceback.h"
#include "detectors/logs/progress/formats.h"

namespace rankscope::logs {

inline std::vector<CleanLine> Lines(std::string_view text) {
  std::vector<CleanLine> lines;
  int64_t offset = 0;
  while (!text.empty()) {
    const size_t size = text.find('\n');
    CleanLine line;
    line.text = text.substr(0, size);
    line.original = line.text;
    line.offset = offset;
    lines.push_back(line);
    const size_t step = size == std::string_view::npos ? text.size() : size + 1;
    offset += static_cast<int64_t>(step);
    text.remove_prefix(step);
  }
  return lines;
}

inline std::vector<Incident> Incidents(RecordList records) {
  std::vector<Incident> incidents;
  for (Record& record : records) {
    if (auto* incident = std::get_if<Incident>(&record)) incidents.push_back(std::move(*incident));
  }
  return incidents;
}

template <class Machine>
std::vector<Incident> RunMachine(std::string_view text) {
  Machine machine;
  RecordList out;
  for (const CleanLine& line : Lines(text)) machine.Feed(line, out);
  machine.Flush(out);
  return Incidents(std::move(out));
}

inline std::vector<Incident> RunTraceback(std::string_view text) {
  return RunMachine<TracebackMachine>(text);
}

inline bool AnchorOf(std::span<const std::string_view> anchors, std::string_view text) {
  for (std::string_view anchor : anchors) {
    if (text.find(anchor) != std::string_view::npos) return true;
  }
  return false;
}

// Every row whose anchor is in the line.
inline std::vector<Incident> RunShapes(std::string_view text) {
  RecordList out;
  for (const CleanLine& line : Lines(text)) {
    for (const ShapeRow& row : Shapes()) {
      if (AnchorOf(row.anchors, line.text)) row.parse(line, out);
    }
  }
  return Incidents(std::move(out));
}

// Machines first, then rows, as the reader orders them.
inline std::vector<Incident> RunAll(std::string_view text) {
  TracebackMachine traceback;
  ElasticSummaryMachine summary;
  RecordList out;
  for (const CleanLine& line : Lines(text)) {
    const bool block = summary.open() || AnchorOf(ElasticSummaryMachine::kAnchors, line.text);
    if (block && summary.Feed(line, out)) continue;
    const bool frames = traceback.open() ||
                        line.text.find(TracebackMachine::kAnchor) != std::string_view::npos ||
                        line.text.find(TracebackMachine::kRayAnchor) != std::string_view::npos ||
                        AnchorOf(TracebackMachine::kContextAnchors, line.text);
    if (frames && traceback.Feed(line, out)) continue;
    for (const ShapeRow& row : Shapes()) {
      if (AnchorOf(row.anchors, line.text)) row.parse(line, out);
    }
  }
  traceback.Flush(out);
  summary.Flush(out);
  return Incidents(std::move(out));
}

inline std::string_view Field(const Incident& incident, std::string_view key) {
  for (const KeyValue& field : incident.fields) {
    if (field.key == key) return field.value;
  }
  return {};
}

}  // namespace rankscope::logs
