// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "detectors/features/landmarks.h"
#include "detectors/features/ras_check.h"
#include "detectors/reports/culprit.h"

namespace rankscope::features {
namespace {

using reports::Culprits;
using reports::Desync;
using reports::GroupStandings;
using windows::FlightGroupSeen;
using windows::RasSuspect;
using windows::ReportTracker;

// "A single MISMATCH is normal while counts advance": what stands unchanged for this long does not
// advance. RAS is asked every half minute.
constexpr double kStandsSeconds = 15;
// A report older than this says nothing of now.
constexpr double kFreshSeconds = 300;

class Describer {
 public:
  Describer(const windows::JobWindow& job, const windows::AttemptWindow& window, Citer& citer,
            JobFeatures& f)
      : job_(job),
        tracker_(window.kernel.reports),
        check_(CheckRas(job, window)),
        rdma_(window.kernel.rdma),
        citer_(citer),
        f_(f) {}

  void Run() {
    f_.reports.dumps = static_cast<int64_t>(tracker_.flights().size());
    if (f_.reports.dumps > 0) DescribeFlights();
    if (tracker_.ras().reports > 0 || tracker_.ras().silences > 0) DescribeRas();
    DescribeInspector();
    DescribePorts();
  }

 private:
  Evidence Reported(EvidenceKind kind, Timestamp begin, Timestamp end) const {
    Evidence evidence;
    evidence.kind = kind;
    evidence.store = proto::STORE_NCCL;
    evidence.begin = begin;
    evidence.end = end;
    return evidence;
  }

  // --- Flight Recorder ---

  // A group is told from another by its name and its members: ranks that count groups for
  // themselves give one name to several. Where no rank is in two groups of the same members and
  // description, these are one, whatever each rank calls it.
  using GroupKey = std::tuple<std::string, std::string, std::string>;

  std::set<GroupKey> MembersInTwoGroups() const {
    std::set<GroupKey> twice;
    for (const auto& [rank, flight] : tracker_.flights()) {
      std::set<GroupKey> seen;
      for (const FlightGroupSeen& group : flight.groups) {
        GroupKey key{group.members, group.description, ""};
        if (!seen.insert(key).second) twice.insert(std::move(key));
      }
    }
    return twice;
  }

  void DescribeFlights() {
    std::map<GroupKey, GroupStandings> by_key;
    std::vector<int32_t> told;
    const std::set<GroupKey> twice = MembersInTwoGroups();
    for (const auto& [rank, flight] : tracker_.flights()) {
      // Of a dump that holds more than was told nothing can be called absent.
      if (!flight.cut) told.push_back(rank);
      newest_ = std::max(newest_, flight.t);
      for (const FlightGroupSeen& group : flight.groups) {
        GroupKey key{group.members, group.description, ""};
        if (group.members.empty() || twice.contains(key))
          key = {group.members, group.members.empty() ? "" : group.description, group.name};
        GroupStandings& standings = by_key[key];
        if (standings.standings.empty()) {
          standings.name = group.name;
          standings.members = windows::ReadRanks(group.members);
        }
        standings.standings.push_back({rank, group.enqueued, group.completed, group.pending,
                                       group.operation, group.sizes, group.state,
                                       windows::ReadRanks(group.peers)});
        if (!group.description.empty()) descriptions_[group.name] = group.description;
      }
    }
    std::vector<GroupStandings> groups;
    groups.reserve(by_key.size());
    for (auto& [key, standings] : by_key) groups.push_back(std::move(standings));
    DescribeStanding();
    if (const Desync desync = reports::FindDesync(groups); desync.found) TellDesync(desync);
    const Culprits culprits = reports::FindCulprits(groups, told);
    if (culprits.by != Culprits::By::kNobody) TellCulprits(culprits);
  }

  // How long an operation may take where its dump names no timeout, and at least that long a rank
  // stands: a dump that somebody asks of a run that goes on shows operations of a moment.
  static constexpr double kStandsForSeconds = 60;

  // What a rank waits for in a group.
  struct Wait {
    std::string operation, group;
    int64_t sequence = -1, created_ns = 0, timeout_ms = 0;
  };

  static std::optional<Wait> WaitOf(const FlightGroupSeen& group) {
    if (group.pending >= 0)
      return Wait{group.operation, group.name, group.pending, group.created_ns, group.timeout_ms};
    if (group.peers.empty()) return std::nullopt;
    return Wait{group.exchange.empty() ? "send or receive" : group.exchange, group.name,
                group.exchange_sequence, group.exchange_created_ns, group.exchange_timeout_ms};
  }

  void DescribeStanding() {
    double longest = -1;
    bool past = false, untold = false;
    std::vector<int32_t> ranks;
    std::optional<Wait> told;
    for (const auto& [rank, flight] : tracker_.flights()) {
      bool waits = false;
      for (const FlightGroupSeen& group : flight.groups) {
        const std::optional<Wait> wait = WaitOf(group);
        if (!wait) continue;
        waits = true;
        // A copied file may have been "written" before its operations began.
        if (wait->created_ns <= 0 || flight.written_ns < wait->created_ns) {
          untold = true;
        } else {
          const double age = static_cast<double>(flight.written_ns - wait->created_ns) / 1e9;
          const double limit =
              wait->timeout_ms > 0
                  ? std::min(kStandsForSeconds, static_cast<double>(wait->timeout_ms) / 1e3)
                  : kStandsForSeconds;
          past = past || age >= limit;
          if (age <= longest && told) continue;
          longest = std::max(longest, age);
        }
        told = wait;
      }
      if (waits) ranks.push_back(rank);
    }
    if (!told) return;
    f_.reports.stands = past || untold;
    f_.reports.stands_seconds = longest;
    f_.reports.standing = ranks;
    Evidence evidence = Reported(EvidenceKind::kFlightWaits, newest_, newest_);
    evidence.ranks = std::move(ranks);
    evidence.values = {{FieldId::kGroup, Group(told->group)},
                       {FieldId::kOperation, told->operation},
                       {FieldId::kDumps, static_cast<int64_t>(f_.reports.dumps)},
                       {FieldId::kShape, "flight_recorder"}};
    if (told->sequence >= 0) evidence.values.Set(FieldId::kSequence, told->sequence);
    if (longest > 0) evidence.values.Set(FieldId::kSeconds, longest);
    evidence.line = Quote(evidence.ranks.front(), told->group);
    f_.reports.standing_evidence = citer_.Add(std::move(evidence));
  }

  std::string Group(const std::string& name) const {
    const auto found = descriptions_.find(name);
    if (found == descriptions_.end() || found->second == "undefined") return name;
    return name + " (" + found->second + ")";
  }

  // The words of one rank's dump, for the citation.
  std::string Quote(int32_t rank, const std::string& group) const {
    const auto flight = tracker_.flights().find(rank);
    if (flight == tracker_.flights().end()) return {};
    for (const FlightGroupSeen& seen : flight->second.groups) {
      if (seen.name != group) continue;
      std::string text = "rank " + std::to_string(rank) + ", group " + Group(group) +
                         ": last_enqueued_collective " + std::to_string(seen.enqueued) +
                         ", last_completed_collective " + std::to_string(seen.completed);
      if (seen.pending >= 0) {
        text += ", waits for " + seen.operation + " " + std::to_string(seen.pending);
        if (!seen.caller.empty()) text += " from " + seen.caller;
      } else if (!seen.exchange.empty()) {
        text += ", waits for " + seen.exchange;
      }
      return text;
    }
    return "rank " + std::to_string(rank) + ": no entry of group " + Group(group);
  }

  void TellCulprits(const Culprits& culprits) {
    Evidence evidence = Reported(EvidenceKind::kFlightRecorder, newest_, newest_);
    constexpr std::string_view kWords[] = {"", "absent", "behind", "not_started", "peer"};
    const std::string how(kWords[static_cast<size_t>(culprits.by)]);
    evidence.ranks = culprits.ranks;
    if (culprits.by == Culprits::By::kLag) {
      evidence.observed = static_cast<double>(culprits.own);
      evidence.expected = static_cast<double>(culprits.furthest);
    }
    evidence.values = {{FieldId::kWhat, how},
                       {FieldId::kGroup, Group(culprits.group)},
                       {FieldId::kOperation, culprits.operation},
                       {FieldId::kWaiting, static_cast<int64_t>(culprits.waiting)},
                       {FieldId::kDumps, static_cast<int64_t>(f_.reports.dumps)},
                       {FieldId::kSilent, culprits.silent},
                       {FieldId::kShape, "flight_recorder"}};
    if (culprits.sequence >= 0) evidence.values.Set(FieldId::kSequence, culprits.sequence);
    evidence.line = Quote(culprits.ranks.front(), culprits.group);
    f_.reports.flight.ranks = culprits.ranks;
    f_.reports.flight.how = how;
    f_.reports.flight.evidence = citer_.Add(std::move(evidence));
  }

  void TellDesync(const Desync& desync) {
    Evidence evidence = Reported(EvidenceKind::kFlightRecorder, newest_, newest_);
    evidence.ranks = desync.ranks;
    evidence.values = {{FieldId::kWhat, "disorder"},
                       {FieldId::kGroup, Group(desync.group)},
                       {FieldId::kSequence, static_cast<int64_t>(desync.sequence)},
                       {FieldId::kTheirs, desync.theirs},
                       {FieldId::kOthers, desync.others},
                       {FieldId::kOtherRanks, static_cast<int64_t>(desync.other_ranks)},
                       {FieldId::kShape, "flight_recorder"}};
    evidence.line = Quote(desync.ranks.front(), desync.group);
    f_.reports.disorder.sub = desync.sizes ? "size" : "op";
    // Of two camps of one size neither is the odd one.
    if (static_cast<int64_t>(desync.ranks.size()) < desync.other_ranks)
      f_.reports.disorder.ranks = desync.ranks;
    f_.reports.disorder.evidence = citer_.Add(std::move(evidence));
  }

  // --- RAS ---

  // The rank in the job; -1 = it cannot be told.
  int32_t Global(const RasSuspect& suspect) const {
    if (suspect.rank >= 0 && suspect.size > 0 && suspect.size == job_.world_size() &&
        check_.otherwise.empty())
      return suspect.rank;  // the world's communicator numbers ranks as the job does
    // Processes of two nodes may have one number.
    const bool ours = check_.host.empty()
                          ? job_.world_size() <= static_cast<int64_t>(job_.ranks().size())
                          : suspect.host == check_.host;
    if (!ours) return -1;
    int32_t found = -1;
    for (const auto& [rank, window] : job_.ranks()) {
      if (window.inner_pid() != suspect.pid || suspect.pid <= 0) continue;
      if (found >= 0) return -1;
      found = rank;
    }
    return found;
  }

  static std::string Operation(int32_t index) {
    const auto operation = static_cast<size_t>(index);
    return operation < reports::kRasOperationCount ? std::string(reports::kRasOperations[operation])
                                                   : "collective";
  }

  // The words of the report, for the citation.
  static std::string Quote(const RasSuspect& suspect) {
    std::string text;
    if (!suspect.communicator.empty()) text = "communicator " + suspect.communicator + ", ";
    if (suspect.rank >= 0) text += "rank " + std::to_string(suspect.rank) + ", ";
    text += "process " + std::to_string(suspect.pid) + " on node " + suspect.host;
    if (suspect.launched >= 0) {
      text += ": " + Operation(suspect.operation) + " " + std::to_string(suspect.launched) +
              " of " + std::to_string(suspect.furthest);
    }
    return text;
  }

  bool Proved(const RasSuspect& suspect) const {
    if (suspect.kind == RasSuspect::Kind::kDead) return true;  // RAS itself has waited a minute
    return suspect.reports >= 2 && (suspect.last - suspect.first).seconds() >= kStandsSeconds;
  }

  void DescribeRas() {
    const windows::RasSeen& ras = tracker_.ras();
    f_.reports.ras_reports = ras.reports;
    f_.reports.ras_knows_none = ras.none;
    if (ras.reports > 0) {
      Evidence evidence = Reported(EvidenceKind::kRas, ras.first, ras.last);
      evidence.observed = static_cast<double>(ras.mismatches);
      evidence.values = {{FieldId::kWhat, ras.none ? "none" : "summary"},
                         {FieldId::kCommunicators, static_cast<int64_t>(ras.communicators)},
                         {FieldId::kShape, "nccl_ras"}};
      f_.reports.ras_evidence = citer_.Add(std::move(evidence));
    }
    if (ras.silences >= 2) {
      Evidence evidence = Reported(EvidenceKind::kRas, ras.silent_since, f_.now);
      evidence.values = {{FieldId::kWhat, "silent"},
                         {FieldId::kSilences, static_cast<int64_t>(ras.silences)},
                         {FieldId::kShape, "nccl_ras"}};
      f_.reports.ras_silent_evidence = citer_.Add(std::move(evidence));
    }
    if (!check_.otherwise.empty()) TellRenumbered();
    if (f_.running && (f_.now - ras.last).seconds() > kFreshSeconds) return;
    using Kind = RasSuspect::Kind;
    // Whoever is gone cannot enter anything; being behind follows from it.
    for (const Kind kind : {Kind::kDead, Kind::kOutOfOrder, Kind::kBehind, Kind::kUnresponsive}) {
      if (TellRas(kind)) return;
    }
  }

  void TellRenumbered() {
    constexpr size_t kMost = 8;
    Evidence evidence = Reported(EvidenceKind::kRas, tracker_.ras().first, tracker_.ras().last);
    std::string pairs;
    for (size_t i = 0; i < check_.otherwise.size() && i < kMost; ++i) {
      const RasCheck::Pair& pair = check_.otherwise[i];
      pairs += (pairs.empty() ? "" : ", ") + std::to_string(pair.environment) + " is " +
               std::to_string(pair.nccl);
    }
    if (check_.otherwise.size() > kMost)
      pairs += " and " + std::to_string(check_.otherwise.size() - kMost) + " more";
    for (const RasCheck::Pair& pair : check_.otherwise) evidence.ranks.push_back(pair.environment);
    evidence.values = {{FieldId::kWhat, "renumbered"},
                       {FieldId::kPairs, pairs},
                       {FieldId::kCommunicator, check_.roster->communicator},
                       {FieldId::kSize, static_cast<int64_t>(check_.roster->size())},
                       {FieldId::kShape, "nccl_ras"}};
    f_.reports.renumbered_evidence = citer_.Add(std::move(evidence));
  }

  bool TellRas(RasSuspect::Kind kind) {
    const RasSuspect* first = nullptr;
    std::vector<int32_t> ranks;
    for (const RasSuspect& suspect : tracker_.suspects()) {
      if (suspect.kind != kind || !Proved(suspect)) continue;
      const int32_t rank = Global(suspect);
      if (rank < 0) continue;
      if (first == nullptr) first = &suspect;
      // One communicator and operation at a time: others follow from it.
      if (kind == RasSuspect::Kind::kBehind &&
          (suspect.communicator != first->communicator || suspect.operation != first->operation)) {
        continue;
      }
      ranks.push_back(rank);
    }
    if (first == nullptr) return false;
    std::sort(ranks.begin(), ranks.end());
    ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
    constexpr std::string_view kWords[] = {"behind", "disorder", "dead", "unresponsive"};
    const std::string how(kWords[static_cast<size_t>(kind)]);
    Evidence evidence = Reported(EvidenceKind::kRas, first->first, first->last);
    evidence.ranks = ranks;
    evidence.times = first->reports;
    if (first->launched >= 0) {
      evidence.observed = static_cast<double>(first->launched);
      evidence.expected = static_cast<double>(first->furthest);
    }
    evidence.values = {
        {FieldId::kWhat, how},
        {FieldId::kOperation, Operation(first->operation)},
        {FieldId::kOtherOperation, Operation(first->other_operation)},
        {FieldId::kWaiting, static_cast<int64_t>(first->waiting)},
        {FieldId::kReports, static_cast<int64_t>(first->reports)},
        {FieldId::kSeconds, int64_t{std::llround((first->last - first->first).seconds())}},
        {FieldId::kShape, "nccl_ras"}};
    evidence.line = Quote(*first);
    const EvidenceRef ref = citer_.Add(std::move(evidence));
    if (kind == RasSuspect::Kind::kOutOfOrder) {
      if (f_.reports.disorder.sub.empty()) f_.reports.disorder = {"order", ranks, ref};
      return true;
    }
    f_.reports.ras = {std::move(ranks), how, ref};
    return true;
  }

  // --- Inspector ---

  void DescribeInspector() {
    std::vector<double> bandwidths;
    int32_t slowest = -1;
    Timestamp newest;
    for (const auto& [rank, seen] : tracker_.inspector()) {
      if (seen.bus_bytes_per_second <= 0) continue;
      if (bandwidths.empty() || seen.bus_bytes_per_second < f_.reports.slowest_bus_bandwidth) {
        f_.reports.slowest_bus_bandwidth = seen.bus_bytes_per_second;
        slowest = rank;
      }
      bandwidths.push_back(seen.bus_bytes_per_second);
      newest = std::max(newest, seen.t);
    }
    if (bandwidths.empty()) return;
    const auto middle = bandwidths.begin() + static_cast<int64_t>(bandwidths.size() / 2);
    std::nth_element(bandwidths.begin(), middle, bandwidths.end());
    f_.reports.bus_bandwidth = *middle;
    Evidence evidence = Reported(EvidenceKind::kInspector, newest, newest);
    evidence.observed = f_.reports.slowest_bus_bandwidth;
    evidence.expected = f_.reports.bus_bandwidth;
    evidence.unit = "By/s";
    evidence.ranks = {slowest};
    evidence.values = {{FieldId::kRankCount, static_cast<int64_t>(bandwidths.size())},
                       {FieldId::kOperation, tracker_.inspector().at(slowest).operation},
                       {FieldId::kShape, "nccl_inspector"}};
    f_.reports.inspector_evidence = citer_.Add(std::move(evidence));
  }

  // --- RDMA ports ---

  void DescribePorts() {
    if (rdma_.tcp_known()) f_.reports.tcp_sent_bytes = rdma_.tcp_sent_bytes();
    if (!rdma_.any()) return;
    f_.reports.rdma_sent_bytes = rdma_.sent_bytes();
    const windows::PortSeen* worst = nullptr;
    std::pair<std::string, std::string> name;
    double most = 0;
    for (const auto& [key, port] : rdma_.ports()) {
      double faults = port.fell ? 1 : 0;
      for (size_t i = 0; i < kPortCounterKinds.size(); ++i) {
        if (kPortCounterKinds[i].fault) faults += port.counts[i].rose;
      }
      f_.reports.link_fell = f_.reports.link_fell || port.fell || LinkDowns(port) > 0;
      if (faults <= most) continue;
      most = faults;
      worst = &port;
      name = key;
    }
    if (worst == nullptr) return;
    Evidence evidence = Reported(EvidenceKind::kPortCounters, worst->last_fault, worst->last_fault);
    evidence.store = proto::STORE_HOST;
    std::string counts;
    for (size_t i = 0; i < kPortCounterKinds.size(); ++i) {
      if (!kPortCounterKinds[i].fault || worst->counts[i].rose <= 0) continue;
      if (!counts.empty()) counts += ", ";
      counts += std::string(kPortCounterKinds[i].name) + " " +
                std::to_string(static_cast<int64_t>(worst->counts[i].rose));
    }
    evidence.values = {
        {FieldId::kDevice, name.first},
        {FieldId::kPort, name.second},
        {FieldId::kLink, worst->link},
        {FieldId::kState, worst->state},
        {FieldId::kCounts, counts},
        {FieldId::kFell, worst->fell ? "yes" : ""},
        {FieldId::kQuery, "rankscope_infiniband_errors_total{job_id=\"" + job_.job_id() + "\"}"}};
    f_.reports.port_evidence = citer_.Add(std::move(evidence));
  }

  static double LinkDowns(const windows::PortSeen& port) {
    constexpr auto kKind =
        static_cast<size_t>(FindPortCounterKind("link_downs") - kPortCounterKinds.data());
    return port.counts[kKind].rose;
  }

  const windows::JobWindow& job_;
  const ReportTracker& tracker_;
  RasCheck check_;
  const windows::PortTracker& rdma_;
  Citer& citer_;
  JobFeatures& f_;
  std::map<std::string, std::string> descriptions_;
  Timestamp newest_;
};

}  // namespace

void DescribeReports(const windows::JobWindow& job, const windows::AttemptWindow& window,
                     Citer& citer, JobFeatures& f) {
  Describer(job, window, citer, f).Run();
}

}  // namespace rankscope::features
