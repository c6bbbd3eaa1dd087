// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/features/build.h"

#include <algorithm>
#include <cmath>
#include <csignal>

#include "detectors/features/cause_relations.h"
#include "detectors/features/causes.h"
#include "detectors/features/cite.h"
#include "detectors/features/exit_of_another.h"
#include "detectors/features/landmarks.h"
#include "detectors/features/left_early.h"
#include "detectors/features/loss_features.h"
#include "detectors/features/notices.h"
#include "detectors/features/oom_count.h"
#include "detectors/features/printed_silence.h"
#include "detectors/features/scheduler.h"
#include "detectors/features/steps.h"
#include "detectors/windows/printed_span.h"
#include "detectors/windows/training_launcher.h"

namespace rankscope::features {
namespace {

using logs::IncidentKind;
using logs::MarkerKind;

EvidenceKind KindOf(const logs::Incident& incident) {
  switch (incident.kind) {
    case IncidentKind::kException:
      return EvidenceKind::kException;
    case IncidentKind::kSignalDeath:
      return EvidenceKind::kSignalDeath;
    case IncidentKind::kNonZeroExit:
      return EvidenceKind::kNonZeroExit;
    case IncidentKind::kCudaOom:
      return EvidenceKind::kCudaOom;
    case IncidentKind::kHostOom:
      return EvidenceKind::kHostOom;
    case IncidentKind::kCudaError:
      return EvidenceKind::kCudaError;
    case IncidentKind::kXid:
      return EvidenceKind::kXid;
    case IncidentKind::kCollectiveTimeout:
      return EvidenceKind::kCollectiveTimeout;
    case IncidentKind::kPeerLost:
      return EvidenceKind::kPeerLost;
    case IncidentKind::kRendezvous:
      return EvidenceKind::kRendezvous;
    case IncidentKind::kSchedulerEnd:
      return EvidenceKind::kSchedulerEnd;
    case IncidentKind::kTerminated:
      return EvidenceKind::kTerminated;
    case IncidentKind::kNonFiniteLoss:
      return EvidenceKind::kNonFiniteText;
    case IncidentKind::kUsageError:
      return EvidenceKind::kUsageError;
    case IncidentKind::kStorage:
      return EvidenceKind::kStorage;
  }
  return EvidenceKind::kException;
}

// What a record is the end of, where its number counts no steps.
std::string NameOfCounted(logs::StepUnit unit) {
  switch (unit) {
    case logs::StepUnit::kEpochs:
      return "epoch";
    case logs::StepUnit::kRounds:
      return "round";
    case logs::StepUnit::kSteps:
    case logs::StepUnit::kSamples:
      break;
  }
  return "record";
}

class Builder {
 public:
  Builder(const windows::JobWindow& job, const windows::AttemptWindow& window, bool earlier,
          const std::array<Availability, kStores>& stores, Timestamp now)
      : job_(job), window_(window), earlier_(earlier), citer_(job, f_) {
    f_.stores = stores;
    f_.now = now;
    f_.step_unit = window_.clock.unit();
  }

  JobFeatures Run() {
    DescribeRun();
    DescribeText();
    if (!earlier_) DescribeSteps(job_, citer_, f_);
    DescribeSuspension(job_, earlier_, citer_, f_);
    DescribeTime();
    f_.loss = BuildLossFeatures(window_.loss);
    CiteLoss();
    DescribeLeave(job_, window_, citer_, f_);
    DescribeResume(job_, window_, citer_, f_);
    DescribeLossScale(window_, citer_, f_);
    DescribeReward(window_, citer_, f_);
    DescribeMetric(window_, citer_, f_);
    DescribeTarget(job_.targets(), window_, citer_, f_);
    DescribeCompiler(job_, window_, citer_, f_);
    DescribeRestarts(job_, window_, citer_, f_);
    DescribeNetwork(job_, window_, citer_, f_);
    DescribeStorage(job_, window_, citer_, f_);
    DescribeWaits(job_, window_, citer_, f_);
    DescribeStillness(job_, window_, citer_, f_);
    DescribeLaunches(job_, window_, citer_, f_);
    DescribeCollectives(job_, window_, citer_, f_);
    DescribeReports(job_, window_, citer_, f_);
    DescribeGpus(job_, window_, citer_, f_);
    if (!earlier_) DescribeLeads(job_, window_, citer_, f_);
    DescribeFaults(window_, citer_, f_);
    DescribeJobCards(job_, window_, citer_, f_);
    DescribeNodeRecord(job_, window_, citer_, f_);
    DescribeWhoLeft(job_, window_, citer_, f_);
    if (!earlier_) DescribeNotices(job_, citer_, f_);
    f_.causes = earlier_ ? OrderCausesOf(job_, window_, job_.previous_attempt().ordinal, f_)
                         : OrderCauses(job_, f_);
    if (!earlier_) NoteDoubtfulExit(job_, f_);
    for (Cause& cause : f_.causes) {
      if (cause.evidence == kNoEvidence) {
        Evidence evidence = FromCause(cause);
        if (&cause == &f_.causes.front()) evidence.ranks = RanksThatGaveUp(f_.causes, cause);
        cause.evidence = Add(std::move(evidence));
      }
      for (const logs::Quote& quote : cause.incident().quotes) {
        Add(FromQuote(cause, quote));
        ++cause.quotes;
      }
    }
    if (!earlier_) DescribeOomCount(job_, citer_, f_);
    DescribePrintedSilence(window_, citer_, f_);
    DescribeRecord(job_, window_, citer_, f_);
    DescribeLostWork(job_, window_, citer_, f_);
    return std::move(f_);
  }

 private:
  EvidenceRef Add(Evidence evidence) { return citer_.Add(std::move(evidence)); }
  template <class... T>
  Evidence Quote(EvidenceKind kind, const T&... of) const {
    return citer_.Quote(kind, of...);
  }

  void DescribeRun() {
    f_.job_id = job_.job_id();
    f_.begin = job_.begin();
    const windows::JobEnd& end = job_.end();
    // Without the wrapper a job lives as long as a process of it does.
    f_.ended = earlier_ || end.ended || (end.wrapper_lost && job_.processes_alive() == 0);
    f_.running = !f_.ended;
    f_.exec_failed = !end.error.empty();
    f_.wrapper_lost = !earlier_ && end.wrapper_lost && !end.ended;
    DescribeHearing();
    f_.world_size = job_.world_size();
    f_.starts_training = windows::StartsTraining(job_.argv());
    f_.processes_seen = job_.processes_seen();
    f_.processes_alive = job_.processes_alive();
    for (const auto& [rank, window] : job_.ranks()) {
      if (window.process.pid != 0) f_.rank_pids.push_back(window.process.pid);
    }
    if (!earlier_) DescribeMissingRanks(job_, citer_, f_);
    f_.phase = window_.phase.phase();
    if (!earlier_ && end.ended && end.status_known) {
      f_.exit_known = true;
      f_.exit_signal = end.wait_status & 0x7f;
      f_.exit_code = f_.exit_signal != 0 ? 128 + f_.exit_signal : (end.wait_status >> 8) & 0xff;
      Evidence evidence;
      evidence.kind = f_.exec_failed ? EvidenceKind::kExecFailure : EvidenceKind::kExitStatus;
      evidence.store = proto::STORE_PROCESS;
      evidence.observed = f_.exit_code;
      evidence.process = job_.root();
      evidence.begin = evidence.end = end.t;
      evidence.values = {{FieldId::kSignal, static_cast<int64_t>(f_.exit_signal)},
                         {FieldId::kError, end.error}};
      if (end.by_ranks)
        evidence.values.Set(FieldId::kRankCount, static_cast<int64_t>(f_.world_size));
      f_.exit_evidence = Add(std::move(evidence));
      f_.command_exit_known = true;
      f_.command_exit_code = f_.exit_code;
      f_.command_exit_evidence = f_.exit_evidence;
    }
    if (f_.wrapper_lost) {
      Evidence evidence;
      evidence.kind = EvidenceKind::kWrapperLost;
      evidence.store = proto::STORE_PROCESS;
      evidence.begin = evidence.end = end.streams_closed_t;
      Add(std::move(evidence));
    }
    if (f_.processes_seen > 0) {
      Evidence evidence;
      evidence.kind = EvidenceKind::kProcessesAlive;
      evidence.store = proto::STORE_PROCESS;
      evidence.observed = static_cast<double>(f_.processes_alive);
      evidence.expected = static_cast<double>(f_.processes_seen);
      evidence.begin = evidence.end = f_.now;
      f_.alive_evidence = Add(std::move(evidence));
    }
  }

  void DescribeHearing() {
    // A scan finds who has gone meanwhile, and a wrapper has so long to come back.
    constexpr Duration kFoundWithin = Seconds(30);
    const windows::Hearing& hearing = job_.hearing();
    const windows::JobEnd& end = job_.end();
    if (!hearing.spans().empty())
      f_.unheard_seconds_ago = (f_.now - hearing.spans().back().end).seconds();
    f_.end_unseen = !earlier_ && end.ended && !end.status_known && end.error.empty() &&
                    hearing.Near(end.t, kFoundWithin);
    // A wrapper keeps what it reads; what the kernel hears is heard at once or never.
    f_.text_unseen = !earlier_ && end.ended && !job_.wrapped() && !hearing.spans().empty() &&
                     hearing.spans().back().end > window_.clock.last_progress();
  }

  void DescribeText() {
    Timestamp last;
    std::string name;
    for (const auto& [id, stream] : job_.streams()) {
      f_.lines += stream.lines;
      if (name.empty()) name = stream.name;
      last = std::max(last, stream.last);
    }
    const windows::Hearing& hearing = job_.hearing();
    f_.beginning_unread =
        !job_.wrapped() && hearing.earlier_processes() > 0 && !hearing.earlier_read();
    f_.progress = window_.progress;
    f_.recognised = window_.progress > 0 && !window_.generic;
    f_.generic = window_.progress > 0 && window_.generic;
    f_.reward_objective = window_.reward_seen;
    f_.framework = !window_.framework.empty() ? window_.framework : window_.format;
    f_.steps = window_.clock.steps_done();
    f_.steps_known = window_.clock.steps_known();
    f_.total_steps = window_.clock.total_steps();
    f_.train_begin = window_.marker(MarkerKind::kTrainBegin).count > 0;
    f_.train_end = window_.marker(MarkerKind::kTrainEnd).count > 0;
    f_.no_checkpoint = window_.marker(MarkerKind::kNoCheckpoint).count > 0;
    const windows::MarkerSeen& rendezvous = window_.marker(MarkerKind::kRendezvousBegin);
    f_.in_rendezvous = f_.phase == proto::PHASE_RENDEZVOUS;
    if (rendezvous.count > 0)
      f_.rendezvous_begin_evidence = Add(Quote(EvidenceKind::kRendezvousBegin, rendezvous));
    if (f_.train_begin) {
      f_.train_begin_evidence =
          Add(Quote(EvidenceKind::kTrainBegin, window_.marker(MarkerKind::kTrainBegin)));
    }
    if (f_.train_end)
      f_.train_end_evidence =
          Add(Quote(EvidenceKind::kTrainEnd, window_.marker(MarkerKind::kTrainEnd)));
    if (f_.no_checkpoint) {
      f_.no_checkpoint_evidence =
          Add(Quote(EvidenceKind::kNoCheckpoint, window_.marker(MarkerKind::kNoCheckpoint)));
    }
    if (!f_.steps_known && f_.train_end) {
      // The end says how many steps there were: by its own number, or by reaching the announced
      // budget.
      const windows::MarkerSeen& end = window_.marker(MarkerKind::kTrainEnd);
      const double steps = std::isfinite(end.number) ? end.number : f_.total_steps;
      if (std::isfinite(steps)) {
        f_.steps = steps;
        f_.steps_known = true;
      }
      if (f_.steps_known && window_.progress == 0) {
        const windows::MarkerSeen& said =
            std::isfinite(end.number) ? end : window_.marker(MarkerKind::kTrainBegin);
        Evidence evidence = Quote(EvidenceKind::kSteps, said);
        evidence.observed = f_.steps;
        if (std::isfinite(f_.total_steps)) evidence.expected = f_.total_steps;
        evidence.values = {{FieldId::kKnown, "step"}};
        f_.steps_evidence = Add(std::move(evidence));
      }
    }
    if (window_.progress > 0) {
      Evidence evidence = Quote(EvidenceKind::kSteps, window_.last_progress);
      evidence.observed = f_.steps;
      if (std::isfinite(f_.total_steps)) evidence.expected = f_.total_steps;
      evidence.values = {{FieldId::kKnown, f_.steps_known ? "step" : NameOfCounted(f_.step_unit)},
                         {FieldId::kRecords, static_cast<int64_t>(f_.progress)}};
      f_.steps_evidence = Add(std::move(evidence));
      Evidence newest = Quote(EvidenceKind::kLastProgress, window_.last_progress);
      if (window_.loss.points() == 0) newest.observed.reset();  // it prints none
      f_.last_progress_evidence = Add(std::move(newest));
    }
    if (f_.lines > 0) {
      Evidence evidence;
      evidence.kind = f_.progress > 0 ? EvidenceKind::kLinesRead : EvidenceKind::kNoProgress;
      evidence.observed = static_cast<double>(f_.lines);
      evidence.stream = name;
      evidence.end = last;
      f_.lines_evidence = Add(std::move(evidence));
    }
  }

  void DescribeTime() {
    // Text that was read from a file arrives all at once and tells no time.
    f_.timed = job_.last_text() > job_.begin() || f_.now - job_.begin() > Seconds(30);
    const Timestamp until = f_.ended && !earlier_ && job_.end().ended ? job_.end().t : f_.now;
    const Timestamp since = window_.progress > 0 ? window_.clock.last_progress() : window_.begin;
    f_.silence_seconds = job_.RunningSeconds(since, until);
    AddUnobservedSilence(since);
    f_.usual_record_seconds = window_.clock.MedianRecordSeconds();
    f_.p99_record_seconds = window_.clock.P99RecordSeconds();
    f_.longest_record_seconds = window_.clock.LongestRecordSeconds();
    f_.step_seconds = window_.clock.MedianStepSeconds();
    f_.newest_step_seconds = window_.clock.NewestStepSeconds();
    f_.max_step_seconds = window_.clock.MaxStepSeconds(job_.world_size());
    f_.early_step_seconds = window_.clock.EarlyStepSeconds();
    const bool by_step = std::isfinite(f_.step_seconds);
    f_.pace_seconds = by_step ? f_.step_seconds : window_.clock.MedianPace();
    f_.newest_pace_seconds = by_step ? f_.newest_step_seconds : window_.clock.NewestPace();
    f_.early_pace_seconds = by_step ? f_.early_step_seconds : window_.clock.EarlyPace();
    if (std::isfinite(f_.pace_seconds) && window_.progress > 0) {
      Evidence evidence = Quote(EvidenceKind::kStepTime, window_.last_progress);
      evidence.observed = f_.pace_seconds;
      if (std::isfinite(f_.early_pace_seconds)) evidence.expected = f_.early_pace_seconds;
      if (!by_step) evidence.values.Set(FieldId::kKnown, NameOfCounted(f_.step_unit));
      evidence.unit = "s";
      f_.step_time_evidence = Add(std::move(evidence));
    }
    f_.phase_seconds = job_.RunningSeconds(window_.phase.since(), until);
    f_.longest_save_seconds = window_.phase.longest_save_seconds();
    f_.longest_eval_seconds = window_.phase.longest_eval_seconds();
    if (window_.progress > 0 && f_.timed) {
      Evidence evidence = Quote(EvidenceKind::kSilence, window_.last_progress);
      evidence.observed = f_.silence_seconds;
      if (std::isfinite(f_.usual_record_seconds)) evidence.expected = f_.usual_record_seconds;
      evidence.unit = "s";
      evidence.end = until;
      if (f_.unobserved_silence > 0)
        evidence.values.Set(FieldId::kEarlier, std::round(f_.unobserved_silence));
      if (const Duration suspended = job_.suspension().Within(since, until); suspended.ns > 0)
        evidence.values.Set(FieldId::kSuspended, suspended.ns / 1'000'000'000);
      f_.silence_evidence = Add(std::move(evidence));
    }
  }

  // How long the file that the newest record stands in had not been written when it was found. Its
  // time is that of the server that keeps it, whose clock may be late: so the job must have printed
  // nothing since, longer than it usually takes. Where that is not known, nor is how long is long.
  void AddUnobservedSilence(Timestamp read) {
    constexpr double kObservedMin = 15, kObservedMax = 80, kIntervals = 2;
    const Timestamp written = window_.last_written;
    if (window_.progress == 0 || written.ns == 0 || written >= read) return;
    const double usual = window_.clock.MedianRecordSeconds();
    if (!std::isfinite(usual)) return;
    const double least = std::clamp(kIntervals * usual, kObservedMin, kObservedMax);
    if (f_.silence_seconds < least) return;
    const double before = job_.RunningSeconds(written, read);
    if (before <= usual) return;  // the run went on when it was found
    f_.unobserved_silence = before;
    f_.silence_seconds += f_.unobserved_silence;
  }

  void CiteLoss() {
    const windows::LossTracker& tracker = window_.loss;
    LossFeatures& loss = f_.loss;
    if (tracker.first().present()) {
      Evidence evidence = Quote(EvidenceKind::kLossStart, tracker.first());
      evidence.expected = loss.start;
      loss.start_evidence = Add(std::move(evidence));
    }
    if (tracker.last().present()) {
      Evidence evidence = Quote(EvidenceKind::kLossEnd, tracker.last());
      evidence.expected = loss.end;
      evidence.values.Set(FieldId::kPoints, static_cast<int64_t>(loss.points));
      loss.end_evidence = Add(std::move(evidence));
    }
    if (tracker.lowest().present())
      loss.lowest_evidence = Add(Quote(EvidenceKind::kLossLowest, tracker.lowest()));
    if (tracker.first_nonfinite().present()) {
      Evidence evidence = Quote(EvidenceKind::kLossNonFinite, tracker.first_nonfinite());
      evidence.times = tracker.trailing_nonfinite();
      if (loss.never_finite) evidence.values.Set(FieldId::kNeverFinite, "yes");
      loss.nonfinite_evidence = Add(std::move(evidence));
    }
    if (tracker.first_silent_nan().present()) {
      Evidence evidence = Quote(EvidenceKind::kLossSilentNan, tracker.first_silent_nan());
      evidence.times = tracker.silent_nan();
      loss.silent_nan_evidence = Add(std::move(evidence));
    }
    if (tracker.trailing_zeros() > 0) {
      Evidence evidence = Quote(EvidenceKind::kLossZero, tracker.first_zero());
      evidence.times = tracker.trailing_zeros();
      evidence.expected = tracker.level_before_zeros();
      loss.zero_evidence = Add(std::move(evidence));
    }
    if (tracker.trailing_bad_grads() > 0) {
      Evidence evidence = Quote(EvidenceKind::kGradNormNotFinite, tracker.first_bad_grad());
      evidence.times = tracker.trailing_bad_grads();
      loss.bad_grad_evidence = Add(std::move(evidence));
    }
    if (tracker.last_spike().present()) {
      Evidence evidence = Quote(EvidenceKind::kLossSpike, tracker.last_spike());
      evidence.times = tracker.spikes();
      evidence.expected = loss.end;
      loss.spike_evidence = Add(std::move(evidence));
    }
    if (tracker.highest().present() && tracker.highest().index != tracker.first().index &&
        tracker.highest().index != tracker.last().index)
      loss.highest_evidence = Add(Quote(EvidenceKind::kLossHighest, tracker.highest()));
    if (tracker.highest_grad_norm().present()) {
      Evidence evidence = Quote(EvidenceKind::kGradNormHighest, tracker.highest_grad_norm());
      evidence.expected = loss.early_grad_norm;
      loss.highest_grad_norm_evidence = Add(std::move(evidence));
    }
    if (std::isfinite(loss.late_grad_norm)) {
      Evidence evidence = Quote(EvidenceKind::kGradNorm, window_.last_progress);
      evidence.observed = loss.late_grad_norm;
      evidence.expected = loss.early_grad_norm;
      loss.grad_norm_evidence = Add(std::move(evidence));
    }
    if (std::isfinite(loss.late_learning_rate)) {
      Evidence evidence = Quote(EvidenceKind::kLearningRate, window_.last_progress);
      evidence.observed = loss.late_learning_rate;
      loss.learning_rate_evidence = Add(std::move(evidence));
    }
  }

  Evidence FromCause(const Cause& cause) const {
    const windows::Candidate& candidate = *cause.candidate;
    const logs::Incident& incident = candidate.incident;
    Evidence evidence;
    evidence.kind = KindOf(incident);
    evidence.store = candidate.store;
    evidence.ranks = candidate.ranks;
    evidence.times = candidate.times;
    evidence.begin = evidence.end = incident.t;
    evidence.process = candidate.process;
    if (evidence.process.pid == 0) evidence.process.pid = incident.pid;
    if (candidate.store == proto::STORE_LOG) {
      evidence.stream = citer_.StreamName(candidate.stream);
      evidence.offset = incident.offset;
    }
    evidence.line = incident.line;
    if (incident.kind == IncidentKind::kSignalDeath) evidence.observed = -incident.signal;
    if (incident.kind == IncidentKind::kNonZeroExit) evidence.observed = incident.exit_code;
    evidence.values = FromCaptured(incident.fields);
    evidence.values.Set(FieldId::kType, incident.exception_type)
        .Set(FieldId::kMessage, incident.message)
        .Set(FieldId::kFile, incident.file)
        .Set(FieldId::kFunction, incident.function)
        .Set(FieldId::kSub, incident.sub)
        .Set(FieldId::kShape, incident.shape);
    if (incident.cause_type != incident.exception_type) {
      evidence.values.Set(FieldId::kCauseType, incident.cause_type)
          .Set(FieldId::kCauseMessage, incident.cause_message);
    }
    return evidence;
  }

  Evidence FromQuote(const Cause& cause, const logs::Quote& quote) const {
    static constexpr std::string_view kRoles[] = {"frame", "message", "below", "cause", "launcher"};
    const windows::Candidate& candidate = *cause.candidate;
    Evidence evidence = Quote(EvidenceKind::kQuoted, candidate.stream, quote.offset, quote.line,
                              candidate.incident.t);
    evidence.store = candidate.store;
    evidence.ranks = candidate.ranks;
    const auto role = static_cast<size_t>(quote.role);
    if (role < std::size(kRoles)) evidence.values = {{FieldId::kRole, std::string(kRoles[role])}};
    // The sentence quotes what the program wrote, the citation the whole line.
    const std::string_view words = windows::WithoutPrefixes(quote.line);
    if (words.size() != quote.line.size()) evidence.values.Set(FieldId::kLine, std::string(words));
    return evidence;
  }

  const windows::JobWindow& job_;
  const windows::AttemptWindow& window_;
  bool earlier_;
  JobFeatures f_;
  Citer citer_;
};

}  // namespace

JobFeatures BuildFeatures(const windows::JobWindow& job,
                          const std::array<Availability, kStores>& stores, Timestamp now) {
  return Builder(job, job.now(), false, stores, now).Run();
}

JobFeatures BuildPreviousFeatures(const windows::JobWindow& job,
                                  const std::array<Availability, kStores>& stores, Timestamp now) {
  return Builder(job, job.previous(), true, stores, now).Run();
}

}  // namespace rankscope::features
