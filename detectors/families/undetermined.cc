// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// U0: abnormal, and no evidence that decides.
#include <algorithm>
#include <utility>

#include "detectors/families/curve.h"
#include "detectors/families/rows.h"
#include "detectors/families/sender.h"
#include "detectors/families/standstill.h"
#include "detectors/families/training_end.h"
#include "detectors/features/cause_relations.h"
#include "detectors/features/left_early.h"
#include "detectors/model/subs.h"

namespace rankscope::families::undetermined {

using features::JobFeatures;
using features::kNoEvidence;

namespace {

constexpr std::string_view kAbnormalExit = "abnormal_exit";

// A rank of this node was the first to end, with a status of its own, and everybody who would know
// of a fault here was heard and told of none. Of a rank elsewhere nobody here knows as much.
bool EndedHereWithoutAWord(const JobFeatures& f) {
  const features::Cause* const primary = f.Primary();
  if (primary != nullptr && primary->incident().kind != logs::IncidentKind::kNonZeroExit)
    return false;
  if (f.text_unseen || f.end_unseen || f.lines == 0) return false;
  for (const proto::Store store : {proto::STORE_LOG, proto::STORE_KERNEL, proto::STORE_PROCESS}) {
    if (f.store(store) != Availability::kUp) return false;
  }
  const Availability gpu = f.store(proto::STORE_GPU);
  if (gpu != Availability::kUp && gpu != Availability::kNotApplicable) return false;
  return std::any_of(f.causes.begin(), f.causes.end(), [](const features::Cause& cause) {
    return cause.incident().kind == logs::IncidentKind::kNonZeroExit &&
           cause.candidate->store == proto::STORE_PROCESS && !cause.candidate->ranks.empty();
  });
}

// A rank ended with 0, and the others went on: what they print, and how they are ended, follows.
void DescribeWhoLeft(const JobFeatures& f, const features::Cause& left, Finding& finding) {
  const bool waited = left.incident().shape == features::kLeftBeforeWait;
  finding.advice = waited ? features::kLeftBeforeWait : features::kLeftEarly;
  finding.domain = proto::DOMAIN_WORKLOAD;
  finding.component = "program";
  finding.tier = proto::TIER_C;
  finding.cap = cap::kOneSource;
  for (const features::Cause& cause : f.causes) {
    if (cause.role == features::Cause::Role::kCascade) Show(cause.evidence, finding);
  }
}

// The kernel saw who ended it, and no more is said of why. A script that is told to stop and then
// counts as failed was neither cancelled nor at its limit: the job has asked for the signal.
void DescribeSchedulersSignal(const JobFeatures& f, Finding& finding) {
  finding.tier = proto::TIER_S;
  finding.cap = cap::kOneSource;
  const bool script =
      std::any_of(f.causes.begin(), f.causes.end(), [](const features::Cause& cause) {
        return cause.incident().shape == "signal_sent" && cause.incident().rank < 0 &&
               FieldOf(cause, "sent_by") == "scheduler";
      });
  if (!script || f.scheduler.end_state != "FAILED") return;
  finding.advice = "signal_was_asked_for";
  std::erase(finding.open, Question::kWhoCancelled);
}

// The rank that was the first to end, whose peer told of the connection to it before.
const features::Cause* LeftBehindALoss(const JobFeatures& f) {
  for (const features::Cause& lost : f.causes) {
    if (lost.incident().kind != logs::IncidentKind::kPeerLost) continue;
    const features::Cause* const left = features::FirstToLeave(f, f.causes, lost);
    if (left != nullptr && lost.incident().t <= left->incident().t) return left;
  }
  return nullptr;
}

// Of the codes that no interpreter, shell or launcher gives by itself only the program can tell.
// Which of two came first, the loss or the end that is told after it, stays an inference.
void DescribeCode(const JobFeatures& f, const features::Cause* first, Finding& finding) {
  const int32_t code = first != nullptr ? first->incident().exit_code : f.exit_code;
  constexpr int32_t kFirstChosen = 3;  // 1: Python, 2: arguments that are refused
  constexpr int32_t kPythonCannotFlush = 120;
  constexpr int32_t kTimeIsOver = 124;  // timeout(1)
  if (!finding.advice.empty() || finding.sub != kAbnormalExit) return;
  if (first != nullptr && first == LeftBehindALoss(f)) {
    finding.advice = "peer_exited";
    finding.cap = cap::kEvenOdds;
    for (const features::Cause& cause : f.causes) {
      if (cause.incident().kind == logs::IncidentKind::kPeerLost) Show(cause.evidence, finding);
    }
  } else if (code >= kFirstChosen && code < kPythonCannotFlush) {
    finding.advice = "chosen_code";
  } else if (code == kTimeIsOver) {
    finding.advice = "timeout_command";
  }
  if (!finding.advice.empty()) finding.values.Set(FieldId::kExitCode, int64_t{code});
}

void DescribeLive(const JobFeatures& f, Finding& finding) {
  finding.sub = subs::kTooEarly;
  // A run that says nothing and advances is not too young to be judged but too quiet.
  constexpr double kLongEnough = 60;
  const bool quiet = f.progress == 0 && (f.now - f.begin).seconds() >= kLongEnough && Advances(f) &&
                     f.launches.launches > 0;
  if (Stalls(f)) {
    finding.sub = "stalling";
    finding.values = {{FieldId::kSeconds, f.silence_seconds},
                      {FieldId::kWithin, f.usual_record_seconds},
                      {FieldId::kTimeout, HangTimeout(f)}};
    Show(f.silence_evidence, finding);
    finding.open.push_back(Question::kStalls);
  } else {
    finding.open.push_back(quiet ? Question::kCorrectness : Question::kTooEarly);
  }
  Show(f.launches.idle_evidence, finding);
  Show(f.collectives.advance_evidence, finding);
  if (f.lines_evidence != kNoEvidence) finding.shows.push_back(f.lines_evidence);
  if (f.steps_evidence != kNoEvidence) finding.shows.push_back(f.steps_evidence);
}

const features::Cause* FirstExit(const JobFeatures& f) {
  if (const features::Cause* const left = LeftBehindALoss(f)) return left;
  const auto place = [](const features::Cause& exit) {
    return std::pair(features::FollowsRoot(exit), exit.candidate->order);
  };
  const features::Cause* first = nullptr;
  for (const features::Cause& cause : f.causes) {
    if (cause.incident().kind != logs::IncidentKind::kNonZeroExit) continue;
    if (first == nullptr || place(cause) < place(*first)) first = &cause;
  }
  return first;
}

}  // namespace

Finding Evaluate(const JobFeatures& f) {
  Finding finding;
  finding.matched = true;
  finding.tier = proto::TIER_W;
  finding.component = "unknown";
  if (f.running) {
    DescribeLive(f, finding);
    return finding;
  }
  if (f.Primary() != nullptr) {
    const Finding end = FromPrimary(f);
    finding.shows = end.shows;
    finding.root = end.root;
    finding.ranks = end.ranks;
    finding.onset = end.onset;
    if (f.Primary()->denied) finding.open.push_back(Question::kHardwareOrSoftware);
  }
  // Whoever exited first is all that is known of the beginning.
  const features::Cause* const first = f.Primary() == nullptr ? FirstExit(f) : nullptr;
  if (first != nullptr) {
    finding.shows.push_back(first->evidence);
    finding.root.push_back(first->evidence);
    finding.ranks = first->candidate->ranks;
    finding.onset = first->incident().t;
  }
  const bool reported = ReportedFailure(f) != nullptr;
  finding.sub = f.wrapper_lost             ? "wrapper_lost"
                : f.exit_known || reported ? kAbnormalExit
                                           : subs::kNoEvidence;
  const bool failed = f.Primary() != nullptr || (f.exit_known && f.exit_code != 0) ||
                      f.wrapper_lost || !EndedWell(f);
  if (!failed) finding.sub = ShowsWork(f) ? subs::kNoEvidence : subs::kNoTraining;
  if (failed && EndedHereWithoutAWord(f)) {
    finding.tier = proto::TIER_S;
    finding.cap = cap::kOneSource;
  }
  if (f.exit_evidence != kNoEvidence && std::find(finding.shows.begin(), finding.shows.end(),
                                                  f.exit_evidence) == finding.shows.end()) {
    finding.shows.push_back(f.exit_evidence);
  }
  if (f.lines_evidence != kNoEvidence) finding.shows.push_back(f.lines_evidence);
  if (!failed) ShowCurve(f, finding);
  if (!failed && f.progress == 0 && f.metric.changes > 0) Show(f.metric.evidence, finding);
  Show(f.last_progress_evidence, finding);
  ShowLeave(f, finding);
  for (const features::Evidence& evidence : f.evidence) {
    if (evidence.kind == features::EvidenceKind::kWrapperLost) {
      finding.shows.push_back(static_cast<features::EvidenceRef>(&evidence - f.evidence.data()));
    }
  }
  const features::Cause* const sent =
      f.Primary() == nullptr ? nullptr : FindSender(f, *f.Primary());
  if (sent != nullptr && IsCleanUp(*sent)) {
    finding.symptom = "ended_by_scheduler";
    finding.signal = sent->incident().signal;
    JudgeSender(f, *sent, finding);
    if (FieldOf(*sent, "sent_by") == "scheduler") {
      DescribeSchedulersSignal(f, finding);
      return finding;
    }
  }
  if (first != nullptr && failed && features::IsOfWhoLeft(first->incident())) {
    DescribeWhoLeft(f, *first, finding);
    return finding;
  }
  if (failed && f.Primary() == nullptr) DescribeCode(f, first, finding);
  if (finding.sub == subs::kNoTraining) finding.open.push_back(Question::kNotTraining);
  if (finding.sub == subs::kNoTraining && f.exit_known) return finding;
  if (!failed && ShowsTraining(f)) finding.open.push_back(WhetherItLearned(f));
  finding.open.push_back(f.exit_known || reported ? Question::kWhyExit
                                                  : Question::kExitStatusUnknown);
  return finding;
}

RuledOut RuleOut(const JobFeatures&) {
  return Excluded(Reason::kOtherFamily);
}

}  // namespace rankscope::families::undetermined
