// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// A2: a process is killed by a fatal signal before it can say anything. Who killed it is the
// kernel's to tell; the signal itself is proved by a wait status, or said by a launcher.
#include <algorithm>
#include <csignal>

#include "detectors/families/rows.h"
#include "detectors/logs/exception_table.h"

namespace rankscope::families {
namespace {

using features::Cause;
using features::JobFeatures;
using logs::IncidentKind;

bool IsMine(const Cause& cause) {
  const logs::Incident& incident = cause.incident();
  if (incident.kind == IncidentKind::kHostOom) return !logs::RefusesHostMemory(incident);
  return incident.kind == IncidentKind::kSignalDeath && incident.signal != SIGTERM &&
         incident.signal != SIGINT;
}

struct SignalRow {
  int32_t signal;
  std::string_view sub;
};
constexpr SignalRow kSubs[] = {{SIGKILL, "sigkill"}, {SIGSEGV, "sigsegv"}, {SIGABRT, "sigabrt"},
                               {SIGBUS, "sigbus"},   {SIGILL, "sigill"},   {SIGFPE, "sigfpe"},
                               {SIGHUP, "sighup"},   {SIGPIPE, "sigpipe"}, {SIGUSR1, "sigusr"},
                               {SIGUSR2, "sigusr"},  {SIGXCPU, "limit"},   {SIGXFSZ, "limit"}};
// What the kernel sends for what a program's own instructions did, or the program to itself.
constexpr int32_t kCrashes[] = {SIGSEGV, SIGABRT, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS};

}  // namespace

Finding EvaluateA2(const JobFeatures& f) {
  const Cause* primary = f.Primary();
  if (primary == nullptr || !IsMine(*primary)) return {};
  Finding finding = FromPrimary(f);
  if (finding.signal == 0) finding.signal = SIGKILL;
  finding.sub = "other";
  for (const SignalRow& row : kSubs) {
    if (row.signal == finding.signal) finding.sub = row.sub;
  }
  const bool oom = primary->incident().kind == IncidentKind::kHostOom ||
                   FindCause(f, IncidentKind::kHostOom) != nullptr;
  if (oom && finding.signal == SIGKILL) {
    finding.sub = "host_oom";
    finding.domain = proto::DOMAIN_WORKLOAD;
    finding.component = "host_memory";
  } else if (primary->incident().sub == "dataloader_worker" && finding.signal == SIGBUS) {
    finding.sub = "shm";
    finding.domain = proto::DOMAIN_WORKLOAD;
    finding.component = "shared_memory";
  } else if (finding.signal == SIGKILL) {
    finding.domain = proto::DOMAIN_UNKNOWN;
    finding.component = "process";
    finding.open.push_back(Question::kWhoKilled);
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
    finding.open.push_back(Question::kNativeCrashSite);
  }
  // A lone "Killed" may have been printed by anything.
  if (primary->incident().sub == "bare" && finding.tier == proto::TIER_S)
    finding.tier = proto::TIER_W;
  return finding;
}

RuledOut RuleOutA2(const JobFeatures& f) {
  if (f.exit_known && f.exit_code == 0)
    return Excluded("the command exited with 0", {f.exit_evidence});
  for (const Cause& cause : f.causes) {
    if (cause.incident().kind == IncidentKind::kSignalDeath && !IsMine(cause)) {
      return Excluded("the signal is a request to stop, not a crash", {cause.evidence});
    }
  }
  for (const Cause& cause : f.causes) {
    if (IsMine(cause))
      return Excluded("the signal death is a consequence of an earlier event", {cause.evidence});
  }
  if (f.exit_known && f.exit_signal == 0 && f.processes_seen > 0) {
    return Excluded("no process of the run was seen to die by a signal", {f.exit_evidence});
  }
  return NoSuchText(f, "no signal death");
}

}  // namespace rankscope::families
