// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// E3, G1 and U0: what is left when nothing ended the run by an event. Health needs positive
// evidence; a curve that cannot be read is unverifiable, never healthy.
#include "detectors/families/training_end.h"

#include <cmath>

#include "detectors/features/exit_of_another.h"

namespace rankscope::families {

using features::JobFeatures;
using logs::IncidentKind;

namespace {

// What is only a consequence, as its last words and behind all records: that another process ended
// first, is lost or does not come. It is no cause, but the run did not go on after it.
bool SaysThatOthersAreLost(const JobFeatures& f, const features::Cause& cause) {
  const logs::Incident& incident = cause.incident();
  const bool lost =
      incident.kind == IncidentKind::kCollectiveTimeout ||
      incident.kind == IncidentKind::kPeerLost || incident.kind == IncidentKind::kRendezvous ||
      (incident.kind == IncidentKind::kException && !incident.exception_type.empty()) ||
      (incident.kind == IncidentKind::kNonZeroExit && incident.exit_code != 0);
  const bool follows = cause.role == features::Cause::Role::kCascade ||
                       cause.role == features::Cause::Role::kWrapper;
  // A warning is followed by another try.
  const bool told = incident.shape == "traceback" || incident.shape == "nccl_watchdog_follow" ||
                    incident.kind == IncidentKind::kNonZeroExit;
  return lost && follows && told && incident.frame != logs::FrameKind::kTeardown && !f.running &&
         !f.exit_known && !f.train_end && cause.candidate->store == proto::STORE_LOG &&
         cause.candidate->progress_before >= f.progress;
}

}  // namespace

bool EndedWell(const JobFeatures& f) {
  if (f.Primary() != nullptr || f.wrapper_lost) return false;
  // What happened while nobody listened is not known to be good.
  if (f.end_unseen && !f.train_end) return false;
  // Nobody says how it exited, and its own last word is an error.
  if (!f.exit_known && f.leave.failure != features::kNoEvidence && !f.train_end) return false;
  // A launcher that reports a failed child denies a good end, even when nobody says why.
  for (const features::Cause& cause : f.causes) {
    if (SaysThatOthersAreLost(f, cause)) return false;
    const bool report = cause.incident().kind == logs::IncidentKind::kNonZeroExit ||
                        cause.incident().kind == logs::IncidentKind::kSignalDeath;
    if (!report || cause.role != features::Cause::Role::kWrapper) continue;
    // The command's own status says that this was survived, unless it is another's.
    const bool all = f.steps_known && f.total_steps > 0 && f.steps >= f.total_steps;
    const bool last = cause.candidate->store == proto::STORE_LOG && !f.train_end && !all &&
                      cause.candidate->progress_before >= f.progress;
    if (!(f.exit_known && f.exit_code == 0) || (features::ExitIsDoubtful(f) && last)) return false;
  }
  return f.exit_known ? f.exit_code == 0 : true;
}

const features::Cause* ReportedFailure(const JobFeatures& f) {
  const features::Cause* last = nullptr;
  for (const features::Cause& cause : f.causes) {
    const logs::Incident& incident = cause.incident();
    const bool failed = incident.kind == IncidentKind::kNonZeroExit
                            ? incident.exit_code != 0
                            : incident.kind == IncidentKind::kSignalDeath;
    if (!failed || cause.role != features::Cause::Role::kWrapper) continue;
    if (f.train_end || cause.candidate->progress_before < f.progress) continue;
    if (last == nullptr || cause.candidate->order > last->candidate->order) last = &cause;
  }
  return last;
}

bool ShowsTraining(const JobFeatures& f) {
  // A document shows three or four lines of what a program would print.
  constexpr int64_t kRecords = 5;
  constexpr int64_t kChanges = 4;
  if (f.train_end || f.recognised || f.progress >= kRecords || f.metric.changes >= kChanges)
    return true;
  return f.leave.save != features::kNoEvidence || f.leave.evaluation != features::kNoEvidence;
}

bool ShowsWork(const JobFeatures& f) {
  return ShowsTraining(f) || f.progress > 0 || f.train_begin || f.launches.launches > 0 ||
         f.collectives.entered > 0 || f.gpu.work_evidence != features::kNoEvidence ||
         f.world_size > 0 || f.starts_training || !f.framework.empty() || f.in_rendezvous ||
         f.rendezvous_begin_evidence != features::kNoEvidence ||
         f.storage.checkpoint_bytes_read > 0;
}

Question WhetherItLearned(const JobFeatures& f) {
  if (f.loss.points == 0 && f.metric.changes > 0) return Question::kOwnWords;
  return f.loss.points > 0 && std::isfinite(f.loss.end) ? Question::kDidNotFall
                                                        : Question::kCorrectness;
}

}  // namespace rankscope::families
