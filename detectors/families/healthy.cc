// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// G1: did real work and learned, on positive evidence.
#include <algorithm>
#include <cmath>
#include <set>

#include "detectors/families/curve.h"
#include "detectors/families/gpu_peers.h"
#include "detectors/families/rows.h"
#include "detectors/families/standstill.h"
#include "detectors/families/target.h"
#include "detectors/families/training_end.h"
#include "detectors/model/subs.h"

namespace rankscope::families::healthy {

using features::JobFeatures;

namespace {

constexpr double kHealthySteps = 50;

// Records of a known format, or so many of the generic form that they are no accident.
bool IsRead(const JobFeatures& f) {
  constexpr int64_t kGeneric = 20;
  return f.recognised || (f.generic && f.loss.points >= kGeneric);
}

// The curve of a run that goes on is looked at with each record, and looking often finds a trend by
// chance now and then: it must be one that does not come and go.
bool LearnsForGood(const JobFeatures& f) {
  constexpr double kForGood = 3;  // 1 in 400 of a two-sided test
  return Learned(f) && (!f.running || f.loss.trend_z < -kForGood);
}

// It learns, and takes half as long again for a step as it did at first.
bool BecameSlow(const JobFeatures& f) {
  constexpr double kSlowdown = 1.5;
  return std::isfinite(f.early_pace_seconds) && f.pace_seconds >= kSlowdown * f.early_pace_seconds;
}

// Nothing that trained was read, and the rank that prints may be on another node (Megatron-LM
// prints on its last rank): what went wrong with the curve there is not seen here.
bool SpeakerIsElsewhere(const JobFeatures& f) {
  if (f.world_size <= 1 || f.progress > 0) return false;
  std::set<int32_t> seen;
  const auto note = [&seen](int32_t rank) {
    if (rank >= 0) seen.insert(rank);
  };
  for (const features::RankLaunches& rank : f.launches.ranks) note(rank.rank);
  for (const features::RunGpu& gpu : f.gpu.gpus) {
    for (const int32_t rank : gpu.ranks) note(rank);
  }
  return !seen.empty() && static_cast<int32_t>(seen.size()) < f.world_size;
}

// So many records in which the loss did not fall: the model does not learn, or has nothing left to
// learn.
bool IsLongAndFlat(const JobFeatures& f) {
  constexpr int64_t kLong = 100;
  return f.recognised && f.loss.points >= kLong && !f.reward_objective && !Learned(f);
}

// It goes on, and so many records say neither that it learns nor that it does not: that it is too
// early is not true of it any more.
bool RunsForLong(const JobFeatures& f) {
  constexpr int64_t kLong = 200;
  return f.recognised && f.loss.points >= kLong && f.loss.trailing_nonfinite == 0 &&
         !SpeaksAgainstLearning(f);
}

// The rank that prints is on another node, and for many minutes all ranks here have entered
// collectives and every GPU here was at work: whoever waits for a rank elsewhere would not.
bool WorksUnseen(const JobFeatures& f) {
  constexpr double kMinutes = 600, kBusy = 0.5;
  if (!f.running || !f.timed || !SpeakerIsElsewhere(f) || f.suspension.now) return false;
  if ((f.now - f.begin).seconds() < kMinutes || f.collectives.entered <= 0 || !Advances(f))
    return false;
  const auto& gpus = f.gpu.gpus;
  return f.gpu.work_evidence != features::kNoEvidence &&
         std::all_of(gpus.begin(), gpus.end(),
                     [](const features::RunGpu& gpu) { return gpu.engine >= kBusy; });
}

// Its records were read from a file after they were written, or came in one piece: none has come
// after another yet, and nothing else shows that it goes on.
bool IsQuiet(const JobFeatures& f) {
  return f.timed && f.progress > 0 && std::isnan(f.usual_record_seconds) && !f.train_end &&
         !Advances(f);
}

}  // namespace

Finding Evaluate(const JobFeatures& f) {
  if (!EndedWell(f)) return {};
  const bool unseen = WorksUnseen(f);
  if (f.running && ((f.lines == 0 && !unseen) || Stalls(f) || IsQuiet(f))) return {};
  Finding finding;
  finding.matched = true;
  finding.symptom = "healthy";
  finding.component = "none";
  finding.domain = proto::DOMAIN_WORKLOAD;
  const bool completed = f.exit_known && f.exit_code == 0;
  // What came after the newest record may have been another curve.
  const bool seen_to_its_end = !f.text_unseen || f.train_end;
  const bool reward = f.recognised && RewardHolds(f);
  if (IsRead(f) && (LearnsForGood(f) || reward) && seen_to_its_end) {
    finding.sub = BecameSlow(f) || MissesTarget(f) ? subs::kSlow : "healthy";
    Show(f.target.evidence, finding);
    if (reward) {
      finding.advice = "reward";
      finding.values = {{FieldId::kRewardStart, f.reward.first},
                        {FieldId::kRewardEnd, f.reward.last}};
      Show(f.reward.first_evidence, finding);
      Show(f.reward.last_evidence, finding);
    }
    if (BecameSlow(f)) finding.shows.push_back(f.step_time_evidence);
    finding.tier = completed ? proto::TIER_C : proto::TIER_S;
    // Nobody says that it came to its end.
    if (!f.running && !completed && !f.train_end) finding.cap = cap::kLookalike;
    if (f.steps_known && f.steps < kHealthySteps)
      finding.cap = std::min(finding.cap, cap::kOneSource);
    ShowCurve(f, finding);
    Show(f.loss.lowest_evidence, finding);
    Show(f.steps_evidence, finding);
  } else {
    if (f.text_unseen && !completed && !f.train_end) return {};
    if (f.running && !unseen && !RunsForLong(f))
      return {};  // too early to say anything; U0 says so
    if (completed || unseen ? !ShowsWork(f) : !ShowsTraining(f)) return {};
    if (!completed && !f.train_end && SpeaksAgainstLearning(f)) return {};
    finding.sub = subs::kUnverifiable;
    finding.tier = completed || f.train_end || unseen ? proto::TIER_S : proto::TIER_W;
    if (SpeakerIsElsewhere(f)) finding.cap = cap::kLookalike;
    if (IsLongAndFlat(f) || unseen) finding.cap = cap::kEvenOdds;
    Show(f.lines_evidence, finding);
    Show(f.steps_evidence, finding);
    ShowCurve(f, finding);
    if (f.progress == 0) Show(f.metric.evidence, finding);
    Show(f.loss.highest_evidence, finding);
    finding.open.push_back(WhetherItLearned(f));
  }
  if (unseen) Show(f.collectives.advance_evidence, finding);
  CapByUnmeasuredTransport(f, finding);
  if (f.generic) finding.cap = std::min(finding.cap, cap::kLookalike);
  // One that was slow before we came runs as steadily as one that never was faster.
  if (f.running && f.beginning_unread) finding.cap = std::min(finding.cap, cap::kLookalike);
  Show(f.train_end_evidence, finding);
  Show(f.later_step_evidence, finding);
  Show(f.gpu.work_evidence, finding);
  Show(f.gpu.clean_evidence, finding);
  ShowLeave(f, finding);
  if (f.exit_known) {
    Show(f.exit_evidence, finding);
  } else if (!f.running) {
    finding.open.push_back(Question::kExitStatusUnknown);
  }
  finding.root = finding.shows;
  return finding;
}

RuledOut RuleOut(const JobFeatures& f) {
  if (const features::Cause* primary = f.Primary())
    return Excluded(Reason::kOtherEvent, {primary->evidence}, {{FieldId::kWhat, "success"}});
  if (f.exit_known && f.exit_code != 0) return Exited(f, {f.exit_evidence});
  if (const std::string_view sub = Divergence(f); !sub.empty())
    return Excluded(Reason::kCurveIsWrong, {f.loss.end_evidence});
  if (Stalls(f)) {
    RuledOut out = NotDecidable(
        proto::STORE_LOG, Reason::kStalls,
        {{FieldId::kSeconds, f.silence_seconds}, {FieldId::kWithin, f.usual_record_seconds}});
    out.evidence = {f.silence_evidence};
    return out;
  }
  if (f.running) return NotDecidable(proto::STORE_LOG, Reason::kTooEarly);
  if (!ShowsWork(f)) return NotDecidable(proto::STORE_LOG, Reason::kNoTrainingSeen);
  return NotDecidable(proto::STORE_LOG, Reason::kNoLearningSeen);
}

}  // namespace rankscope::families::healthy
