// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Arbitrary lines through the traceback machine, the summary machine, every shape row and every
// fact of NCCL, anchors or not: no crash, bounded state, and a state that survives archiving.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string_view>
#include <variant>

#include "detectors/logs/failures/elastic_summary.h"
#include "detectors/logs/failures/exception_table.h"
#include "detectors/logs/failures/traceback.h"
#include "detectors/logs/progress/dialects.h"
#include "detectors/logs/progress/formats.h"
#include "detectors/model/archive.h"

namespace {

using rankscope::logs::CleanLine;
using rankscope::logs::ElasticSummaryMachine;
using rankscope::logs::Incident;
using rankscope::logs::RecordList;
using rankscope::logs::TracebackMachine;

void Require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  std::abort();
}
#define REQUIRE(condition) Require((condition), #condition)

void CheckRecords(const RecordList& records) {
  for (const rankscope::logs::Record& record : records) {
    const auto* incident = std::get_if<Incident>(&record);
    if (incident == nullptr) {  // a failed write may be a save that failed
      REQUIRE(std::holds_alternative<rankscope::logs::Marker>(record));
      continue;
    }
    REQUIRE(incident->message.size() <= rankscope::logs::kMessageCap);
    REQUIRE(incident->line.size() <= rankscope::logs::kCitationCap);
    REQUIRE(!FaultClass(*incident).empty());
    REQUIRE(!ExceptionSub(*incident).empty());
    REQUIRE(ToldFaultClass(*incident).empty() ||
            ToldFaultClass(*incident) == FaultClass(*incident));
    if (FailsAtFirstUse(*incident)) REQUIRE(!FaultClass(*incident).empty());
    REQUIRE(incident->quotes.size() <= rankscope::logs::kMaxQuotes);
    for (const rankscope::logs::Quote& quote : incident->quotes)
      REQUIRE(quote.line.size() <= rankscope::logs::kCitationCap);
  }
}

void CheckFacts(const RecordList& records) {
  for (const rankscope::logs::Record& record : records) {
    const auto* marker = std::get_if<rankscope::logs::Marker>(&record);
    REQUIRE(marker != nullptr && marker->kind == rankscope::logs::MarkerKind::kFact);
    REQUIRE(marker->line.find(marker->text) != std::string_view::npos || marker->text == "on" ||
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
    // Every row sees every eighth line or so, whatever it holds: all of them would cost
    // milliseconds.
    size_t turn = std::hash<std::string_view>()(line.text);
    for (const rankscope::logs::ShapeRow& row : rankscope::logs::Shapes()) {
      if (turn++ % 8 == 0) row.parse(line, records);
    }
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
  REQUIRE(reader.Complete());
  traceback.Flush(records);
  summary.Flush(records);
  CheckRecords(records);
  const size_t flushed = records.size();
  records.clear();
  traceback_copy.Flush(records);
  summary_copy.Flush(records);
  REQUIRE(records.size() == flushed);
  return 0;
}
