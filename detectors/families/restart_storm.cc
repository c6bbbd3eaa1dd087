// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// X19: attempts that follow each other without getting anywhere. Attempts that were here are
// counted here; of those that ran elsewhere the scheduler's record tells, by its rows or by a count
// alone.
#include <cmath>

#include "detectors/families/curve.h"
#include "detectors/families/rows.h"
#include "detectors/model/subs.h"

namespace rankscope::families::restart_storm {

using features::Cause;
using features::JobFeatures;
using logs::IncidentKind;

namespace {

constexpr int64_t kStorm = 5;  // ends within half an hour

constexpr int64_t kNoAdvance = 3;  // attempts in a row that came no further

// An event that says nothing of why attempts keep ending.
bool ExplainsNothing(const logs::Incident& incident) {
  return (incident.kind == IncidentKind::kSchedulerEnd &&
          (incident.sub == subs::kRequeue || incident.sub == subs::kPreemption ||
           incident.sub == subs::kCancelled)) ||
         incident.kind == IncidentKind::kTerminated ||
         incident.kind == IncidentKind::kNonZeroExit || incident.kind == IncidentKind::kPeerLost ||
         (incident.kind == IncidentKind::kSignalDeath &&
          (incident.signal == 15 || incident.signal == 2));
}

// It trained each time, to the same exception, and all that it had reached was lost: as often as
// that within half an hour, what ails the job is that it is started again.
bool RunsIntoTheSame(const JobFeatures& f, const logs::Incident& incident) {
  return incident.kind == IncidentKind::kException &&
         incident.frame != logs::FrameKind::kCheckpointLoad && f.progress > 0 &&
         f.restarts.recent >= kStorm && f.restarts.without_advance >= kStorm;
}

// Of the runs that the record has, as many ended within half an hour.
bool StormOfRecord(const JobFeatures& f) {
  return f.scheduler.runs_told && f.scheduler.runs_in_half_hour >= kStorm;
}

// All that is known of the runs before is how many they were. A run that ends as soon as each of
// them must have, had they filled half an hour together, is one more of them; but not one that the
// scheduler took its nodes from, which says nothing of the others.
bool StormByCount(const JobFeatures& f) {
  constexpr double kHalfHour = 1800;
  const features::SchedulerFeatures& s = f.scheduler;
  if (!f.ended || s.runs_told || s.restarts < kStorm) return false;
  const double seconds =
      std::isfinite(s.judged_seconds) ? s.judged_seconds : (f.now - f.begin).seconds();
  if (seconds * static_cast<double>(s.restarts) > kHalfHour) return false;
  const Cause* primary = f.Primary();
  return primary == nullptr || primary->incident().kind != IncidentKind::kSchedulerEnd;
}

// What is left of the run before, on other nodes, says that this one has come further.
bool WentOn(const JobFeatures& f) {
  const features::ParentFeatures& before = f.resume.parent;
  return before.kind == "restart" && before.known && f.steps_known && f.progress > 0 &&
         std::isfinite(before.last_step) && f.steps > before.last_step;
}

}  // namespace

Finding Evaluate(const JobFeatures& f) {
  const features::RestartFeatures& restarts = f.restarts;
  const features::SchedulerFeatures& s = f.scheduler;
  const bool stuck = restarts.without_advance >= kNoAdvance;
  const bool recorded = StormOfRecord(f);
  // Attempts that come further each time cost a start each, and get there.
  const bool here = stuck || (restarts.recent >= kStorm && restarts.advanced < kStorm);
  if (!here && !recorded && !StormByCount(f)) return {};
  const Cause* const primary = f.Primary();
  const bool same = primary != nullptr && RunsIntoTheSame(f, primary->incident());
  if (primary != nullptr && !same && !ExplainsNothing(primary->incident())) return {};
  // Whatever it took, it got there.
  if (f.train_end || (f.exit_known && f.exit_code == 0)) return {};
  // What goes on, or ended without a word, has not failed.
  if (primary == nullptr && restarts.without_advance == 0 && (here || !f.ended)) return {};
  if (s.rerun == "completed") return {};
  if (!here && WentOn(f)) return {};
  Finding finding = FromPrimary(f);
  finding.matched = true;
  finding.sub = stuck ? "no_advance" : "storm";
  if (same) {
    finding.cap = cap::kInferred;  // that each of them was in vain is inferred
  } else {
    finding.tier = recorded ? proto::TIER_P : here ? proto::TIER_S : proto::TIER_W;
  }
  if (recorded && !here) finding.cap = cap::kInferred;  // that they were in vain is inferred
  finding.domain = proto::DOMAIN_UNKNOWN;
  finding.component = "job";
  finding.symptom = "all_ranks_crashed";
  if (!same) finding.root.clear();
  if (here) finding.root.push_back(restarts.evidence);
  if (!here && !recorded) finding.root.push_back(s.restarts_evidence);
  if (here) {
    finding.shows.insert(finding.shows.begin(), restarts.evidence);
  } else {
    finding.shows.insert(finding.shows.begin(), finding.root.begin(), finding.root.end());
  }
  if (recorded) {
    for (const features::RecordedRun& run : s.runs) Show(run.evidence, finding);
    if (!here) finding.root.push_back(s.runs.back().evidence);
  }
  Show(s.suspect.evidence, finding);
  Show(f.last_progress_evidence, finding);
  Show(f.leave.save, finding);
  const int64_t count = here ? restarts.count : recorded ? s.runs_in_half_hour : s.restarts;
  finding.values = {{FieldId::kRestarts, count}};
  if (!here) finding.advice = recorded ? "recorded" : "by_count";
  if (!same) finding.open.push_back(Question::kWhyExit);
  return finding;
}

RuledOut RuleOut(const JobFeatures& f) {
  const features::SchedulerFeatures& s = f.scheduler;
  if (const Cause* primary = f.Primary();
      f.restarts.without_advance > 0 && primary != nullptr && !ExplainsNothing(primary->incident()))
    return Excluded(Reason::kOtherEvent, {primary->evidence}, {{FieldId::kWhat, "running"}});
  if (f.restarts.count > 0) {
    return Excluded(Reason::kRestartsAdvance, {f.restarts.evidence},
                    {{FieldId::kRestarts, f.restarts.count},
                     {FieldId::kWithoutAdvance, f.restarts.without_advance}});
  }
  if (s.runs_told) {
    return Excluded(Reason::kFewRuns, {s.runs.back().evidence},
                    {{FieldId::kRuns, s.runs_in_half_hour}});
  }
  if (s.restarts > 0 && s.restarts < kStorm) {
    return Excluded(Reason::kFewRestarts, {s.restarts_evidence},
                    {{FieldId::kRestarts, s.restarts}});
  }
  if (f.lines > 0) return NoSuchText(f, "restart");
  return NotDecidable(proto::STORE_SCHEDULER);
}

}  // namespace rankscope::families::restart_storm
