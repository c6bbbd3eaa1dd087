// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// C1: the process group never forms. What the kernel saw of the connections decides, then the text
// of somebody's timeout; silence alone is a suspicion, and only where arrival times tell anything.
#include <algorithm>

#include "detectors/families/curve.h"
#include "detectors/families/rows.h"
#include "detectors/families/standstill.h"
#include "detectors/model/subs.h"

namespace rankscope::families::rendezvous_hang {

using features::Cause;
using features::JobFeatures;
using logs::IncidentKind;

namespace {

// NCCL failed while it connected the ranks: the store had brought them together.
bool FormsNoCommunicator(const logs::Incident& incident) {
  return incident.kind == IncidentKind::kPeerLost && incident.sub == subs::kInit;
}

// A GPU that was busy for a whole minute, or that was given thousands of kernels, is past the
// beginning of a training: another node's rank prints what comes of it.
bool GpusTrain(const JobFeatures& f) {
  constexpr double kBusyMinute = 0.5, kManyLaunches = 10000;
  return std::any_of(f.gpu.gpus.begin(), f.gpu.gpus.end(),
                     [](const features::RunGpu& gpu) {
                       return gpu.worked && gpu.busiest_minute >= kBusyMinute;
                     }) ||
         std::any_of(
             f.launches.ranks.begin(), f.launches.ranks.end(),
             [](const features::RankLaunches& rank) { return rank.launches >= kManyLaunches; });
}

// A rank that is known to do something else is awaited, and nothing is wrong with the store.
bool Compiles(const JobFeatures& f) {
  return std::any_of(f.waits.ranks.begin(), f.waits.ranks.end(), [](const auto& rank) {
    return rank.cause == features::StackCause::kCompile ||
           rank.cause == features::StackCause::kBuildLock;
  });
}

bool StuckInRendezvous(const JobFeatures& f) {
  // NCCL has connected the ranks: the store had brought them together before.
  if (f.collectives.communicators > 0 || f.collectives.entered > 0) return false;
  if (Compiles(f) || GpusTrain(f)) return false;
  return f.running && f.timed && f.in_rendezvous && f.progress == 0 &&
         f.phase_seconds >= f.rendezvous_suspect_seconds;
}

// It stands in a read, a lock or a timed wait, and nothing of it runs: as who waits in c10d's store
// or in MPI's start for others does. Who has c10d's server looks after its first clients a hundred
// times a second, and sleeps between (TCPStore::waitForWorkers).
bool WaitsForOthers(const features::RankWait& rank) {
  constexpr double kStill = 10, kMostly = 0.75, kHardlyRuns = 0.1;
  if (rank.stopped_seconds > 0) return false;
  const bool waits = rank.main == WaitClass::kSocket || rank.main == WaitClass::kFutex ||
                     rank.main == WaitClass::kSleep;
  const double at_rest = rank.share(WaitClass::kSocket) + rank.share(WaitClass::kFutex) +
                         rank.share(WaitClass::kSleep);
  const bool polls = rank.recent_seconds >= kStill && rank.running_share <= kHardlyRuns;
  return (waits && rank.still_seconds >= kStill) || (polls && at_rest >= kMostly);
}

// A rank of this node never appeared, and all others wait. Launchers start the ranks of a node
// within seconds; a slow one, or a container that is still unpacked, gets half a minute. Ranks that
// have begun to use a GPU or to train do not wait for it: it is no member, or nobody's group needs
// it.
Finding MissingRank(const JobFeatures& f) {
  constexpr double kToAppear = 20;
  if (!f.running || !f.timed || f.progress > 0 || f.train_begin || f.suspension.now) return {};
  if (f.missing_ranks.empty() || f.missing_seconds < kToAppear || !f.waits.known()) return {};
  if (f.collectives.communicators > 0 || f.collectives.entered > 0 || GpusTrain(f)) return {};
  if (std::any_of(
          f.launches.ranks.begin(), f.launches.ranks.end(),
          [](const features::RankLaunches& rank) { return rank.seconds_since_launch < kToAppear; }))
    return {};
  if (!std::all_of(f.waits.ranks.begin(), f.waits.ranks.end(), WaitsForOthers)) return {};
  Finding finding;
  finding.matched = true;
  finding.sub = "missing_rank";
  finding.tier = proto::TIER_C;  // the table of processes, and what the threads of the others do
  finding.ranks = f.missing_ranks;
  finding.component = "rendezvous";
  finding.symptom = "hang";
  finding.shows = {f.missing_evidence};
  constexpr size_t kShown = 4;
  for (size_t i = 0; i < f.waits.ranks.size() && i < kShown; ++i)
    Show(f.waits.ranks[i].evidence, finding);
  finding.root = {f.missing_evidence};
  Show(f.network.connected_evidence, finding);
  Show(f.rendezvous_begin_evidence, finding);
  finding.values.Set(FieldId::kSeconds, f.missing_seconds);
  finding.onset = f.now - Seconds(f.missing_seconds);
  return finding;
}

// Nothing of it, nor of what it has started, has run for as long as launchers take to start all
// ranks: it neither prepares anything nor reads files.
bool IsIdle(const features::RankWait& rank) {
  constexpr double kIdle = 30;
  const bool waits = rank.main == WaitClass::kSocket || rank.main == WaitClass::kFutex ||
                     rank.main == WaitClass::kSleep || rank.main == WaitClass::kStopped;
  return waits && rank.still_seconds >= kIdle;
}

// A rank of this node runs and has not gone to where the others wait for it. It may be loading or
// preparing something: that is said only when it takes longer than the operator lets it.
Finding UnjoinedRank(const JobFeatures& f) {
  const features::NetworkFeatures& network = f.network;
  if (!f.running || !f.timed || f.progress > 0 || f.train_begin || f.suspension.now) return {};
  constexpr double kToJoin = 30;
  if (network.unjoined.empty() || network.unjoined_seconds < kToJoin) return {};
  if (f.collectives.communicators > 0 || f.collectives.entered > 0 || GpusTrain(f)) return {};
  if (Compiles(f) || !f.waits.known()) return {};
  Finding finding;
  size_t idle = 0;
  for (const features::RankWait& rank : f.waits.ranks) {
    const bool joined =
        !std::binary_search(network.unjoined.begin(), network.unjoined.end(), rank.rank);
    if (joined && !WaitsForOthers(rank)) return {};
    if (joined) continue;
    Show(rank.evidence, finding);
    if (IsIdle(rank)) ++idle;
  }
  if (idle < network.unjoined.size() && network.unjoined_seconds < f.rendezvous_suspect_seconds)
    return {};
  finding.matched = true;
  finding.sub = subs::kWaiting;
  finding.tier =
      network.unjoined_seconds >= f.rendezvous_fire_seconds ? proto::TIER_S : proto::TIER_W;
  finding.ranks = network.unjoined;
  finding.component = "rendezvous";
  finding.symptom = "hang";
  finding.shows.insert(finding.shows.begin(), network.unjoined_evidence);
  finding.root = {network.unjoined_evidence};
  Show(network.connected_evidence, finding);
  Show(f.alive_evidence, finding);
  finding.values.Set(FieldId::kSeconds, network.unjoined_seconds);
  finding.onset = f.now - Seconds(network.unjoined_seconds);
  return finding;
}

proto::Domain DomainOf(std::string_view sub) {
  if (sub == subs::kPortInUse || sub == subs::kBind) return proto::DOMAIN_WORKLOAD;
  for (const std::string_view open : {subs::kDns, subs::kRefused, subs::kTimeout, subs::kJoin,
                                      subs::kWaiting, subs::kStoreLost}) {
    if (sub == open) return proto::DOMAIN_UNKNOWN;
  }
  return proto::DOMAIN_INFRASTRUCTURE;
}

// Who says that the others have not come is not one of these.
void NameWhoDidNotJoin(const JobFeatures& f, Finding& finding) {
  finding.ranks.clear();
  if (!f.missing_ranks.empty()) {
    finding.sub = "missing_rank";
    finding.ranks = f.missing_ranks;
    Show(f.missing_evidence, finding);
  } else if (!f.network.unjoined.empty()) {
    finding.ranks = f.network.unjoined;
    Show(f.network.unjoined_evidence, finding);
  }
}

// The kernel's own account of the connections; the sub is its word, not the text's.
void FollowKernel(const JobFeatures& f, Finding& finding) {
  const features::NetworkFeatures& network = f.network;
  finding.sub = network.trigger;
  finding.tier = network.ongoing ? proto::TIER_C : proto::TIER_P;
  if (!network.ranks.empty()) finding.ranks = network.ranks;
  Show(network.trigger_evidence, finding);
  for (const features::EvidenceRef ref : network.beside) Show(ref, finding);
  if (std::find(finding.root.begin(), finding.root.end(), network.trigger_evidence) ==
      finding.root.end())
    finding.root.push_back(network.trigger_evidence);
  finding.values = {{FieldId::kPeer, network.peer},
                    {FieldId::kHost, network.host},
                    {FieldId::kPort, network.port},
                    {FieldId::kSeconds, network.seconds}};
  if (network.listener < 0) return;
  finding.advice = "another_host";
  finding.values.Set(FieldId::kOthers, "rank " + std::to_string(network.listener));
  if (!network.listener_host.empty()) finding.values.Set(FieldId::kAnother, network.listener_host);
}

}  // namespace

Finding Evaluate(const JobFeatures& f) {
  const Cause* primary = f.Primary();
  if (primary != nullptr) {
    // A group that had formed and trained is not forming any more.
    const bool forming = FormsNoCommunicator(primary->incident());
    if ((primary->incident().kind != IncidentKind::kRendezvous && !forming) || f.progress > 0)
      return {};
    // NCCL without an interface is a matter of the network, with a group that stands.
    if (FindsNoInterface(primary->incident())) return {};
    Finding finding = FromPrimary(f);
    finding.sub = primary->incident().sub;
    if (forming) {
      finding.sub = "transport";
      finding.cap = cap::kLookalike;  // a peer's death looks the same from here
    }
    if (!f.network.trigger.empty() && !forming) {
      FollowKernel(f, finding);
    } else if (f.network.connected > 0 && primary->incident().sub == subs::kTimeout &&
               WaitsForAPeer(primary->incident())) {
      finding.sub = subs::kWaiting;
      Show(f.network.connected_evidence, finding);
    }
    if (finding.sub == subs::kWaiting) NameWhoDidNotJoin(f, finding);
    finding.domain = DomainOf(finding.sub);
    if (finding.advice == "another_host") finding.domain = proto::DOMAIN_WORKLOAD;
    if (finding.sub == subs::kTimeout || finding.sub == subs::kJoin ||
        finding.sub == subs::kStoreLost)
      finding.open.push_back(Question::kRendezvousTrigger);
    finding.component = "rendezvous";
    finding.symptom = "hang";
    if (f.rendezvous_begin_evidence != features::kNoEvidence)
      finding.shows.push_back(f.rendezvous_begin_evidence);
    return finding;
  }
  if (Finding missing = MissingRank(f); missing.matched) return missing;
  if (Finding unjoined = UnjoinedRank(f); unjoined.matched) return unjoined;
  if (!StuckInRendezvous(f)) return {};
  Finding finding;
  finding.matched = true;
  finding.sub = "silent";
  finding.tier = f.phase_seconds >= f.rendezvous_fire_seconds ? proto::TIER_S : proto::TIER_W;
  finding.cap = cap::kUnseenSide;  // peers of other nodes are not seen
  finding.component = "rendezvous";
  finding.symptom = "hang";
  finding.shows = finding.root = {f.rendezvous_begin_evidence};
  if (f.alive_evidence != features::kNoEvidence) finding.shows.push_back(f.alive_evidence);
  finding.values.Set(FieldId::kSeconds, f.phase_seconds);
  finding.onset = f.now - Seconds(f.phase_seconds);
  if (f.network.connected > 0) {
    // The coordinator answers: what is missing is somebody else.
    finding.sub = subs::kWaiting;
    Show(f.network.connected_evidence, finding);
  } else {
    finding.open.push_back(Question::kRendezvousTrigger);
  }
  return finding;
}

RuledOut RuleOut(const JobFeatures& f) {
  if (f.progress > 0) {
    return Excluded(Reason::kGroupFormed, {f.last_progress_evidence},
                    {{FieldId::kRecords, f.progress}});
  }
  if (f.world_size == 1) return Excluded(Reason::kOneRank, {}, {{FieldId::kWhat, "rendezvous"}});
  if (const Cause* cause = FindCause(f, IncidentKind::kRendezvous)) {
    return Excluded(Reason::kConsequence, {cause->evidence}, {{FieldId::kWhat, "rendezvous"}});
  }
  if (const Cause* primary = f.Primary()) {
    // Who is ended from outside before any step may have waited for the others until then.
    if (f.progress == 0 && IsDisposition(primary->event)) return NotDecidable(proto::STORE_NCCL);
    return Excluded(Reason::kOtherEvent, {primary->evidence}, {{FieldId::kWhat, "hang"}});
  }
  if (f.ended && f.exit_known && f.exit_code == 0) return Exited(f, {f.exit_evidence});
  return NotDecidable(proto::STORE_NCCL);
}

}  // namespace rankscope::families::rendezvous_hang
