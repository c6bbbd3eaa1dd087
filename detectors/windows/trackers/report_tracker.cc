// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/windows/trackers/report_tracker.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>

#include "detectors/model/event_types.h"
#include "detectors/reports/culprit.h"

namespace rankscope::windows {
namespace {

using reports::RasCommunicator;
using reports::RasRank;
using reports::RasReport;

constexpr size_t kOperations = reports::kRasOperationCount + 1;
constexpr size_t kMaxText = 256;

std::string_view Text(const Event& event, std::string_view key) {
  for (const KeyValue& pair : event.str) {
    if (pair.key == key) return pair.value;
  }
  return {};
}

std::string Short(const Event& event, std::string_view key, size_t most = kMaxText) {
  return std::string(Text(event, key).substr(0, most));
}

int64_t Number(const Event& event, std::string_view key, int64_t otherwise) {
  for (const IntKeyValue& pair : event.num) {
    if (pair.key == key) return pair.value;
  }
  return otherwise;
}

// What is known of one operation of a communicator.
struct Spread {
  int64_t least = -1, most = -1;
  int64_t at_least = 0, at_most = 0, all = 0;  // ranks
};

std::array<Spread, kOperations> Spreads(const RasCommunicator& communicator) {
  std::array<Spread, kOperations> spreads;
  for (const reports::RasCount& count : communicator.counts) {
    if (count.operation >= kOperations || count.ranks <= 0 || count.launched < 0) continue;
    Spread& spread = spreads[count.operation];
    spread.all += count.ranks;
    if (spread.least < 0 || count.launched < spread.least) {
      spread.least = count.launched;
      spread.at_least = 0;
    }
    if (count.launched > spread.most) {
      spread.most = count.launched;
      spread.at_most = 0;
    }
    if (count.launched == spread.least) spread.at_least += count.ranks;
    if (count.launched == spread.most) spread.at_most += count.ranks;
  }
  return spreads;
}

RasSuspect Describe(const RasCommunicator& communicator, const RasRank& rank, RasSuspect::Kind kind,
                    Timestamp t) {
  RasSuspect suspect;
  suspect.kind = kind;
  suspect.communicator = communicator.id;
  suspect.size = communicator.size;
  suspect.rank = rank.rank;
  suspect.host = rank.host.substr(0, kMaxText);
  suspect.pid = rank.pid;
  suspect.first = suspect.last = t;
  return suspect;
}

// Who has launched the fewest of an operation, where they are few and all of them are named.
// Whoever has launched more of another one than most went another way; a prefix of the same program
// has not.
void AddBehind(const RasCommunicator& communicator, Timestamp t,
               std::vector<RasSuspect>& suspects) {
  const std::array<Spread, kOperations> spreads = Spreads(communicator);
  // JSON gives each operation and their sum; the sum is for releases that count no other.
  for (size_t operation = 0; operation < kOperations; ++operation) {
    const Spread& spread = spreads[operation];
    if (spread.all < 2 || spread.least == spread.most) continue;
    if (!reports::IsFew(spread.at_least, std::max<int64_t>(communicator.size, spread.all)))
      continue;
    std::vector<const RasRank*> behind;
    for (const RasRank& rank : communicator.ranks) {
      if (rank.launched[operation] == spread.least) behind.push_back(&rank);
    }
    if (static_cast<int64_t>(behind.size()) != spread.at_least) continue;
    for (const RasRank* rank : behind) {
      RasSuspect suspect = Describe(communicator, *rank, RasSuspect::Kind::kBehind, t);
      suspect.operation = static_cast<int32_t>(operation);
      suspect.launched = spread.least;
      suspect.furthest = spread.most;
      suspect.waiting = static_cast<int32_t>(spread.at_most);
      for (size_t other = 0; other < reports::kRasOperationCount; ++other) {
        const Spread& another = spreads[other];
        if (other == operation || rank->launched[other] < 0) continue;
        if (another.least == another.most || rank->launched[other] != another.most) continue;
        if (!reports::IsFew(another.at_most, another.all)) continue;
        suspect.kind = RasSuspect::Kind::kOutOfOrder;
        suspect.other_operation = static_cast<int32_t>(other);
      }
      suspects.push_back(std::move(suspect));
    }
  }
}

}  // namespace

bool RasSuspect::SameAs(const RasSuspect& other) const {
  return kind == other.kind && communicator == other.communicator && rank == other.rank &&
         host == other.host && pid == other.pid && operation == other.operation &&
         launched == other.launched && furthest == other.furthest;
}

std::vector<RasSuspect> FindRasSuspects(const RasReport& report, Timestamp t) {
  using Kind = RasSuspect::Kind;
  std::vector<RasSuspect> suspects;
  for (const RasCommunicator& communicator : report.communicators) {
    for (const RasRank& rank : communicator.ranks) {
      if (rank.state == RasRank::State::kDead)
        suspects.push_back(Describe(communicator, rank, Kind::kDead, t));
      if (rank.state == RasRank::State::kUnresponsive)
        suspects.push_back(Describe(communicator, rank, Kind::kUnresponsive, t));
      if (suspects.size() >= ReportTracker::kMaxSuspects) return suspects;
    }
    AddBehind(communicator, t, suspects);
  }
  for (const auto& [processes, kind] : {std::pair{&report.dead, Kind::kDead},
                                        std::pair{&report.unresponsive, Kind::kUnresponsive}}) {
    for (const reports::RasProcess& process : *processes) {
      if (suspects.size() >= ReportTracker::kMaxSuspects) break;
      const bool known = std::any_of(suspects.begin(), suspects.end(),
                                     [&, kind = kind](const RasSuspect& suspect) {
                                       return suspect.kind == kind && suspect.pid == process.pid &&
                                              suspect.host == process.host;
                                     });
      if (known) continue;
      RasSuspect suspect;
      suspect.kind = kind;
      suspect.host = process.host.substr(0, kMaxText);
      suspect.pid = process.pid;
      suspect.first = suspect.last = t;
      suspects.push_back(std::move(suspect));
    }
  }
  if (suspects.size() > ReportTracker::kMaxSuspects) suspects.resize(ReportTracker::kMaxSuspects);
  return suspects;
}

std::vector<int32_t> ReadRanks(std::string_view text) {
  constexpr size_t kMost = 65536;
  std::vector<int32_t> ranks;
  const auto take = [&text](char before) -> std::optional<int32_t> {
    if (before != 0) {
      if (text.empty() || text[0] != before) return std::nullopt;
      text.remove_prefix(1);
    }
    int32_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || value < 0) return std::nullopt;
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    return value;
  };
  while (!text.empty()) {
    const auto first = take(ranks.empty() ? char{0} : ',');
    if (!first) return {};
    const auto last = text.starts_with('-') ? take('-') : first;
    const auto stride = text.starts_with('/') ? take('/') : std::optional<int32_t>(1);
    if (!last || !stride || *stride < 1 || *last < *first) return {};
    for (int64_t rank = *first; rank <= *last; rank += *stride) {
      if (ranks.size() >= kMost) return {};
      ranks.push_back(static_cast<int32_t>(rank));
    }
  }
  return ranks;
}

void ReportTracker::OnEvent(const Event& event, const Speaker& speaker, Timestamp t) {
  const int64_t own = Number(event, "rank", -1);
  constexpr int64_t kMostRank = int64_t{1} << 24;
  const int32_t said = own >= 0 && own < kMostRank ? static_cast<int32_t>(own) : -1;
  if (event.type == WireType(EventType::kRasReport)) {
    OnRas(event, event.begin.ns != 0 ? event.begin : t);
  } else if (event.type == WireType(EventType::kFlightRecord)) {
    // The dump's rank is the one in its name, which is the rank that wrote it.
    OnFlight(event, said >= 0 ? said : speaker.rank, t);
  } else if (event.type == WireType(EventType::kInspectorRecord)) {
    OnInspector(event, speaker.rank, t);  // its own rank is one of a communicator
  }
}

void ReportTracker::OnRas(const Event& event, Timestamp t) {
  if (!Text(event, "error").empty()) {
    if (ras_.silences == 0) ras_.silent_since = t;
    ras_.silences = std::max(ras_.silences + 1, Number(event, "silences", 0));
    return;
  }
  const RasReport report = reports::ReadRas(Text(event, "text"));
  if (report.version.empty() && report.communicators.empty() && report.groups.empty() &&
      !report.none) {
    return;  // no report at all
  }
  if (ras_.reports++ == 0) ras_.first = t;
  ras_.last = t;
  ras_.silences = 0;
  ras_.version = report.version.substr(0, kMaxText);
  ras_.communicators = report.communicators_told;
  ras_.none = report.none;
  ras_.timeouts = report.timeouts;
  ras_.mismatches = 0;
  for (const RasCommunicator& communicator : report.communicators) {
    ras_.largest = std::max<int64_t>(ras_.largest, communicator.size);
    if (communicator.mismatch) ++ras_.mismatches;
  }
  for (const reports::RasGroup& group : report.groups)
    ras_.largest = std::max<int64_t>(ras_.largest, group.ranks_per_communicator);

  // A world's communicator may be gone before the last report, those of some ranks not yet.
  if (reports::RasRoster roster = reports::ReadRoster(report); roster.size() >= roster_.size())
    roster_ = std::move(roster);

  std::vector<RasSuspect> now = FindRasSuspects(report, t);
  for (RasSuspect& suspect : now) {
    const auto before =
        std::find_if(suspects_.begin(), suspects_.end(),
                     [&suspect](const RasSuspect& old) { return old.SameAs(suspect); });
    if (before == suspects_.end()) continue;
    suspect.first = before->first;
    suspect.reports = before->reports + 1;
  }
  suspects_ = std::move(now);
}

void ReportTracker::OnFlight(const Event& event, int32_t rank, Timestamp t) {
  if (rank < 0 || (flights_.size() >= kMaxRanks && !flights_.contains(rank))) return;
  FlightSeen& flight = flights_[rank];
  const int64_t written_ns = Number(event, "written_ns", 0);
  // Events of one dump come one after the other, the first of them with index 0.
  if (Number(event, "index", 0) == 0) flight = {};
  flight.t = t;
  flight.written_ns = written_ns;
  flight.cut = flight.cut || Number(event, "cut", 0) != 0;
  const std::string_view name = Text(event, "group");
  if (name.empty() || flight.groups.size() >= kMaxGroups) return;
  FlightGroupSeen group;
  group.name = Short(event, "group");
  group.description = Short(event, "description");
  group.members = Short(event, "members", 2048);
  group.enqueued = Number(event, "enqueued", -1);
  group.completed = Number(event, "completed", -1);
  group.pending = Number(event, "pending", -1);
  group.operation = Short(event, "operation");
  group.sizes = Short(event, "sizes");
  group.dtype = Short(event, "dtype");
  group.caller = Short(event, "caller");
  group.state = Short(event, "state");
  group.created_ns = Number(event, "created_ns", 0);
  group.timeout_ms = Number(event, "timeout_ms", 0);
  group.peers = Short(event, "peers", 2048);
  group.exchange = Short(event, "exchange");
  group.exchange_sequence = Number(event, "exchange_sequence", -1);
  group.exchange_created_ns = Number(event, "exchange_created_ns", 0);
  group.exchange_timeout_ms = Number(event, "exchange_timeout_ms", 0);
  flight.groups.push_back(std::move(group));
}

void ReportTracker::OnInspector(const Event& event, int32_t rank, Timestamp t) {
  if (rank < 0 || (inspector_.size() >= kMaxRanks && !inspector_.contains(rank))) return;
  InspectorSeen& seen = inspector_[rank];
  const int64_t ranks = Number(event, "ranks", 0);
  seen.records += std::max<int64_t>(Number(event, "records", 0), 0);
  seen.dropped += std::max<int64_t>(Number(event, "dropped", 0), 0);
  if (ranks < seen.ranks) return;
  seen.t = t;
  seen.ranks = ranks;
  seen.nodes = Number(event, "nodes", 0);
  seen.operation = Short(event, "operation");
  seen.sequence = Number(event, "sequence", -1);
  seen.bytes = Number(event, "bytes", -1);
  seen.bus_bytes_per_second = static_cast<double>(Number(event, "bus_bytes_per_second", -1));
}

}  // namespace rankscope::windows
