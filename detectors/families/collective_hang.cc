// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// C2: training freezes inside a collective. Calls into NCCL show who is in it and who is not, text
// or none. Text decides when somebody's timeout speaks; its silence alone is a suspicion, and only
// where arrival times tell anything. The survivors' complaint names the waiting ranks, never the
// one that is missing.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <set>

#include "detectors/families/curve.h"
#include "detectors/families/gpu_peers.h"
#include "detectors/families/report_culprit.h"
#include "detectors/families/rows.h"
#include "detectors/families/sender.h"
#include "detectors/families/standstill.h"
#include "detectors/families/thread_causes.h"
#include "detectors/model/subs.h"

namespace rankscope::families::collective_hang {

using features::Cause;
using features::JobFeatures;
using logs::IncidentKind;

namespace {

// Silence means anything only after this much regularity.
constexpr int64_t kProgressForSilence = 3;

bool MultiProcess(const JobFeatures& f) {
  return f.world_size > 1;
}

bool Silent(const JobFeatures& f) {
  return f.running && f.timed && f.progress >= kProgressForSilence && !f.train_end &&
         f.silence_seconds >= HangTimeout(f) && !Advances(f);
}

// More ranks take part than run on this node.
bool PeersElsewhere(const JobFeatures& f) {
  return f.world_size > static_cast<int32_t>(f.collectives.ranks.size());
}

// Ranks wait, and one that has not entered what they wait in is here to be named.
Finding AbsentRank(const JobFeatures& f) {
  const features::CollectiveFeatures& c = f.collectives;
  Finding finding;
  finding.matched = true;
  finding.sub = subs::kAbsentRank;
  finding.ranks = c.absent;
  finding.tier = proto::TIER_S;
  // Counts or watchdogs of all ranks say who is not in it, and its launches have stopped too.
  const bool launches_agree = std::isfinite(c.absent_since_launch);
  if (launches_agree && (c.by_sequence || c.asked)) finding.tier = proto::TIER_C;
  finding.cap = cap::kInferred;
  if (AbsenceOf(f) == Absence::kBusyHost) finding.tier = proto::TIER_W;  // may be compiling
  // Many are absent: they may be waiting for something that is no collective.
  if (2 * c.absent.size() > c.ranks.size()) finding.cap = cap::kEvenOdds;
  finding.shows = {c.absent_evidence, c.waiting_evidence, c.advance_evidence};
  finding.root = {c.absent_evidence, c.waiting_evidence};
  finding.open = {Question::kHangTrigger};
  return finding;
}

// All have entered, nobody gets through.
Finding Stalled(const JobFeatures& f) {
  const features::CollectiveFeatures& c = f.collectives;
  Finding finding;
  finding.matched = true;
  finding.sub = subs::kStalled;
  finding.tier = proto::TIER_S;
  if (!c.asked) finding.cap = cap::kLookalike;  // a kernel that runs for ever looks the same
  finding.shows = {c.waiting_evidence, c.advance_evidence};
  finding.root = {c.waiting_evidence};
  finding.open = {Question::kHardwareOrSoftware};
  if (PeersElsewhere(f)) finding.open = {Question::kHangCulprit, Question::kHangTrigger};
  return finding;
}

Finding Standstill(const JobFeatures& f) {
  const features::CollectiveFeatures& c = f.collectives;
  Finding finding = AbsenceOf(f) == Absence::kNone ? Stalled(f) : AbsentRank(f);
  if (!Seasoned(f))
    finding.cap = cap::kEvenOdds;  // data may be prepared that long before the first step
  finding.component = "collective";
  finding.symptom = "hang";
  finding.domain = proto::DOMAIN_UNKNOWN;
  Show(f.launches.idle_evidence, finding);
  if (f.silence_seconds >= c.seconds_since_advance) Show(f.silence_evidence, finding);
  Show(f.alive_evidence, finding);
  finding.values = {{FieldId::kSeconds, c.seconds_since_advance},
                    {FieldId::kTimeout, StandstillTimeout(f)}};
  finding.onset = f.now - Seconds(c.seconds_since_advance);
  return finding;
}

// Nobody counts collectives, but calls into CUDA are: ranks that stand in a synchronisation wait
// for their GPUs, and a few that stand in none and launch nothing are what these wait for.
void NameTheIdle(const JobFeatures& f, Finding& finding) {
  if (!finding.ranks.empty() || f.store(proto::STORE_CUDA) != Availability::kUp) return;
  const double most_of_it = HangTimeout(f) / 2;
  std::vector<int32_t> idle;
  size_t waiting = 0;
  for (const features::RankLaunches& rank : f.launches.ranks) {
    if (rank.sync_seconds >= most_of_it) {
      ++waiting;
    } else if (rank.sync_seconds <= 1 && rank.seconds_since_launch >= most_of_it) {
      idle.push_back(rank.rank);
    } else {
      return;  // it works
    }
  }
  if (idle.empty() || idle.size() >= waiting) return;
  finding.sub = subs::kAbsentRank;
  finding.ranks = std::move(idle);
  // The text has stopped, and so have the calls.
  finding.tier = proto::TIER_C;
  finding.cap = std::max(finding.cap, cap::kOneSource);
  Show(f.launches.idle_evidence, finding);
  finding.root.push_back(f.launches.idle_evidence);
  std::erase(finding.open, Question::kHangCulprit);
}

// Every rank of this node uses a CPU all the time, in no call and with nothing on its GPU: a loop
// of Python's is no collective, however long it prints nothing.
bool AllComputeOnTheHost(const JobFeatures& f) {
  const bool calls = f.store(proto::STORE_CUDA) == Availability::kUp && !f.launches.ranks.empty();
  const bool cards = f.gpu.known();
  if (!f.waits.known() || (!calls && !cards)) return false;
  if (calls && f.launches.sync_seconds > 0) return false;
  if (cards && !std::all_of(f.gpu.gpus.begin(), f.gpu.gpus.end(), [](const features::RunGpu& gpu) {
        constexpr double kMinute = 60;
        return gpu.idle_seconds >= kMinute;
      }))
    return false;
  return std::all_of(f.waits.ranks.begin(), f.waits.ranks.end(),
                     [](const features::RankWait& rank) {
                       constexpr double kAlways = 0.9;
                       return rank.recent_seconds > 0 && rank.main_running_share >= kAlways;
                     });
}

// At the watchdog's word the counts of all ranks still stand.
void NameTheAbsent(const JobFeatures& f, Finding& finding) {
  const features::CollectiveFeatures& c = f.collectives;
  if (c.absent.empty() || c.waiting.empty() || 2 * c.absent.size() > c.ranks.size()) return;
  finding.ranks = c.absent;
  Show(c.absent_evidence, finding);
  Show(c.waiting_evidence, finding);
  std::erase(finding.open, Question::kHangCulprit);
}

// The backend's own words name the ranks that did not come: "3", "1, 2" of gloo's monitored
// barrier, the rank whose word a new communicator waited for.
void NameWhoDidNotCome(const logs::Incident& incident, Finding& finding) {
  if (!finding.ranks.empty()) return;
  if (incident.kind != IncidentKind::kCollectiveTimeout && !WaitsForAPeer(incident)) return;
  constexpr int32_t kMostRanks = 1 << 24;
  for (const KeyValue& field : incident.fields) {
    const bool names = field.key == "missing_ranks" ||
                       (field.key == "peer" && incident.kind == IncidentKind::kRendezvous);
    if (!names) continue;
    const char* at = field.value.data();
    const char* const end = at + field.value.size();
    while (at != end) {
      int32_t rank = -1;
      const auto [rest, error] = std::from_chars(at, end, rank);
      if (error == std::errc() && rank >= 0 && rank < kMostRanks) finding.ranks.push_back(rank);
      at = rest == at ? at + 1 : rest;
    }
  }
  if (!finding.ranks.empty()) std::erase(finding.open, Question::kHangCulprit);
}

// The watchdogs of all ranks but one gave up the same collective. Each rank that enters it has a
// watchdog of its own, so the one that is silent has not entered. Of more than one nothing is
// known: a launcher that ends the run at the first failure silences some.
void NameTheSilent(const JobFeatures& f, Finding& finding) {
  constexpr size_t kFewest = 3;
  if (!finding.ranks.empty()) return;
  std::set<int32_t> all;
  std::set<int32_t> gave_up;
  std::string_view place;
  for (const Cause& cause : f.causes) {
    const std::vector<int32_t>& ranks = cause.candidate->ranks;
    all.insert(ranks.begin(), ranks.end());
    if (cause.incident().kind != IncidentKind::kCollectiveTimeout) continue;
    const std::string_view seq = FieldOf(cause, "seq");
    if (seq.empty()) continue;
    if (!place.empty() && seq != place) return;
    place = seq;
    gave_up.insert(ranks.begin(), ranks.end());
  }
  for (int32_t rank = 0; rank < f.world_size; ++rank) all.insert(rank);
  const bool whole =
      !all.empty() && *all.begin() == 0 && *all.rbegin() == static_cast<int32_t>(all.size()) - 1;
  if (!whole || gave_up.size() < kFewest || gave_up.size() + 1 != all.size()) return;
  std::set_difference(all.begin(), all.end(), gave_up.begin(), gave_up.end(),
                      std::back_inserter(finding.ranks));
  std::erase(finding.open, Question::kHangCulprit);
}

// The trigger and what it has led to, both.
Finding LostPeer(const JobFeatures& f) {
  const features::CollectiveFeatures& c = f.collectives;
  Finding finding = FromPrimary(f);
  finding.sub = subs::kLostPeer;
  finding.tier = proto::TIER_C;
  finding.cap = cap::kInferred;
  finding.domain = proto::DOMAIN_UNKNOWN;
  finding.component = "collective";
  finding.symptom = "hang";
  Show(c.absent_evidence, finding);
  Show(c.waiting_evidence, finding);
  Show(c.advance_evidence, finding);
  Show(f.launches.idle_evidence, finding);
  AddWaitingCards(f, finding);
  Show(f.silence_evidence, finding);
  Show(f.alive_evidence, finding);
  finding.open = {Question::kWhoKilled};
  return finding;
}

}  // namespace

Finding Evaluate(const JobFeatures& f) {
  const Cause* primary = f.Primary();
  if (FreezesItsPeers(f)) return LostPeer(f);
  // Whoever ended a run that stood ended it for that.
  if (primary != nullptr && IsDisposition(primary->event)) {
    if (Finding reported = ReportedStandstill(f); reported.matched) return reported;
  }
  if (primary != nullptr) {
    const bool forms = f.progress > 0 && WaitsForAPeer(primary->incident());
    if (primary->incident().kind != IncidentKind::kCollectiveTimeout && !forms) return {};
    Finding finding = FromPrimary(f);
    finding.sub = "watchdog";
    finding.domain = proto::DOMAIN_UNKNOWN;
    finding.component = "collective";
    finding.symptom = "hang";
    finding.cap = cap::kInferred;
    Show(f.last_progress_evidence, finding);
    Show(f.leave.evaluation, finding);
    finding.open = {Question::kHangCulprit, Question::kHangTrigger};
    // Whoever speaks first has waited longest: it has entered, and another one has not.
    finding.ranks.clear();
    NameTheAbsent(f, finding);
    for (const Cause& cause : f.causes) NameWhoDidNotCome(cause.incident(), finding);
    NameTheSilent(f, finding);
    if (!finding.ranks.empty()) finding.advice = subs::kAbsentRank;
    AddReportedCulprit(f, finding);
    return finding;
  }
  if (StandsInCollective(f)) {
    Finding finding = Standstill(f);
    AddWaitingCards(f, finding);
    AddThreadCause(f, finding);
    AddReportedCulprit(f, finding);
    return finding;
  }
  if (Finding reported = ReportedStandstill(f); reported.matched) return reported;
  if (!MultiProcess(f)) return {};
  if (!Silent(f)) return StandstillOfThreads(f);
  if (NobodyWaits(f) || AllComputeOnTheHost(f)) return {};
  // A loop that prints nothing is no hang; one kernel that runs for half an hour is none of
  // training's.
  constexpr double kLongKernel = 1800;
  if (ACardWorks(f) && f.silence_seconds < kLongKernel) return {};
  Finding finding;
  finding.matched = true;
  finding.sub = "silent";
  // All processes alive and none speaking: two stores agree that it is not over and not moving.
  finding.tier = f.processes_alive > 1 ? proto::TIER_S : proto::TIER_W;
  finding.cap = cap::kUnseenSide;  // no cross-rank view of collectives
  finding.component = "collective";
  finding.symptom = "hang";
  finding.shows = finding.root = {f.silence_evidence};
  if (f.alive_evidence != features::kNoEvidence) finding.shows.push_back(f.alive_evidence);
  finding.values = {{FieldId::kSeconds, f.silence_seconds}, {FieldId::kTimeout, HangTimeout(f)}};
  finding.onset = f.now - Seconds(f.silence_seconds);
  finding.open = {Question::kHangCulprit, Question::kHangTrigger};
  AddWaitingCards(f, finding);
  NameTheIdle(f, finding);
  AddThreadCause(f, finding);
  AddReportedCulprit(f, finding);
  return finding;
}

RuledOut RuleOut(const JobFeatures& f) {
  if (f.world_size == 1) return Excluded(Reason::kOneRank, {}, {{FieldId::kWhat, "collectives"}});
  if (const Cause* cause = FindCause(f, IncidentKind::kCollectiveTimeout)) {
    return Excluded(Reason::kConsequence, {cause->evidence}, {{FieldId::kWhat, "timeout"}});
  }
  if (const Cause* primary = f.Primary()) {
    // Who is ended from outside before any step may have waited for the others until then.
    if (f.progress == 0 && IsDisposition(primary->event)) return NotDecidable(proto::STORE_NCCL);
    return Excluded(Reason::kOtherEvent, {primary->evidence}, {{FieldId::kWhat, "hang"}});
  }
  if (f.ended && f.train_end) return Excluded(Reason::kTrainingEnded, {f.train_end_evidence});
  if (f.ended && f.exit_known && f.exit_code == 0) return Exited(f, {f.exit_evidence});
  if (f.running && f.timed && f.progress >= kProgressForSilence &&
      f.silence_seconds < HangTimeout(f)) {
    return Excluded(Reason::kRecordsCome, {f.silence_evidence},
                    {{FieldId::kSeconds, f.silence_seconds}, {FieldId::kTimeout, HangTimeout(f)}});
  }
  if (f.running && f.store(proto::STORE_NCCL) == Availability::kUp && f.collectives.entered > 0) {
    if (f.collectives.seconds_since_advance < StandstillTimeout(f)) {
      return Excluded(Reason::kCollectivesAdvance, {f.collectives.advance_evidence},
                      {{FieldId::kSeconds, f.collectives.seconds_since_advance},
                       {FieldId::kTimeout, StandstillTimeout(f)}});
    }
    if (NobodyWaits(f)) {
      return Excluded(Reason::kNobodyWaits, {f.collectives.advance_evidence},
                      {{FieldId::kRankCount, static_cast<int64_t>(f.collectives.ranks.size())}});
    }
  }
  if (f.running && ACardWorks(f))
    return Excluded(Reason::kGpusCompute, {f.gpu.gpus.front().activity_evidence});
  return NotDecidable(proto::STORE_NCCL);
}

}  // namespace rankscope::families::collective_hang
