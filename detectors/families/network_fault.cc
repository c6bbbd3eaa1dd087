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
  finding.open.push_back(Question::kConnectionTrigger);
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
