// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include <string_view>

#include "detectors/families/family.h"
#include "detectors/sentences/wording.h"
#include "detectors/sentences/wording_rooms.h"

namespace rankscope::engine {
namespace {

using families::Number;
using features::Evidence;
using features::EvidenceKind;

struct OutcomeRow {
  std::string_view outcome;
  std::string_view text;
};
constexpr OutcomeRow kConnections[] = {
    {"refused", "was refused by the peer: nothing listens there"},
    {"rejected", "was rejected on the way, by ICMP: a packet filter, not the peer"},
    {"unreachable", "has no route"},
    {"no_local_address", "has no local address to come from"},
    {"no_answer", "got no answer"},
    {"connected", "was made"},
    {"abandoned", "was given up at once"},
    {"failed", "failed"},
};
constexpr OutcomeRow kListeners[] = {
    {"listening", "listens on"},
    {"in_use", "could not take, for it is in use, "},
    {"no_local_address", "could not take, for it is no address of this host, "},
    {"denied", "may not take "},
};
constexpr OutcomeRow kNames[] = {
    {"no_such_name", "does not exist"},
    {"no_answer", "was not answered by the name service"},
    {"failed", "could not be looked up"},
    {"found", "was found"},
};

std::string_view TextOf(const auto& rows, std::string_view outcome) {
  for (const OutcomeRow& row : rows) {
    if (row.outcome == outcome) return row.text;
  }
  return outcome;
}

std::string Who(const Evidence& e) {
  if (!e.ranks.empty()) return RankList(e.ranks);
  if (e.process.pid != 0) return "pid " + std::to_string(e.process.pid);
  return "a process";
}

std::string Times(const Evidence& e, std::string_view noun) {
  if (e.times <= 1) return {};
  return ", " + families::Counted(static_cast<double>(e.times), noun);
}

std::string Took(const Evidence& e) {
  if (!e.observed || *e.observed < 1) return {};
  return e.Capture("waiting") == "yes" ? ", for " + Number(*e.observed) + " s so far"
                                       : ", for up to " + Number(*e.observed) + " s";
}

std::string ErrorNumber(const Evidence& e) {
  const std::string_view error = e.Capture("error");
  return error.empty() ? std::string() : " (errno " + std::string(error) + ")";
}

}  // namespace

std::string NetworkText(const Evidence& e) {
  const std::string peer(e.Capture("peer"));
  const std::string_view outcome = e.Capture("outcome");
  switch (e.kind) {
    case EvidenceKind::kConnection:
      return "the connection of " + Who(e) + " to " + peer + " " +
             std::string(TextOf(kConnections, outcome)) + ErrorNumber(e) + Times(e, "attempt") +
             Took(e) + ", says the kernel";
    case EvidenceKind::kListener: {
      const std::string_view text = TextOf(kListeners, outcome);
      return Who(e) + " " + std::string(text) + (text.ends_with(' ') ? "" : " ") + peer +
             ErrorNumber(e) + ", says the kernel";
    }
    case EvidenceKind::kNameLookup:
      return Who(e) + " asked for the name " + peer + ", which " +
             std::string(TextOf(kNames, outcome)) + Times(e, "attempt") + Took(e);
    case EvidenceKind::kTraffic:
      return "a connection of " + Who(e) + " to " + peer + " was reset by the peer" +
             Times(e, "reset");
    case EvidenceKind::kTransport:
      if (const std::string_view setting = e.Capture("setting"); !setting.empty())
        return Who(e) + " runs with " + std::string(setting);
      return "NCCL says that its network is " + std::string(e.Capture("network"));
    default:
      return {};
  }
}

}  // namespace rankscope::engine
