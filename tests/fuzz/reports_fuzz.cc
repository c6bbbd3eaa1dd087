// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Arbitrary bytes as what NCCL and PyTorch report: RAS in text and JSON, a Flight Recorder's dump
// (pickle or JSON), a line of Inspector's log. No crash, bounded results, and of a pickle nothing
// but data.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "detectors/reports/flight_recorder.h"
#include "detectors/reports/inspector.h"
#include "detectors/reports/json.h"
#include "detectors/reports/pickle.h"
#include "detectors/reports/ras_report.h"

namespace {

using namespace rankscope::reports;

void Require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  std::abort();
}
#define REQUIRE(condition) Require((condition), #condition)

void CheckRas(const RasReport& report) {
  REQUIRE(report.communicators.size() <= kMaxRasCommunicators);
  size_t ranks = 0;
  for (const RasCommunicator& communicator : report.communicators) {
    ranks += communicator.ranks.size();
    REQUIRE(communicator.reported >= 0);
  }
  REQUIRE(!report.json || ranks <= kMaxRasRanks);
}

void CheckDump(std::string_view bytes) {
  const auto read = ReadFlightDump(bytes);
  if (!read) {
    REQUIRE(!read.error().empty());
    return;
  }
  REQUIRE(read->groups.size() <= kMaxFlightGroups);
  REQUIRE(read->entries <= kMaxFlightEntries);
  for (const FlightGroup& group : read->groups) {
    REQUIRE(group.entries <= read->entries);
    REQUIRE(!group.has_pending || group.pending.sequence >= 0);
    REQUIRE(group.pending.sizes.size() < 1000);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (const auto pickle = ReadPickle(bytes)) {
    REQUIRE(pickle->tree.valid(pickle->root));
    REQUIRE(pickle->tree.values() <= Tree::kMaxValues);
  }
  CheckDump(bytes);
  CheckRas(ReadRas(bytes));
  CheckRas(ReadRasText(bytes));
  ReadInspectorLine(bytes);
  return 0;
}
