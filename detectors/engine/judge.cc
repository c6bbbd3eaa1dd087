// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/engine/judge.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "detectors/engine/data_quality.h"
#include "detectors/families/family_names.h"
#include "detectors/features/build.h"
#include "detectors/model/subs.h"
#include "detectors/recording/utf8_message.h"
#include "detectors/verdict/verdict_builder.h"

namespace rankscope::engine {
namespace {

using families::FamilyRow;
using families::Finding;
using features::JobFeatures;

// Earlier attempts listed in a verdict; a restart storm is a finding of its own, not a longer list.
constexpr size_t kMaxAttempts = 16;

// Of the changes of a verdict the newest are listed.
constexpr size_t kMaxHistory = 64;

// Ticks come each second. After a longer hole nobody observed, and the verdict is not known to have
// stood.
constexpr double kMaxTickSeconds = 5;

// Grandchildren may hold the streams open for ever, and a file system that hangs keeps what was
// written to it: past this the verdict is final without them.
constexpr Duration kStreamsGrace = Seconds(30);

bool SameAnswer(const proto::Verdict& a, const proto::Verdict& b) {
  return a.code() == b.code() && a.sub() == b.sub() && a.state() == b.state() &&
         a.confidence() == b.confidence() && a.attempt().ordinal() == b.attempt().ordinal() &&
         std::equal(a.ranks().begin(), a.ranks().end(), b.ranks().begin(), b.ranks().end());
}

// That nothing moves, or too slowly, says nothing of a job that is suspended or that nobody
// observes, nor of one of which that has just been so: numbers are of the newest one or two
// minutes. What stood before stands, and an event tells more.
bool OfPause(const Finding& finding, const JobFeatures& f) {
  constexpr double kHangSeconds = 60, kSlowSeconds = 120;
  if (!f.running || f.Primary() != nullptr || finding.of_gap) return false;
  const double ago = std::fmin(f.suspension.seconds_ago, f.unheard_seconds_ago);  // NaN = never
  return (finding.symptom == "hang" && ago < kHangSeconds) ||
         (finding.symptom == "slow" && ago < kSlowSeconds);
}

// That a run is slow is said of a time, and its end adds nothing to it: what was not raised while
// it ran had not been so for its hold.
bool IsSlowAtTheEnd(const Finding& finding, const JobFeatures& f) {
  return !f.running && f.timed && f.Primary() == nullptr && finding.symptom == "slow";
}

// Nothing of the run has moved for so long: no training record, no collective, no kernel. Infinite
// where none of these was ever seen.
double StillSeconds(const JobFeatures& f) {
  double seconds = std::numeric_limits<double>::infinity();
  if (f.progress > 0) seconds = f.silence_seconds;
  if (f.collectives.entered > 0) seconds = std::min(seconds, f.collectives.seconds_since_advance);
  if (f.launches.launches > 0) seconds = std::min(seconds, f.launches.seconds_since_launch);
  return seconds;
}

// What was raised before nobody listened stands until as much was observed since as raising it
// took: the sources come back one after the other, and the numbers of a minute need a minute. A
// hang that is over shows that at once.
bool StandsOverGap(std::string_view symptom, const Finding& next, const JobFeatures& f) {
  constexpr double kHangSeconds = 90, kSlowSeconds = 150;
  const double ago = f.unheard_seconds_ago;
  if (!f.running || f.Primary() != nullptr || !std::isfinite(ago)) return false;
  if (next.symptom == "hang") return false;
  if (symptom == "slow") return ago < kSlowSeconds && !next.of_gap;
  if (symptom != "hang" || ago >= kHangSeconds) return false;
  return StillSeconds(f) >= ago;
}

// The same hang without the culprit that was known before the gap: who tells of it is not back yet.
bool IsFainter(const proto::Verdict& standing, const Finding& next, const JobFeatures& f) {
  constexpr double kBackSeconds = 90;
  return f.running && f.Primary() == nullptr && f.unheard_seconds_ago < kBackSeconds &&
         next.symptom == "hang" && next.ranks.empty() && standing.ranks_size() > 0;
}

void AddDisposition(const JobFeatures& f, int64_t wall_offset_ns, proto::Verdict& verdict) {
  const families::Disposition how = families::DispositionOf(f);
  if (how.kind == families::DispositionKind::kNone) return;
  proto::Disposition* const out = verdict.mutable_disposition();
  out->set_kind(std::string(families::DispositionName(how.kind)));
  out->set_by(how.by);
  if (how.uid >= 0) out->set_uid(how.uid);
  out->set_reason(how.reason);
  if (how.at.ns != 0 && wall_offset_ns != 0) out->set_at_ns(how.at.ns + wall_offset_ns);
}

}  // namespace

Judge::Choice Judge::Choose(const JobFeatures& f, std::string_view standing) {
  Choice choice;
  for (const bool incident : {true, false}) {
    for (const FamilyRow& row : families::Families()) {
      if (row.incident != incident) continue;
      Finding finding = row.evaluate(f);
      if (!finding.matched) continue;
      const bool stands = row.code == standing;
      if (!stands && (OfPause(finding, f) || (!standing.empty() && IsSlowAtTheEnd(finding, f))))
        continue;
      choice.family = &row;
      choice.finding = std::move(finding);
      return choice;
    }
  }
  return choice;  // not reached: U0 always matches
}

void Judge::CountTime(const JobFeatures& f, Timestamp now) {
  const double seconds = judged_.ns == 0 ? 0 : (now - judged_).seconds();
  const bool observed = f.running && seconds <= kMaxTickSeconds;
  judged_ = now;
  double still = StillSeconds(f);
  // What was never seen to move may be moving now, unless somebody is about to end it.
  const bool ending = std::any_of(f.causes.begin(), f.causes.end(), [](const auto& cause) {
    return cause.event == features::CauseClass::kStopRequest;
  });
  if (!std::isfinite(still) && !ending) still = 0;
  if (has_judged() && verdict_.state() == proto::LIVE && !concluded_)
    ailments_.Stood(verdict_, observed ? seconds : 0, still);
}

const Ailment* Judge::Conclude(const Choice& end, const JobFeatures& f) {
  const bool replaced = end.family->code != raised_ || !f.running;
  if (replaced && !concluded_ && verdict_.state() == proto::LIVE)
    ailments_.Keep(verdict_, assertions_);
  const families::EndKind kind = families::KindOfEnd(end.family->code, end.finding, f);
  // While it runs, only who is being ended is concluded, or ends itself one rank after the other: a
  // family that falls has its own clearing.
  const bool ends = kind == families::EndKind::kForced || kind == families::EndKind::kUnclear;
  if (f.running && !ends) return nullptr;
  const Ailment* const ailment = ailments_.Conclude(kind);
  // The same family at the end has the newer evidence.
  return ailment != nullptr && ailment->code == end.family->code ? nullptr : ailment;
}

void Judge::NoteChange(const proto::Verdict& next, int64_t wall_ns) {
  if (!has_judged() || next.code() == verdict_.code()) return;
  if (history_.size() == kMaxHistory) history_.erase(history_.begin());
  proto::Change& change = history_.emplace_back();
  change.set_at_ns(wall_ns);
  change.set_from(verdict_.code());
  change.set_to(next.code());
  if (next.implies_size() > 0) change.set_why(next.implies(0).text());
}

// A finding is raised when it has matched for its hold, and falls when it has been absent for its
// clear; an end decides at once, since nothing more can come.
Judge::Choice Judge::Hold(Choice choice, const JobFeatures& f, Timestamp now) {
  const std::string code(choice.family->code);
  if (raised_.empty() || f.ended || code == raised_) {
    if (code != raised_) {
      raised_since_ = now;
      raised_pace_ = std::numeric_limits<double>::quiet_NaN();
    }
    raised_ = code;
    raised_seen_ = now;
    // The measures are those of a minute, and agree for a while after the steps have recovered.
    raised_pace_ = std::fmax(raised_pace_, f.newest_pace_seconds);
    candidate_.clear();
    if (!f.ended && code == verdict_.code() && IsFainter(verdict_, choice.finding, f))
      choice.family = nullptr;
    return choice;
  }
  if (StandsOverGap(verdict_.triage().symptom(), choice.finding, f)) {
    candidate_.clear();
    choice.family = nullptr;
    return choice;
  }
  if (candidate_ != code) {
    candidate_ = code;
    candidate_since_ = now;
  }
  Duration clear{};
  for (const FamilyRow& row : families::Families()) {
    if (row.code == raised_) clear = row.clear;
  }
  // The trend of a young curve comes and goes with a few records; a run that falls silent does not
  // have to wait for that.
  constexpr Duration kTrend = Seconds(30);
  if (raised_ == "G1" && choice.finding.sub == subs::kTooEarly) clear = std::max(clear, kTrend);
  // Who is late by a little comes near the limit and goes: that is over where the steps have become
  // quicker, or something else explains them.
  constexpr double kQuicker = 0.95;
  constexpr Duration kOver = Seconds(60);
  const bool quicker = f.newest_pace_seconds < kQuicker * raised_pace_;
  if (quicker || choice.finding.symptom == "slow") clear = std::min(clear, kOver);
  // An event or a hang is no noise, and a fault waits for its own hold: only what is less than what
  // stands waits until that has been absent for long.
  const bool event = choice.family->incident && f.Primary() != nullptr;
  const bool fault = raised_ == "G1" && code != "U0";
  const bool hangs = choice.finding.symptom == "hang";
  const bool cleared = event || fault || hangs || now - raised_seen_ >= clear;
  if (now - candidate_since_ >= choice.family->hold && cleared) {
    raised_ = code;
    raised_since_ = raised_seen_ = now;
    raised_pace_ = f.newest_pace_seconds;
    candidate_.clear();
    return choice;
  }
  choice.family = nullptr;  // what stands, stands
  return choice;
}

proto::State Judge::NextState(const windows::JobWindow& job, const JobFeatures& f,
                              const JudgeContext& context, Timestamp now) const {
  if (!f.ended) return proto::LIVE;
  // What is told late amends; only another attempt begins anew.
  if (is_final() && verdict_.attempt().ordinal() == job.attempt().ordinal) return proto::FINAL;
  const Config& config = *context.config;
  const windows::JobEnd& end = job.end();
  if (end.streams_closed) {
    // Without the wrapper's word the end is that of the last process.
    const Timestamp ended = end.ended ? end.t : job.last_process_exit();
    if (context.awaits_output && now - ended < kStreamsGrace) return proto::PROVISIONAL;
    const Timestamp drained = std::max({ended, end.streams_closed_t, context.output_read});
    const bool waits = context.scheduled && context.scheduler_told.ns == 0;
    if (waits && now - drained < config.final_after_scheduler) return proto::PROVISIONAL;
    const Timestamp told = std::min(context.scheduler_told, drained + config.final_after_scheduler);
    if (now - std::max(drained, told) >= config.final_after_end) return proto::FINAL;
  } else if (now - end.t >= kStreamsGrace) {
    return proto::FINAL;
  }
  return proto::PROVISIONAL;
}

void Judge::SummarizePrevious(windows::JobWindow& job, const JudgeContext& context) {
  const JobFeatures f = features::BuildPreviousFeatures(job, context.stores, job.previous_end());
  const Choice choice = Choose(f, raised_);
  const Ailment* const ailment = Conclude(choice, f);
  proto::AttemptSummary summary;
  proto::Attempt* attempt = summary.mutable_attempt();
  attempt->set_ordinal(job.previous_attempt().ordinal);
  attempt->set_elastic_restart(job.previous_attempt().elastic_restart);
  attempt->set_slurm_restart(job.previous_attempt().slurm_restart);
  proto::Verdict sick;
  if (ailment != nullptr && sick.ParseFromString(ailment->document)) {
    summary.set_code(sick.code());
    summary.set_sub(sick.sub());
    summary.set_confidence(sick.confidence());
  } else {
    summary.set_code(std::string(choice.family->code));
    summary.set_sub(std::string(choice.finding.sub));
    summary.set_confidence(SurenessOf(*choice.family, choice.finding, f).confidence);
  }
  summary.set_family(std::string(families::FindFamily(summary.code()).family));
  summary.set_end_ns(context.wall_offset_ns == 0 ? 0
                                                 : job.previous_end().ns + context.wall_offset_ns);
  constexpr double kMostSteps = 1e15;  // a number that text printed may be anything
  summary.set_last_step(static_cast<int64_t>(std::clamp(f.steps, 0.0, kMostSteps)));
  if (attempts_.size() == kMaxAttempts) attempts_.erase(attempts_.begin());
  attempts_.push_back(std::move(summary));
  job.TakeEndedAttempt();
  raised_.clear();
  candidate_.clear();
  ailments_.Clear();
  concluded_ = false;
}

bool Judge::Evaluate(windows::JobWindow& job, const JudgeContext& context, Timestamp now) {
  while (job.attempt_ended()) SummarizePrevious(job, context);
  JobFeatures f = features::BuildFeatures(job, context.stores, now);
  f.hang_floor_seconds = context.config->hang_floor.seconds();
  f.rendezvous_suspect_seconds = context.config->rendezvous_suspect.seconds();
  f.rendezvous_fire_seconds = context.config->rendezvous_fire.seconds();
  CountTime(f, now);
  const proto::State state = NextState(job, f, context, now);
  Choice choice = Choose(f, raised_);
  const Ailment* const ailment = Conclude(choice, f);
  if (ailment == nullptr) {
    choice = Hold(std::move(choice), f, now);
    if (choice.family == nullptr) return false;
  } else {
    raised_ = ailment->code;
    raised_seen_ = now;
    candidate_.clear();
  }

  BuiltVerdict built = BuildVerdict(
      {&job, &f, choice.family, &choice.finding, context.node, context.wall_offset_ns});
  AddDisposition(f, context.wall_offset_ns, built.document);
  if (ailment != nullptr) {
    const double share = ailments_.seconds() > 0 ? ailment->seconds / ailments_.seconds() : 0;
    built = ConcludedVerdict(*ailment, built, share);
  }
  proto::Verdict& next = built.document;
  next.set_state(state);
  const bool unread = context.output_unread || (context.awaits_output && state == proto::FINAL);
  DescribeData({&job, context.sources, context.clock_uncertainty_s, unread}, next);
  for (const proto::AttemptSummary& attempt : attempts_) *next.add_attempts() = attempt;
  MakeUtf8(next);
  const bool changed = !SameAnswer(next, verdict_);
  const int64_t wall = context.wall_offset_ns == 0 ? 0 : now.ns + context.wall_offset_ns;
  const bool same_family = next.code() == verdict_.code();
  next.set_detected_ns(same_family && verdict_.detected_ns() != 0 ? verdict_.detected_ns() : wall);
  next.set_updated_ns(changed ? wall : verdict_.updated_ns());
  next.set_revision(verdict_.revision() + (changed ? 1 : 0));
  if (verdict_.state() == proto::FINAL && state == proto::FINAL) {
    next.set_amended_by(changed ? std::string(context.record) : verdict_.amended_by());
  }
  NoteChange(next, wall);
  for (const proto::Change& change : history_) *next.add_history() = change;
  if (!same_family) ++changes_;
  if (state == proto::FINAL && verdict_.state() != proto::FINAL) final_since_ = now;
  concluded_ = ailment != nullptr;
  verdict_ = std::move(next);
  assertions_ = std::move(built.assertions);
  return changed;
}

void Judge::BeforeSave() {
  verdict_bytes_ = verdict_.SerializeAsString();
  attempts_bytes_.clear();
  for (const proto::AttemptSummary& attempt : attempts_)
    attempts_bytes_.push_back(attempt.SerializeAsString());
  history_bytes_.clear();
  for (const proto::Change& change : history_) history_bytes_.push_back(change.SerializeAsString());
}

bool Judge::AfterRestore() {
  attempts_.clear();
  for (const std::string& bytes : attempts_bytes_) {
    if (!attempts_.emplace_back().ParseFromString(bytes)) return false;
  }
  history_.clear();
  for (const std::string& bytes : history_bytes_) {
    if (!history_.emplace_back().ParseFromString(bytes)) return false;
  }
  return verdict_.ParseFromString(verdict_bytes_);
}

}  // namespace rankscope::engine
