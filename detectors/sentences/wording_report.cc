// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include <cstdlib>
#include <string>

#include "detectors/families/family.h"
#include "detectors/sentences/wording_rooms.h"

namespace rankscope::engine {
namespace {

using features::Evidence;
using features::EvidenceKind;

std::string Of(const Evidence& e, std::string_view key) {
  return std::string(e.Capture(key));
}

std::string Ranks(const Evidence& e) {
  return (e.ranks.size() == 1 ? "rank " : "ranks ") + Of(e, "ranks");
}

// "have" or "has", by the ranks of the sentence.
std::string Has(const Evidence& e) {
  return e.ranks.size() == 1 ? " has " : " have ";
}

std::string RanksCount(std::string_view count) {
  return std::string(count) + (count == "1" ? " rank" : " ranks");
}

std::string Number(const std::optional<double>& value) {
  return value ? families::Number(*value) : std::string();
}

// "all_reduce" or, where nobody says, "its operations".
std::string Operation(const Evidence& e) {
  const std::string operation = Of(e, "operation");
  return operation.empty() ? "an operation" : operation;
}

std::string FlightText(const Evidence& e) {
  const std::string_view what = e.Capture("what");
  std::string text;
  if (what == "disorder") {
    return "at operation " + Of(e, "sequence") + " of group " + Of(e, "group") + " " + Ranks(e) +
           (e.ranks.size() == 1 ? " waits in " : " wait in ") + Of(e, "theirs") + ", the other " +
           RanksCount(e.Capture("other_ranks")) + " in " + Of(e, "others") + " (flight recorder)";
  }
  if (what == "absent") {
    text = Ranks(e) + Has(e) + "never entered group " + Of(e, "group");
  } else {
    text = Ranks(e) + Has(e) + "entered operation " + Number(e.observed) + " of group " +
           Of(e, "group") + ", the furthest rank " + Number(e.expected);
  }
  text += "; " + RanksCount(e.Capture("waiting")) +
          (e.Capture("waiting") == "1" ? " waits in " : " wait in ") + Operation(e) +
          " (flight recorder, " + Of(e, "dumps") + " dumps";
  if (!e.Capture("silent").empty()) text += ", none of " + Of(e, "silent");
  return text + ")";
}

std::string RasText(const Evidence& e) {
  const std::string_view what = e.Capture("what");
  const std::string stands =
      " unchanged in " + Of(e, "reports") + " reports over " + Of(e, "seconds") + " s (NCCL RAS)";
  if (what == "none") return "NCCL's RAS answers and knows no communicator";
  if (what == "summary") {
    const std::string_view count = e.Capture("communicators");
    return "NCCL's RAS knows " + std::string(count) +
           (count == "1" ? " communicator" : " communicators") + "; the ranks of " +
           Number(e.observed) + " have launched differently many operations";
  }
  if (what == "silent") {
    return "NCCL's RAS took " + Of(e, "times") +
           " questions and did not answer: the process is stopped, or the service is stuck";
  }
  if (what == "renumbered") {
    return "NCCL gives ranks other numbers than their environment: rank " + Of(e, "pairs") +
           " in communicator " + Of(e, "communicator") + " of " + RanksCount(e.Capture("size")) +
           " (NCCL RAS)";
  }
  if (what == "dead") return Ranks(e) + Has(e) + "been given up by NCCL's RAS as dead";
  if (what == "unresponsive")
    return Ranks(e) + (e.ranks.size() == 1 ? " does" : " do") + " not answer NCCL's RAS," + stands;
  if (what == "disorder") {
    return Ranks(e) + Has(e) + "launched fewer " + Operation(e) + " (" + Number(e.observed) +
           " of " + Number(e.expected) + ") and more " + Of(e, "other_operation") +
           " than the others," + stands;
  }
  return Ranks(e) + Has(e) + "launched " + Number(e.observed) + " " + Operation(e) +
         " operations, " + RanksCount(e.Capture("waiting")) + " " + Number(e.expected) + "," +
         stands;
}

std::string PortText(const Evidence& e) {
  std::string text =
      "port " + Of(e, "port") + " of " + Of(e, "device") + " (" + Of(e, "link") + ")";
  if (!e.Capture("counts").empty())
    text += " counted " + Of(e, "counts") + " while the run went on";
  if (!e.Capture("fell").empty())
    text += (e.Capture("counts").empty() ? " went down: " : ", and went down: ") + Of(e, "state");
  return text;
}

}  // namespace

std::string ReportText(const Evidence& e) {
  switch (e.kind) {
    case EvidenceKind::kRas:
      return RasText(e);
    case EvidenceKind::kFlightRecorder:
      return FlightText(e);
    case EvidenceKind::kInspector:
      return "rank " + Of(e, "rank") + " reaches a bus bandwidth of " + Number(e.observed) +
             " B/s in " + Operation(e) + ", the median of " + RanksCount(e.Capture("ranks")) +
             " is " + Number(e.expected) + " (NCCL Inspector)";
    case EvidenceKind::kPortCounters:
      return PortText(e);
    default:
      return {};
  }
}

}  // namespace rankscope::engine
