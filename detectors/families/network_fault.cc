// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// X5: a transport error between nodes.
#include "detectors/families/curve.h"
#include "detectors/families/gpu_error_end.h"
#include "detectors/families/report_culprit.h"
#include "detectors/families/rows.h"
#include "detectors/families/standstill.h"
#include "detectors/features/cause_relations.h"
#include "detectors/model/subs.h"

namespace rankscope::families::network_fault {

using features::Cause;
using features::JobFeatures;
using logs::IncidentKind;

namespace {

// A group that trained, and cannot connect again. One of its ranks that does not come to make
// another communicator is a hang (C2).
bool CannotConnectAgain(const JobFeatures& f, const logs::Incident& incident) {
  return incident.kind == IncidentKind::kRendezvous && f.progress > 0 && !WaitsForAPeer(incident);
}

// The rank that was the first to end, with a code that Python does not give to an exception, while
// the others ended by what they say. It may have left by itself, or have met an error that it did
// not print.
const Cause* EndedFirst(const JobFeatures& f, const Cause& loss) {
  constexpr Duration kSlowExit = Seconds(10);
  constexpr int32_t kOfAnException = 1, kSignalled = 128;
  if (f.world_size < 2 || f.rank_pids.size() < static_cast<size_t>(f.world_size) ||
      !features::WasClosedInOrder(loss.incident()))
    return nullptr;
  const Cause* first = nullptr;
  for (const Cause& cause : f.causes) {
    if (cause.incident().shape != "wait_status" || cause.incident().rank < 0) continue;
    if (first == nullptr || cause.incident().t < first->incident().t) first = &cause;
  }
  if (first == nullptr) return nullptr;
  const logs::Incident& exit = first->incident();
  if (exit.kind != IncidentKind::kNonZeroExit || exit.exit_code <= kOfAnException ||
      exit.exit_code >= kSignalled || exit.t - loss.incident().t > kSlowExit)
    return nullptr;
  const bool shared = std::any_of(f.causes.begin(), f.causes.end(), [&](const Cause& other) {
    const logs::Incident& incident = other.incident();
    const bool tells = incident.kind == IncidentKind::kPeerLost && incident.rank == exit.rank;
    const bool alike = incident.shape == "wait_status" && incident.rank != exit.rank &&
                       incident.exit_code == exit.exit_code;
    return tells || alike;
  });
  return shared ? nullptr : first;
}

}  // namespace

Finding Evaluate(const JobFeatures& f) {
  const Cause* primary = f.Primary();
  if (primary == nullptr) return {};
  const logs::Incident& incident = primary->incident();
  const bool peer_access = IsPeerAccess(incident);
  const bool again = CannotConnectAgain(f, incident);
  const bool bootstrap = FindsNoInterface(incident);
  if (incident.kind != IncidentKind::kPeerLost && !peer_access && !bootstrap && !again) return {};
  if (incident.sub == subs::kInit && f.progress == 0 && !peer_access)
    return {};  // C1: it never formed
  Finding finding = FromPrimary(f);
  finding.sub = subs::kPath;
  if (incident.sub == subs::kIb) finding.sub = subs::kIb;
  if (incident.sub == subs::kEfa) finding.sub = subs::kEfa;
  if (peer_access) finding.sub = "nvlink_peer";
  if (bootstrap) finding.sub = "bootstrap";
  finding.domain = proto::DOMAIN_INFRASTRUCTURE;
  finding.component = "network";
  // A peer's death looks the same from here; a missing interface does not.
  if (incident.kind == IncidentKind::kPeerLost || again) finding.cap = cap::kLookalike;
  HoldToItsWord(f, finding);
  AddPortFaults(f, finding);
  Show(f.last_progress_evidence, finding);
  const Cause* const ended = EndedFirst(f, *primary);
  if (ended == nullptr) {
    finding.open.push_back(Question::kConnectionTrigger);
    return finding;
  }
  finding.cap = cap::kEvenOdds;
  finding.domain = proto::DOMAIN_UNKNOWN;
  finding.component = "process";
  finding.ranks = {ended->incident().rank};
  finding.advice = "peer_exited";
  finding.values.Set(FieldId::kExitCode, int64_t{ended->incident().exit_code});
  Show(ended->evidence, finding);
  finding.root.push_back(ended->evidence);
  return finding;
}

RuledOut RuleOut(const JobFeatures& f) {
  if (f.world_size == 1) return Excluded(Reason::kOneRank);
  if (const Cause* cause = FindCause(f, IncidentKind::kPeerLost)) {
    if (f.exit_known && f.exit_code == 0) return Exited(f, {cause->evidence, f.exit_evidence});
    return Excluded(Reason::kConsequence, {cause->evidence}, {{FieldId::kWhat, "connection"}});
  }
  return NoSuchText(f, "transport");
}

}  // namespace rankscope::families::network_fault
