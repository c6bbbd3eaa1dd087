// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// C1: the process group never forms. Text decides when somebody's timeout speaks; silence alone is
// a suspicion, and only where arrival times tell anything.
#include "detectors/families/rows.h"

namespace rankscope::families {
namespace {

using features::Cause;
using features::JobFeatures;
using logs::IncidentKind;

// NCCL failed while it connected the ranks: the store had brought them together.
bool FormsNoCommunicator(const logs::Incident& incident) {
  return incident.kind == IncidentKind::kPeerLost && incident.sub == "init";
}

bool StuckInRendezvous(const JobFeatures& f) {
  return f.running && f.timed && f.in_rendezvous && f.progress == 0 &&
         f.phase_seconds >= f.rendezvous_suspect_seconds;
}

}  // namespace

Finding EvaluateC1(const JobFeatures& f) {
  const Cause* primary = f.Primary();
  if (primary != nullptr) {
    // A group that had formed and trained is not forming any more.
    const bool forming = FormsNoCommunicator(primary->incident());
    if ((primary->incident().kind != IncidentKind::kRendezvous && !forming) || f.progress > 0)
      return {};
    // NCCL without an interface is a matter of the network, with a group that stands.
    if (primary->incident().shape == "nccl_bootstrap" && primary->incident().sub == "bind")
      return {};
    Finding finding = FromPrimary(f);
    finding.sub = primary->incident().sub;
    if (forming) {
      finding.sub = "transport";
      finding.cap = 0.55;  // a peer's death looks the same from here
    }
    finding.domain = finding.sub == "dns" || finding.sub == "refused"
                         ? proto::DOMAIN_UNKNOWN
                         : proto::DOMAIN_INFRASTRUCTURE;
    if (finding.sub == "port_in_use" || finding.sub == "bind")
      finding.domain = proto::DOMAIN_WORKLOAD;
    if (finding.sub == "timeout" || finding.sub == "join" || finding.sub == "store_lost") {
      finding.domain = proto::DOMAIN_UNKNOWN;
      finding.open.push_back(Question::kRendezvousTrigger);
    }
    finding.component = "rendezvous";
    finding.symptom = "hang";
    if (f.rendezvous_begin_evidence != features::kNoEvidence)
      finding.shows.push_back(f.rendezvous_begin_evidence);
    return finding;
  }
  if (!StuckInRendezvous(f)) return {};
  Finding finding;
  finding.matched = true;
  finding.sub = "silent";
  finding.tier = f.phase_seconds >= f.rendezvous_fire_seconds ? proto::TIER_S : proto::TIER_W;
  finding.cap = 0.7;  // peers of other nodes are not seen
  finding.component = "rendezvous";
  finding.symptom = "hang";
  finding.shows = finding.root = {f.rendezvous_begin_evidence};
  if (f.alive_evidence != features::kNoEvidence) finding.shows.push_back(f.alive_evidence);
  finding.values.push_back({"seconds", Number(f.phase_seconds)});
  finding.onset = f.now - Seconds(f.phase_seconds);
  finding.open.push_back(Question::kRendezvousTrigger);
  return finding;
}

RuledOut RuleOutC1(const JobFeatures& f) {
  if (f.progress > 0) {
    return Excluded(
        "the process group stood: " + Counted(static_cast<double>(f.progress), "training record"),
        {f.last_progress_evidence});
  }
  if (f.world_size == 1) return Excluded("one process needs no rendezvous");
  if (const Cause* cause = FindCause(f, IncidentKind::kRendezvous)) {
    return Excluded("the rendezvous failure is a consequence of an earlier event",
                    {cause->evidence});
  }
  if (const Cause* primary = f.Primary())
    return Excluded("the run was ended by another event", {primary->evidence});
  if (f.ended && f.exit_known && f.exit_code == 0)
    return Excluded("the command exited with 0", {f.exit_evidence});
  return NotDecidable(proto::STORE_NCCL);
}

}  // namespace rankscope::families
