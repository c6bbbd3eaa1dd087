// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// C2: training freezes inside a collective. Text decides when somebody's timeout speaks; silence
// alone is a suspicion, and only where arrival times tell anything. The survivors' complaint names
// the waiting ranks, never the one that is missing.
#include <algorithm>
#include <cmath>

#include "detectors/families/curve.h"
#include "detectors/families/report_culprit.h"
#include "detectors/families/rows.h"
#include "detectors/families/thread_causes.h"

namespace rankscope::families {
namespace {

using features::Cause;
using features::JobFeatures;
using logs::IncidentKind;

// Silence means anything only after this much regularity.
constexpr int64_t kProgressForSilence = 3;

bool MultiProcess(const JobFeatures& f) {
  return f.world_size > 1;
}

bool Silent(const JobFeatures& f) {
  return f.running && f.timed && f.progress >= kProgressForSilence && !f.train_end &&
         f.silence_seconds >= HangTimeout(f);
}

}  // namespace

Finding EvaluateC2(const JobFeatures& f) {
  const Cause* primary = f.Primary();
  if (primary != nullptr) {
    if (primary->incident().kind != IncidentKind::kCollectiveTimeout) return {};
    Finding finding = FromPrimary(f);
    finding.sub = "watchdog";
    finding.domain = proto::DOMAIN_UNKNOWN;
    finding.component = "collective";
    finding.symptom = "hang";
    finding.cap = 0.85;
    Show(f.last_progress_evidence, finding);
    Show(f.leave.evaluation, finding);
    finding.open = {Question::kHangCulprit, Question::kHangTrigger};
    AddReportedCulprit(f, finding);
    return finding;
  }
  if (!MultiProcess(f)) return {};
  if (!Silent(f)) return StandstillOfThreads(f);
  Finding finding;
  finding.matched = true;
  finding.sub = "silent";
  // All processes alive and none speaking: two stores agree that it is not over and not moving.
  finding.tier = f.processes_alive > 1 ? proto::TIER_S : proto::TIER_W;
  finding.cap = 0.7;  // no cross-rank view of collectives
  finding.component = "collective";
  finding.symptom = "hang";
  finding.shows = finding.root = {f.silence_evidence};
  if (f.alive_evidence != features::kNoEvidence) finding.shows.push_back(f.alive_evidence);
  finding.values = {{"seconds", Number(f.silence_seconds)}, {"timeout", Number(HangTimeout(f))}};
  finding.onset = f.now - Seconds(f.silence_seconds);
  finding.open = {Question::kHangCulprit, Question::kHangTrigger};
  AddThreadCause(f, finding);
  AddReportedCulprit(f, finding);
  return finding;
}

RuledOut RuleOutC2(const JobFeatures& f) {
  if (f.world_size == 1) return Excluded("one rank has no collectives to wait in");
  if (const Cause* cause = FindCause(f, IncidentKind::kCollectiveTimeout)) {
    return Excluded("the collective's timeout is a consequence of an earlier event",
                    {cause->evidence});
  }
  if (const Cause* primary = f.Primary())
    return Excluded("the run was ended by another event", {primary->evidence});
  if (f.ended && f.train_end)
    return Excluded("training says that it finished", {f.train_end_evidence});
  if (f.ended && f.exit_known && f.exit_code == 0)
    return Excluded("the command exited with 0", {f.exit_evidence});
  if (f.running && f.timed && f.progress >= kProgressForSilence &&
      f.silence_seconds < HangTimeout(f)) {
    return Excluded("the last training record is " + Number(f.silence_seconds) + " s old, below " +
                        Number(HangTimeout(f)) + " s",
                    {f.silence_evidence});
  }
  return NotDecidable(proto::STORE_NCCL);
}

}  // namespace rankscope::families
