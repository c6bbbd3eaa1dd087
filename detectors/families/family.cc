// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/families/family.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace rankscope::families {

using features::Cause;
using features::JobFeatures;

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
  // A failure that the command's own exit status denies.
  if (f.exit_known && f.exit_code == 0) finding.contradiction *= 0.5;
  return finding;
}

void HoldToItsWord(const JobFeatures& f, Finding& finding) {
  const Cause* const primary = f.Primary();
  const bool word = primary != nullptr && primary->candidate->store == proto::STORE_LOG;
  if (word && (finding.tier == proto::TIER_C || finding.tier == proto::TIER_P))
    finding.tier = proto::TIER_S;
}

RuledOut NoSuchText(const JobFeatures& f, std::string_view what) {
  if (f.lines == 0) return NotDecidable(proto::STORE_LOG, "no text was seen");
  RuledOut out;
  out.state = proto::FamilyState::RULED_OUT;
  out.by = std::string(what) + " in " + Counted(static_cast<double>(f.lines), "line");
  if (f.lines_evidence != features::kNoEvidence) out.evidence.push_back(f.lines_evidence);
  return out;
}

RuledOut NotDecidable(proto::Store needs, std::string_view by) {
  RuledOut out;
  out.state = proto::FamilyState::NOT_DECIDABLE;
  out.needs = needs;
  out.by = by;
  return out;
}

RuledOut Excluded(std::string by, std::vector<features::EvidenceRef> evidence) {
  RuledOut out;
  out.state = proto::FamilyState::RULED_OUT;
  out.by = std::move(by);
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

double HangTimeout(const JobFeatures& f) {
  double timeout = f.hang_floor_seconds;
  if (std::isfinite(f.usual_record_seconds))
    timeout = std::max(timeout, 10 * f.usual_record_seconds);
  if (std::isfinite(f.step_seconds)) timeout = std::max(timeout, 10 * f.step_seconds);
  if (std::isfinite(f.p99_record_seconds)) timeout = std::max(timeout, 3 * f.p99_record_seconds);
  constexpr double kLongPhase = 600;  // saving and evaluating may take this long unseen
  if (f.phase == proto::PHASE_SAVE)
    timeout = std::max({timeout, kLongPhase, 3 * f.longest_save_seconds});
  if (f.phase == proto::PHASE_EVAL)
    timeout = std::max({timeout, kLongPhase, 3 * f.longest_eval_seconds});
  return timeout;
}

std::string Number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

std::string Percent(double share) {
  return Number(std::round(100 * share)) + " %";
}

std::string Counted(double count, std::string_view noun) {
  return Number(count) + " " + std::string(noun) + (count == 1 ? "" : "s");
}

std::string Lasting(double seconds) {
  constexpr int64_t kMinute = 60, kHour = 3600, kDay = 86400;
  constexpr double kLongest = 1e12;  // a stranger's number
  if (!(seconds >= 0)) return Number(seconds) + " s";
  const auto whole = static_cast<int64_t>(std::llround(std::min(seconds, kLongest)));
  const auto two = [](int64_t large, std::string_view name, int64_t small, std::string_view unit) {
    std::string text = std::to_string(large) + std::string(name);
    return small == 0 ? text : text + " " + std::to_string(small) + std::string(unit);
  };
  if (whole < 2 * kMinute) return std::to_string(whole) + " s";
  if (whole < 2 * kHour) return std::to_string((whole + kMinute / 2) / kMinute) + " min";
  if (whole < 2 * kDay) {
    const int64_t minutes = (whole + kMinute / 2) / kMinute;
    return two(minutes / 60, " h", minutes % 60, " min");
  }
  const int64_t hours = (whole + kHour / 2) / kHour;
  return two(hours / 24, " d", hours % 24, " h");
}

}  // namespace rankscope::families
