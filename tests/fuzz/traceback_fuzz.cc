// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Arbitrary lines through the traceback machine, the summary machine, every shape row and every
// fact of NCCL, anchors or not: no crash, bounded state, and a state that survives archiving.
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <variant>

#include "detectors/logs/dialects.h"
#include "detectors/logs/elastic_summary.h"
#include "detectors/logs/exception_table.h"
#include "detectors/logs/formats.h"
#include "detectors/logs/traceback.h"
#include "detectors/model/archive.h"

namespace {

using rankscope::logs::CleanLine;
using rankscope::logs::ElasticSummaryMachine;
using rankscope::logs::Incident;
using rankscope::logs::RecordList;
using rankscope::logs::TracebackMachine;

void Require(bool holds) {
  if (!holds) std::abort();
}

void CheckRecords(const RecordList& records) {
  for (const rankscope::logs::Record& record : records) {
    const auto* incident = std::get_if<Incident>(&record);
    Require(incident != nullptr);
    Require(incident->message.size() <= rankscope::logs::kMessageCap);
    Require(incident->line.size() <= rankscope::logs::kCitationCap);
    Require(!FaultClass(*incident).empty());
    Require(!ExceptionSub(*incident).empty());
    Require(ToldFaultClass(*incident).empty() ||
            ToldFaultClass(*incident) == FaultClass(*incident));
    if (FailsAtFirstUse(*incident)) Require(!FaultClass(*incident).empty());
    Require(incident->quotes.size() <= rankscope::logs::kMaxQuotes);
    for (const rankscope::logs::Quote& quote : incident->quotes)
      Require(quote.line.size() <= rankscope::logs::kCitationCap);
  }
}

void CheckFacts(const RecordList& records) {
  for (const rankscope::logs::Record& record : records) {
    const auto* marker = std::get_if<rankscope::logs::Marker>(&record);
    Require(marker != nullptr && marker->kind == rankscope::logs::MarkerKind::kFact);
    Require(marker->line.find(marker->text) != std::string_view::npos || marker->text == "on" ||
            marker->text == "off");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  TracebackMachine traceback;
  ElasticSummaryMachine summary;
  RecordList records;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    CleanLine line;
    line.text = text.substr(0, end);
    line.original = line.text;
    traceback.Feed(line, records);
    summary.Feed(line, records);
    for (const rankscope::logs::ShapeRow& row : rankscope::logs::Shapes()) row.parse(line, records);
    CheckRecords(records);
    records.clear();
    for (const rankscope::logs::FormatRow& row : rankscope::logs::NcclFactRows())
      row.parse(line, records);
    CheckFacts(records);
    records.clear();
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  rankscope::ArchiveWriter writer;
  traceback.Fields(writer);
  summary.Fields(writer);
  const std::string bytes = writer.Take();
  rankscope::ArchiveReader reader(bytes);
  TracebackMachine traceback_copy;
  ElasticSummaryMachine summary_copy;
  traceback_copy.Fields(reader);
  summary_copy.Fields(reader);
  Require(reader.Complete());
  traceback.Flush(records);
  summary.Flush(records);
  CheckRecords(records);
  const size_t flushed = records.size();
  records.clear();
  traceback_copy.Flush(records);
  summary_copy.Flush(records);
  Require(records.size() == flushed);
  return 0;
}
