// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Who does not reach the coordinator, and why. A failure counts only towards the address that the
// ranks are told (by their environment, their launcher's command, or the text of their error): a
// program connects to loggers, proxies and data servers too. Who has reached it at last is not
// failing, on whichever of its addresses; and nobody is where another rank ended first, by
// something else.
#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <set>

#include "detectors/features/landmarks.h"
#include "detectors/model/subs.h"

namespace rankscope::features {
namespace {

using logs::IncidentKind;
using windows::Contact;

// An explicit failure is a verdict after this, while it goes on.
constexpr Duration kPatience = Seconds(30);
// Between two tries: c10d waits a second, others double up to half a minute. What is counted is
// told every five seconds.
constexpr Duration kBetweenTries = Seconds(40);
// From the last try to the end of the process: a traceback and the end of an interpreter.
constexpr Duration kFarewell = Seconds(40);
constexpr size_t kMostBeside = 4;

struct OutcomeRow {
  Contact::Kind kind;
  std::string_view outcome;
  std::string_view trigger;
  int weight;  // of several triggers the one that explains most
};
constexpr std::array kOutcomes = {
    OutcomeRow{Contact::Kind::kListen, "in_use", subs::kPortInUse, 5},
    OutcomeRow{Contact::Kind::kResolve, "no_such_name", "dns", 4},
    OutcomeRow{Contact::Kind::kResolve, "no_answer", "dns", 4},
    OutcomeRow{Contact::Kind::kResolve, "failed", "dns", 4},
    OutcomeRow{Contact::Kind::kConnect, "no_answer", "syn_timeout", 3},
    OutcomeRow{Contact::Kind::kConnect, "unreachable", "unreachable", 2},
    OutcomeRow{Contact::Kind::kConnect, "no_local_address", "unreachable", 2},
    OutcomeRow{Contact::Kind::kConnect, "rejected", "refused", 1},
    OutcomeRow{Contact::Kind::kConnect, "refused", "refused", 1},
};

const OutcomeRow* RowOf(const Contact& contact) {
  for (const OutcomeRow& row : kOutcomes) {
    if (row.kind == contact.kind && row.outcome == contact.outcome) return &row;
  }
  return nullptr;
}

class Reader {
 public:
  Reader(const windows::JobWindow& job, const windows::AttemptWindow& window, Citer& citer,
         JobFeatures& f)
      : job_(job), window_(window), citer_(citer), f_(f) {
    coordinators_ = window.kernel.network.coordinators();
    AddFromText();
  }

  void Run() {
    NetworkFeatures& network = f_.network;
    network.seen = !contacts().empty();
    CountConnected();
    FindUnjoined();
    DescribeTransport();
    // A group that trains has met.
    if (f_.progress > 0) return;
    std::vector<const Contact*> failing;
    for (const Contact& contact : contacts()) {
      if (IsFailing(contact)) failing.push_back(&contact);
    }
    if (failing.empty() || AnotherEndedFirst(failing)) return;
    Describe(failing);
  }

 private:
  const std::vector<Contact>& contacts() const { return window_.kernel.network.contacts(); }

  // The text of an error names the address where nothing else does.
  void AddFromText() {
    for (const windows::Candidate& candidate : job_.incidents().all()) {
      if (candidate.incident.kind != IncidentKind::kRendezvous) continue;
      windows::Coordinator said;
      said.said_by = "the error's text";
      for (const KeyValue& field : candidate.incident.fields) {
        if (field.key == "host") said.host = field.value;
        if (field.key == "port") said.port = std::atoll(field.value.c_str());
      }
      if (said.port > 0) coordinators_.push_back(std::move(said));
    }
  }

  const windows::Coordinator* CoordinatorOf(const Contact& contact) const {
    for (const windows::Coordinator& coordinator : coordinators_) {
      const bool mine = contact.kind == Contact::Kind::kResolve
                            ? !coordinator.host.empty() && contact.peer == coordinator.host
                            : contact.port == coordinator.port;
      if (mine) return &coordinator;
    }
    return nullptr;
  }

  void CountConnected() {
    NetworkFeatures& network = f_.network;
    for (const Contact& contact : contacts()) {
      if (contact.kind != Contact::Kind::kConnect || contact.outcome != "connected") continue;
      if (CoordinatorOf(contact) == nullptr) continue;
      if (network.connected++ == 0) network.connected_evidence = Cite(contact);
    }
  }

  // Connections are told whether they succeed or not, as long as there is room for them.
  void FindUnjoined() {
    NetworkFeatures& network = f_.network;
    if (network.connected == 0 || f_.ended || f_.progress > 0) return;
    if (job_.hearing().earlier_processes() > 0) return;
    if (contacts().size() >= windows::NetworkTracker::kMost / 2) return;
    std::set<int32_t> met;
    Timestamp last;
    for (const Contact& contact : contacts()) {
      if (CoordinatorOf(contact) == nullptr || contact.rank < 0) continue;
      if (met.insert(contact.rank).second) last = std::max(last, contact.first);
    }
    if (met.empty()) return;
    for (const auto& [rank, window] : job_.ranks()) {
      if (!met.contains(rank)) network.unjoined.push_back(rank);
    }
    if (network.unjoined.empty()) return;
    network.unjoined_seconds = job_.RunningSeconds(last, f_.now);
    Evidence evidence;
    evidence.kind = EvidenceKind::kMissingRanks;
    evidence.store = proto::STORE_KERNEL;
    evidence.ranks = network.unjoined;
    evidence.begin = last;
    evidence.end = f_.now;
    evidence.values = {{FieldId::kKnown, "unjoined"},
                       {FieldId::kSeconds, std::floor(network.unjoined_seconds)}};
    network.unjoined_evidence = citer_.Add(std::move(evidence));
  }

  // The process has reached the coordinator, or listens in its place, or has come further than this
  // failure.
  bool HasRecovered(const Contact& failure) const {
    const windows::Coordinator& coordinator = *CoordinatorOf(failure);
    return std::any_of(contacts().begin(), contacts().end(), [&](const Contact& other) {
      if (other.process != failure.process || other.port != coordinator.port) return false;
      if (failure.kind == Contact::Kind::kListen)
        return other.kind == Contact::Kind::kListen && other.outcome == "listening";
      if (other.kind != Contact::Kind::kConnect) return false;
      if (failure.kind == Contact::Kind::kResolve) return other.last >= failure.first;
      return other.outcome == "connected";
    });
  }

  // How the process ended; null while it lives, or nobody knows.
  const windows::Candidate* EndOf(const ProcessKey& process) const {
    for (const windows::Candidate& candidate : job_.incidents().all()) {
      if (candidate.process == process && candidate.store == proto::STORE_PROCESS)
        return &candidate;
    }
    return nullptr;
  }

  bool IsFailing(const Contact& contact) const {
    if (RowOf(contact) == nullptr || CoordinatorOf(contact) == nullptr) return false;
    if (HasRecovered(contact)) return false;
    if (const windows::Candidate* const end = EndOf(contact.process))
      return end->incident.t - contact.last <= kFarewell;
    if (f_.ended) {  // and without an end of its own: with 0, or the launcher of a failed job
      const bool failed = f_.exit_known ? f_.exit_code != 0 : contact.rank < 0;
      return failed && EndTime() - contact.last <= kFarewell;
    }
    // A port in use is tried once; what the program does about it is not known before it ends.
    if (contact.kind == Contact::Kind::kListen) return false;
    return f_.now - contact.first >= kPatience && f_.now - contact.last <= kBetweenTries;
  }

  Timestamp EndTime() const { return job_.end().ended ? job_.end().t : f_.now; }

  // A rank that ended by something else, before those who wait for it gave up, is what they lack.
  bool AnotherEndedFirst(const std::vector<const Contact*>& failing) const {
    const auto is_failing = [&failing](const ProcessKey& process) {
      return std::any_of(failing.begin(), failing.end(),
                         [&](const Contact* contact) { return contact->process == process; });
    };
    Timestamp last;
    for (const Contact* contact : failing) last = std::max(last, contact->last);
    for (const windows::Candidate& candidate : job_.incidents().all()) {
      if (candidate.store != proto::STORE_PROCESS || candidate.process.pid == 0) continue;
      if (candidate.incident.rank < 0 || is_failing(candidate.process)) continue;
      const bool told = candidate.incident.signal == 15 || candidate.incident.signal == 2;
      if (!told && candidate.incident.t <= last) return true;
    }
    return false;
  }

  void Describe(const std::vector<const Contact*>& failing) {
    const auto weight = [](const Contact* contact) { return RowOf(*contact)->weight; };
    const Contact* const first =
        *std::max_element(failing.begin(), failing.end(), [&](const Contact* a, const Contact* b) {
          if (weight(a) != weight(b)) return weight(a) < weight(b);
          return a->attempts < b->attempts;
        });
    NetworkFeatures& network = f_.network;
    const windows::Coordinator& coordinator = *CoordinatorOf(*first);
    network.trigger = RowOf(*first)->trigger;
    network.host = coordinator.host;
    network.port = coordinator.port;
    network.said_by = coordinator.said_by;
    network.peer = first->peer;
    network.outcome = first->outcome;
    network.attempts = first->attempts;
    Timestamp begin = first->first;
    for (const Contact* contact : failing) {
      if (RowOf(*contact)->trigger != network.trigger) continue;
      begin = std::min(begin, contact->first);
      if (contact->rank >= 0) network.ranks.push_back(contact->rank);
      network.ongoing = network.ongoing || (!f_.ended && EndOf(contact->process) == nullptr);
    }
    std::sort(network.ranks.begin(), network.ranks.end());
    network.ranks.erase(std::unique(network.ranks.begin(), network.ranks.end()),
                        network.ranks.end());
    network.seconds = ((network.ongoing ? f_.now : first->last) - begin).seconds();
    Evidence evidence = EvidenceOf(*first);
    if (!network.ranks.empty()) evidence.ranks = network.ranks;
    network.trigger_evidence = citer_.Add(std::move(evidence));
    FindListener(*first);
    CiteBeside(*first);
    Infer(*first, begin);
  }

  // Another rank listens on that port of this node, and did while the tries went on: so the address
  // that they went to is not this node's.
  void FindListener(const Contact& first) {
    if (first.kind != Contact::Kind::kConnect || first.host.empty()) return;
    if (first.host.starts_with("127.") || first.host == "::1") return;
    for (const Contact& other : contacts()) {
      const bool listens = other.kind == Contact::Kind::kListen && other.outcome == "listening" &&
                           other.port == first.port && other.rank >= 0;
      if (!listens || other.rank == first.rank || other.first >= first.last) continue;
      f_.network.listener = other.rank;
      for (const windows::Coordinator& told : coordinators_) {
        if (told.port == first.port && !told.host.empty() && told.host != first.host)
          f_.network.listener_host = told.host;
      }
      return;
    }
  }

  // What the same process met beside it, and who listens.
  void CiteBeside(const Contact& first) {
    for (const Contact& other : contacts()) {
      if (&other == &first || f_.network.beside.size() >= kMostBeside) continue;
      if (CoordinatorOf(other) == nullptr || other.outcome == "abandoned") continue;
      if (other.process == first.process || other.kind == Contact::Kind::kListen)
        f_.network.beside.push_back(Cite(other));
    }
  }

  // It takes its place among what may explain the end.
  void Infer(const Contact& first, Timestamp begin) {
    auto candidate = std::make_shared<windows::Candidate>();
    logs::Incident& incident = candidate->incident;
    incident.kind = IncidentKind::kRendezvous;
    incident.sub = f_.network.trigger;
    incident.shape = "connection";
    incident.rank = f_.network.ranks.size() == 1 ? f_.network.ranks.front() : -1;
    incident.t = begin;
    incident.fields = ToCaptured(EvidenceOf(first).values);
    candidate->store = proto::STORE_KERNEL;
    candidate->order = -1;
    candidate->ranks = f_.network.ranks;
    candidate->process = first.process;
    candidate->times = first.attempts;
    f_.inferred.push_back({std::move(candidate), f_.network.trigger_evidence});
  }

  Evidence EvidenceOf(const Contact& contact) const {
    Evidence evidence;
    switch (contact.kind) {
      case Contact::Kind::kConnect:
        evidence.kind = EvidenceKind::kConnection;
        break;
      case Contact::Kind::kListen:
        evidence.kind = EvidenceKind::kListener;
        break;
      case Contact::Kind::kResolve:
        evidence.kind = EvidenceKind::kNameLookup;
        break;
      case Contact::Kind::kReset:
        evidence.kind = EvidenceKind::kTraffic;
        break;
    }
    evidence.store = proto::STORE_KERNEL;
    evidence.observed = contact.seconds;
    evidence.unit = "s";
    if (contact.rank >= 0) evidence.ranks = {contact.rank};
    evidence.process = contact.process;
    evidence.times = contact.attempts;
    evidence.begin = contact.first;
    evidence.end = contact.last;
    evidence.values = {{FieldId::kShape, "connection"},
                       {FieldId::kPeer, contact.peer},
                       {FieldId::kHost, contact.host},
                       {FieldId::kOutcome, contact.outcome},
                       {FieldId::kStillWaiting, contact.waiting ? "yes" : ""}};
    if (contact.port > 0) evidence.values.Set(FieldId::kPort, static_cast<int64_t>(contact.port));
    if (contact.error != 0)
      evidence.values.Set(FieldId::kError, static_cast<int64_t>(contact.error));
    return evidence;
  }

  // "Using network Socket" says nothing of a job on one node: NCCL chooses a network there too, and
  // uses none.
  bool IsSlowWay(const windows::Surrounding& of) const {
    const bool nodes = f_.world_size > static_cast<int32_t>(f_.rank_pids.size());
    if (!of.variable) return nodes && of.name == "nccl_network" && of.value == "Socket";
    const bool on = of.value == "1";
    return on && (nodes ? of.name == "NCCL_IB_DISABLE"
                        : of.name == "NCCL_P2P_DISABLE" || of.name == "NCCL_SHM_DISABLE");
  }

  void DescribeTransport() {
    if (f_.rank_pids.empty()) return;
    for (const windows::Surrounding& of : job_.surroundings().all()) {
      if (!IsSlowWay(of)) continue;
      Evidence evidence;
      if (of.variable) {
        evidence.store = proto::STORE_PROCESS;
        evidence.ranks = of.ranks;
        evidence.process = of.process;
        evidence.begin = evidence.end = of.t;
      } else {
        evidence = citer_.Quote(EvidenceKind::kTransport, of.stream, of.offset, of.line, of.t);
      }
      evidence.kind = EvidenceKind::kTransport;
      evidence.values = {{FieldId::kSetting, of.variable ? of.name + "=" + of.value : ""},
                         {FieldId::kNetwork, of.variable ? "" : of.value}};
      f_.network.transport_evidence = citer_.Add(std::move(evidence));
      return;
    }
  }

  EvidenceRef Cite(const Contact& contact) { return citer_.Add(EvidenceOf(contact)); }

  const windows::JobWindow& job_;
  const windows::AttemptWindow& window_;
  Citer& citer_;
  JobFeatures& f_;
  std::vector<windows::Coordinator> coordinators_;
};

}  // namespace

void DescribeNetwork(const windows::JobWindow& job, const windows::AttemptWindow& window,
                     Citer& citer, JobFeatures& f) {
  Reader(job, window, citer, f).Run();
}

}  // namespace rankscope::features
