// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/families/family.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "detectors/families/curve.h"
#include "detectors/families/standstill.h"
#include "detectors/features/cause_relations.h"
#include "detectors/features/exit_of_another.h"

namespace rankscope::families {

using features::Cause;
using features::JobFeatures;

namespace {

// A failure that the command's own exit status denies, where the kernel has not seen the rank
// itself end with an error.
void DoubtByStatus(const JobFeatures& f, Finding& finding) {
  if (!f.exit_known || f.exit_code != 0) return;
  const bool seen = std::any_of(f.causes.begin(), f.causes.end(), [](const Cause& cause) {
    return cause.role == Cause::Role::kSupport && cause.candidate->store == proto::STORE_PROCESS &&
           cause.incident().kind == logs::IncidentKind::kNonZeroExit;
  });
  const bool doubtful = features::ExitIsDoubtful(f);
  if (doubtful && seen) return;
  finding.contradiction *= 0.5;
  finding.contradicted_by = "exit";
  if (doubtful) Show(f.exit_evidence, finding);
}

}  // namespace

Finding FromPrimary(const JobFeatures& f) {
  Finding finding;
  const Cause* primary = f.Primary();
  if (primary == nullptr) return finding;
  finding.matched = true;
  finding.ranks = primary->candidate->ranks;
  finding.exception_type = primary->incident().exception_type;
  finding.signal = primary->incident().signal;
  finding.onset = primary->incident().t;
  finding.shows.push_back(primary->evidence);
  finding.root.push_back(primary->evidence);
  // A second emitter: another store, or another program in the same text (the launcher, the
  // scheduler's daemon).
  bool agreed = false;
  bool kernel = primary->candidate->store == proto::STORE_PROCESS ||
                primary->candidate->store == proto::STORE_KERNEL ||
                primary->candidate->store == proto::STORE_SCHEDULER;
  const bool death = primary->incident().kind == logs::IncidentKind::kSignalDeath;
  const bool survivors = FindCause(f, logs::IncidentKind::kPeerLost) != nullptr;
  size_t shown = 0;
  for (const Cause& cause : f.causes) {
    if (cause.role == Cause::Role::kSupport) {
      const bool other_emitter = cause.candidate->store != primary->candidate->store ||
                                 cause.incident().shape != primary->incident().shape;
      agreed = agreed || other_emitter;
      kernel = kernel || cause.candidate->store == proto::STORE_PROCESS ||
               cause.candidate->store == proto::STORE_KERNEL;
      // An exception whose speaker is not known belongs to whoever exited: to all, or, where
      // survivors lost their peers, to the first ones, as many as said it.
      const bool room = death || !survivors ||
                        static_cast<int64_t>(finding.ranks.size()) < primary->candidate->times;
      // A launcher's list of the failed says nothing of their order.
      const bool ordered = cause.candidate->store != proto::STORE_LOG || death || !survivors;
      if (primary->incident().rank < 0 && ordered && room) {
        finding.ranks.insert(finding.ranks.end(), cause.candidate->ranks.begin(),
                             cause.candidate->ranks.end());
      }
    }
    const bool support = cause.role == Cause::Role::kSupport;
    const bool consequence = cause.role == Cause::Role::kCascade ||
                             cause.role == Cause::Role::kInitiating ||
                             cause.role == Cause::Role::kWrapper;
    constexpr size_t kShown = 8;
    const features::Evidence* const told = f.At(primary->evidence);
    if (told != nullptr && features::IsToldWith(cause, *primary, *told)) continue;
    if (&cause != primary && (support || consequence) && shown < kShown) {
      finding.shows.push_back(cause.evidence);
      ++shown;
    }
  }
  // A runtime's warning may be the first word of a failure that Python then names.
  for (const Cause& cause : f.causes) {
    if (!finding.exception_type.empty()) break;
    const bool same =
        cause.incident().kind == primary->incident().kind && cause.role != Cause::Role::kRecovered;
    if (same) finding.exception_type = cause.incident().exception_type;
  }
  std::sort(finding.ranks.begin(), finding.ranks.end());
  finding.ranks.erase(std::unique(finding.ranks.begin(), finding.ranks.end()), finding.ranks.end());
  if (f.exit_known && f.exit_code != 0 && f.exit_evidence != features::kNoEvidence) {
    finding.shows.push_back(f.exit_evidence);
    // The command's own exit status is a second voice, unless it is all that the first one rests
    // on.
    agreed = agreed || primary->incident().shape != "exit_code";
  }
  finding.tier = agreed ? proto::TIER_C : proto::TIER_S;
  // 128 + N from a shell is its word, not a wait status.
  if (kernel && death && primary->incident().shape != "exit_code") finding.tier = proto::TIER_P;
  // The kernel's own record of its kill.
  if (primary->incident().kind == logs::IncidentKind::kHostOom &&
      primary->candidate->store == proto::STORE_KERNEL) {
    finding.tier = proto::TIER_P;
  }
  DoubtByStatus(f, finding);
  return finding;
}

void HoldToItsWord(const JobFeatures& f, Finding& finding) {
  const Cause* const primary = f.Primary();
  const bool word = primary != nullptr && primary->candidate->store == proto::STORE_LOG;
  if (word && (finding.tier == proto::TIER_C || finding.tier == proto::TIER_P))
    finding.tier = proto::TIER_S;
}

RuledOut NoSuchText(const JobFeatures& f, std::string_view what) {
  if (f.lines == 0) return NotDecidable(proto::STORE_LOG, Reason::kNoText);
  return Excluded(Reason::kNoSuchText, {f.lines_evidence},
                  {{FieldId::kWhat, std::string(what)}, {FieldId::kLines, f.lines}});
}

RuledOut NotDecidable(proto::Store needs, Reason by, FieldValues values) {
  RuledOut out;
  out.state = proto::FamilyState::NOT_DECIDABLE;
  out.needs = needs;
  out.by = by;
  out.values = std::move(values);
  return out;
}

RuledOut Exited(const JobFeatures& f, std::vector<features::EvidenceRef> evidence) {
  // A step that came later may have given the command another code.
  const bool differs = f.command_exit_known && f.command_exit_code != f.exit_code;
  return Excluded(Reason::kExited, std::move(evidence),
                  {{FieldId::kExitCode, f.exit_code}, {FieldId::kWhat, differs ? "training" : ""}});
}

RuledOut Excluded(Reason by, std::vector<features::EvidenceRef> evidence, FieldValues values) {
  RuledOut out;
  out.state = proto::FamilyState::RULED_OUT;
  out.by = by;
  out.values = std::move(values);
  std::erase(evidence, features::kNoEvidence);
  out.evidence = std::move(evidence);
  return out;
}

const Cause* FindCause(const JobFeatures& f, logs::IncidentKind kind) {
  for (const Cause& cause : f.causes) {
    if (cause.incident().kind == kind) return &cause;
  }
  return nullptr;
}

double EvaluationBudget(const JobFeatures& f) {
  constexpr double kUnseen = 600, kAfterResult = 150;
  const features::Evidence* const result = f.At(f.leave.evaluation);
  // Its result has been printed: what may follow is the evaluation of another set.
  const bool over = result != nullptr && f.timed &&
                    (f.now - result->begin).seconds() <= f.phase_seconds + 1 && !f.train_end;
  return std::max(over ? kAfterResult : kUnseen, 3 * f.longest_eval_seconds);
}

double HangTimeout(const JobFeatures& f) {
  double timeout = f.hang_floor_seconds;
  if (std::isfinite(f.step_seconds)) timeout = std::max(timeout, 10 * f.step_seconds);
  // Records of many steps come as far apart as these take.
  if (std::isfinite(f.p99_record_seconds)) timeout = std::max(timeout, 3 * f.p99_record_seconds);
  constexpr double kLongPhase = 600;  // saving and evaluating may take this long unseen
  if (f.phase == proto::PHASE_SAVE)
    timeout = std::max({timeout, kLongPhase, 3 * f.longest_save_seconds});
  if (f.phase == proto::PHASE_EVAL) timeout = std::max(timeout, EvaluationBudget(f));
  return timeout;
}

}  // namespace rankscope::families
