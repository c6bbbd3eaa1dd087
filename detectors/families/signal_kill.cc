// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// A2: a process is killed by a fatal signal before it can say anything. Who killed it is the
// kernel's to tell; the signal itself is proved by a wait status, or said by a launcher.
#include <algorithm>
#include <csignal>
#include <cstdio>

#include "detectors/families/curve.h"
#include "detectors/families/rows.h"
#include "detectors/families/sender.h"
#include "detectors/families/standstill.h"
#include "detectors/logs/failures/exception_table.h"
#include "detectors/model/subs.h"

namespace rankscope::families::signal_kill {

using features::Cause;
using features::JobFeatures;
using logs::IncidentKind;

namespace {

// NCCL's watchdog ends its process by abort(), for a peer or a port that is gone as well as for its
// own timeout, and only text tells which. One rank alone has nobody to wait for.
bool MayBeOfTheWatchdog(const JobFeatures& f, const Cause& abort) {
  return abort.incident().signal == SIGABRT && abort.candidate->store != proto::STORE_LOG &&
         f.lines == 0 && f.world_size > 1 &&
         (f.collectives.entered > 0 || f.store(proto::STORE_NCCL) != Availability::kUp);
}

bool IsMine(const Cause& cause) {
  const logs::Incident& incident = cause.incident();
  if (incident.kind == IncidentKind::kHostOom) return !logs::RefusesHostMemory(incident);
  // What a scheduler or a launcher sends to end a run is none.
  return incident.kind == IncidentKind::kSignalDeath && !IsDisposition(cause.event);
}

struct SignalRow {
  int32_t signal;
  std::string_view sub;
};

constexpr SignalRow kSubs[] = {{SIGKILL, "sigkill"}, {SIGSEGV, "sigsegv"}, {SIGABRT, "sigabrt"},
                               {SIGBUS, "sigbus"},   {SIGILL, "sigill"},   {SIGFPE, "sigfpe"},
                               {SIGHUP, "sighup"},   {SIGPIPE, "sigpipe"}, {SIGUSR1, "sigusr"},
                               {SIGUSR2, "sigusr"},  {SIGTERM, "sigterm"}, {SIGXCPU, "limit"},
                               {SIGXFSZ, "limit"}};
// What the kernel sends for what a program's own instructions did, or the program to itself.
constexpr int32_t kCrashes[] = {SIGSEGV, SIGABRT, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS};

// The kernel's own record says most.
const Cause* FindOom(const JobFeatures& f) {
  const Cause* found = nullptr;
  for (const Cause& cause : f.causes) {
    if (cause.incident().kind != IncidentKind::kHostOom) continue;
    if (found == nullptr || cause.candidate->store == proto::STORE_KERNEL) found = &cause;
  }
  return found;
}

// Whose memory ran out: a limit that was set for somebody, or the machine's, which others use too.
void JudgeOom(const Cause& oom, Finding& finding) {
  if (oom.candidate->store != proto::STORE_KERNEL) return;
  const std::string_view scope = FieldOf(oom, "scope");
  if (scope == "cgroup") {
    finding.component = "memory_limit";
    finding.advice = "oom_cgroup";
    finding.values.Set(FieldId::kOomMemcg, FieldOf(oom, "oom_memcg"));
    if (std::optional<FieldValue> limit = FromCaptured("limit_bytes", FieldOf(oom, "limit_bytes")))
      finding.values.Set(std::move(*limit));
  } else if (scope == "host") {
    finding.domain = proto::DOMAIN_UNKNOWN;
    finding.advice = "oom_host";
  }
}

// Python's own fault handler has printed where the process was.
bool ToldByFaultHandler(const JobFeatures& f) {
  return std::any_of(f.causes.begin(), f.causes.end(),
                     [](const Cause& cause) { return cause.incident().shape == "faulthandler"; });
}

// timeout(1) ends its child and then its own group, itself included: with SIGKILL, which it cannot
// ignore, it looks like a program that kills itself.
bool IsTimeout(const Cause& sent) {
  return FieldOf(sent, "sender") == "timeout" && sent.incident().signal == SIGKILL;
}

}  // namespace

Finding Evaluate(const JobFeatures& f) {
  const Cause* primary = f.Primary();
  if (primary == nullptr || !IsMine(*primary) || FreezesItsPeers(f)) return {};
  if (KilledTheRun(f, *primary)) return {};
  Finding finding = FromPrimary(f);
  if (finding.signal == 0) finding.signal = SIGKILL;
  finding.sub = "other";
  for (const SignalRow& row : kSubs) {
    if (row.signal == finding.signal) finding.sub = row.sub;
  }
  const Cause* const oom = FindOom(f);
  const Cause* const sent = FindSender(f, *primary);
  const std::string_view by = sent == nullptr ? std::string_view() : FieldOf(*sent, "sent_by");
  const bool by_process = !by.empty() && by != "kernel" && by != "itself";
  if (oom != nullptr && finding.signal == SIGKILL) {
    finding.sub = "host_oom";
    finding.domain = proto::DOMAIN_WORKLOAD;
    finding.component = "host_memory";
    JudgeOom(*oom, finding);
    for (const features::Notice& notice : f.notices) {
      if (notice.explains == IncidentKind::kHostOom) Show(notice.evidence, finding);
    }
  } else if (finding.signal == SIGKILL && !by_process && by != "itself" &&
             f.oom_count_evidence != features::kNoEvidence) {
    // The kernel counted one when it ended; who was killed the count does not say.
    finding.sub = "host_oom";
    finding.domain = proto::DOMAIN_WORKLOAD;
    finding.component = "host_memory";
    if (finding.tier == proto::TIER_S) finding.tier = proto::TIER_C;
    finding.cap = std::min(finding.cap, cap::kInferred);
    Show(f.oom_count_evidence, finding);
  } else if (by_process) {
    JudgeSender(f, *sent, finding);
  } else if (finding.signal == SIGBUS && f.storage.shared_memory_full) {
    finding.sub = "shm";
    finding.domain = proto::DOMAIN_WORKLOAD;
    finding.component = "shared_memory";
    finding.tier = proto::TIER_P;
    Show(f.storage.shared_memory_evidence, finding);
  } else if (primary->incident().sub == subs::kDataloaderWorker && finding.signal == SIGBUS) {
    finding.sub = "shm";
    finding.domain = proto::DOMAIN_WORKLOAD;
    finding.component = "shared_memory";
  } else if ((finding.signal == SIGKILL || finding.signal == SIGTERM) && by == "itself") {
    finding.domain = proto::DOMAIN_WORKLOAD;
    finding.component = "process";
    finding.advice = IsTimeout(*sent) ? "timed_out" : "killed_itself";
  } else if (finding.signal == SIGKILL) {
    finding.domain = proto::DOMAIN_UNKNOWN;
    finding.component = "process";
    // The kernel's own kill: who is known, and why is not.
    finding.open.push_back(by == "kernel" ? Question::kWhyExit : Question::kWhoKilled);
    if (FieldOf(*primary, "program") == "srun") finding.advice = "srun_killed";
  } else if (finding.signal == SIGHUP) {
    finding.domain = proto::DOMAIN_UNKNOWN;
    finding.component = "terminal";
    finding.open.push_back(Question::kWhoKilled);
  } else if (std::find(std::begin(kCrashes), std::end(kCrashes), finding.signal) ==
             std::end(kCrashes)) {
    finding.domain = proto::DOMAIN_UNKNOWN;
    finding.component = "process";
  } else {
    finding.domain = proto::DOMAIN_WORKLOAD;
    finding.component = "native_code";
    const bool watchdog = MayBeOfTheWatchdog(f, *primary);
    if (watchdog) finding.cap = std::min(finding.cap, cap::kEvenOdds);
    finding.open.push_back(watchdog ? Question::kWhoseAbort : Question::kNativeCrashSite);
    if (!watchdog && ToldByFaultHandler(f)) {
      finding.advice = "fault_handler";
      finding.values.Set(FieldId::kPython, "yes");
    }
  }
  if (FieldOf(*primary, "worker") == "yes" && !finding.ranks.empty())
    finding.values.Set(FieldId::kWorker, "yes");
  // A lone "Killed" may have been printed by anything.
  if (primary->incident().sub == subs::kBare && finding.tier == proto::TIER_S)
    finding.tier = proto::TIER_W;
  return finding;
}

RuledOut RuleOut(const JobFeatures& f) {
  if (const Cause* primary = f.Primary(); primary != nullptr && FreezesItsPeers(f))
    return Excluded(Reason::kPeersStillWait, {primary->evidence});
  if (f.exit_known && f.exit_code == 0) return Exited(f, {f.exit_evidence});
  for (const Cause& cause : f.causes) {
    if (cause.incident().kind == IncidentKind::kSignalDeath && !IsMine(cause)) {
      return Excluded(Reason::kStopRequest, {cause.evidence});
    }
  }
  for (const Cause& cause : f.causes) {
    if (IsMine(cause))
      return Excluded(Reason::kConsequence, {cause.evidence}, {{FieldId::kWhat, "signal"}});
  }
  if (f.exit_known && f.exit_signal == 0 && f.processes_seen > 0) {
    return Excluded(Reason::kNoSignalDeath, {f.exit_evidence});
  }
  // A batch shell that the scheduler ended, of which no word and no record but its status is left.
  if (f.exit_known && (f.exit_signal == SIGTERM || f.exit_signal == SIGINT))
    return Excluded(Reason::kStopRequest, {f.exit_evidence});
  return NoSuchText(f, "signal");
}

}  // namespace rankscope::families::signal_kill
