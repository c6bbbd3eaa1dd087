// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/features/causes.h"

#include <algorithm>
#include <cmath>
#include <csignal>
#include <vector>

#include "detectors/features/cause_relations.h"
#include "detectors/features/clean_up.h"
#include "detectors/features/earlier_text.h"
#include "detectors/features/exit_of_another.h"
#include "detectors/features/gpu_error.h"
#include "detectors/features/steps.h"
#include "detectors/model/subs.h"

namespace rankscope::features {
namespace {

using logs::FrameKind;
using logs::Incident;
using logs::IncidentKind;
using Role = Cause::Role;

// The scheduler declares a node lost when its daemon has been silent for SlurmdTimeout, 300 s by
// default.
constexpr Duration kNodeTimeout = Seconds(300);

// Events closer than this have no order of their own: a launcher's timestamps have whole seconds.
constexpr Duration kSimultaneous = Seconds(2);

// Training records after an incident that show that the run went on; and more of them where the
// program may have died of it.
constexpr int64_t kProgressedAfter = 3, kHeldBack = 4;

// A weak card may train on for minutes before it fails for good.
constexpr Duration kWeakCard = Seconds(600);

class Orderer {
 public:
  // Incidents of attempts `from` to `to`: a suspected attempt that was never confirmed is part of
  // the current one.
  Orderer(const windows::JobWindow& job, const windows::AttemptWindow& window, int32_t from,
          int32_t to, const JobFeatures& f)
      : job_(job), window_(window), from_(from), to_(to), f_(f), behind_(job, window, f) {}

  std::vector<Cause> Run() {
    for (const windows::Candidate& candidate : job_.incidents().all()) {
      if (candidate.attempt < from_ || candidate.attempt > to_) continue;
      if (SaysNothing(job_.incidents().all(), candidate)) continue;
      causes_.push_back({&candidate, OwnRole(candidate), ClassOf(candidate.incident), kNoEvidence});
    }
    for (const InferredIncident& inferred : f_.inferred) {
      causes_.push_back({inferred.candidate.get(), OwnRole(*inferred.candidate),
                         ClassOf(inferred.candidate->incident), inferred.evidence});
    }
    DenyWords();
    DemoteConsequences();
    Sort();
    MarkSupport();
    return std::move(causes_);
  }

 private:
  Role OwnRole(const windows::Candidate& candidate) const {
    const Incident& incident = candidate.incident;
    if (IsAfterTraining(candidate, f_)) return Role::kTeardown;
    if (incident.role == logs::Role::kCascade) return Role::kCascade;
    if (incident.role == logs::Role::kWrapper) return Role::kWrapper;
    if (incident.frame == FrameKind::kTeardown) return Role::kTeardown;
    if (incident.kind == IncidentKind::kXid && OwnerOfGpuError(incident) == GpuErrorOwner::kNone)
      return Role::kCascade;
    if (incident.kind == IncidentKind::kXid && SurvivedXid(candidate)) return Role::kRecovered;
    if (IsBareWord(candidate) && HasFinished()) return Role::kRecovered;
    if (f_.timed && IsPassingWait(incident)) return Role::kCascade;  // what moves tells
    // What Slurm could not start beside it, the training did without.
    if (incident.shape == "slurm_refusal" && ProgressAfter(candidate) >= kProgressedAfter)
      return Role::kRecovered;
    // A program's word that it is taken off: wrong where it went on, or finished.
    if (incident.kind == IncidentKind::kTerminated && !incident.sub.empty()) {
      const bool went_on = ProgressAfter(candidate) >= kProgressedAfter || f_.train_end;
      return went_on ? Role::kRecovered : Role::kInitiating;
    }
    const bool own_fault =
        incident.kind == IncidentKind::kException || incident.kind == IncidentKind::kCudaOom ||
        incident.kind == IncidentKind::kCudaError || incident.kind == IncidentKind::kRendezvous ||
        incident.kind == IncidentKind::kStorage || incident.kind == IncidentKind::kPeerLost ||
        incident.kind == IncidentKind::kCollectiveTimeout ||
        (incident.kind == IncidentKind::kSignalDeath &&
         (incident.sub == subs::kDataloaderWorker || incident.sub == subs::kBare));
    if (!own_fault) return Role::kInitiating;
    const int64_t after = ProgressAfter(candidate);
    if (f_.exit_known && f_.exit_code == 0) return RoleBesideZero(candidate, after);
    // Records behind it show that the run went on, unless a buffer may have held them back: none
    // did where records stand before it, or where too much follows.
    const bool record_before = HasRecordBefore(candidate, window_.first_progress);
    if (record_before && after > 0 && behind_.IsPassedOver(candidate)) return Role::kRecovered;
    const bool written_at_once =
        record_before || behind_.IsOfAnother(candidate) ||
        OutgrowsBuffers(candidate, window_.last_progress, std::max(1, f_.world_size));
    const int64_t enough = kProgressedAfter + (WasUncaught(incident) ? kHeldBack : 0);
    if (written_at_once && after >= enough && !EndedItsRank(job_.incidents().all(), candidate) &&
        !ItsRankIsGone(candidate, job_, f_))
      return Role::kRecovered;
    if (f_.train_end && !f_.exit_known && AfterTrainEnd(candidate))
      return EndsTheProgram(candidate) ? Role::kInitiating : Role::kTeardown;
    // A script says that training is complete whatever became of it.
    if (after == 0 && WasUncaught(incident)) return Role::kInitiating;
    if (f_.train_end && !f_.exit_known && !AfterTrainEnd(candidate)) return Role::kRecovered;
    return Role::kInitiating;
  }

  // An exit status of 0 says that whatever was printed was survived, unless it is another's.
  Role RoleBesideZero(const windows::Candidate& candidate, int64_t after) const {
    Around around;
    around.before = HasRecordBefore(candidate, window_.first_progress);
    around.after = after;
    around.last = &window_.last_progress;
    return MayBeOfAnother(job_, f_) && EndedTheProgram(candidate, around, job_, f_)
               ? Role::kInitiating
               : Role::kRecovered;
  }

  // The command says that it did what it was to do, and so does training.
  bool HasFinished() const {
    const bool all = f_.steps_known && std::isfinite(f_.total_steps) && f_.total_steps > 0 &&
                     f_.steps >= f_.total_steps;
    return f_.exit_known && f_.exit_code == 0 && (f_.train_end || all);
  }

  // Every rank of the job runs on this node, so that its kernel is the one that would know.
  bool AllRanksAreHere() const {
    if (f_.world_size > 1) return static_cast<size_t>(f_.world_size) <= f_.rank_pids.size();
    if (f_.world_size == 1) return job_.wrapped() || f_.processes_seen > 0;
    return job_.single_program().holds();
  }

  // The driver's line about this error would have been read: it comes before the program hears of
  // it, which asks the card at least once in a step, or with the program's own line.
  bool KernelLogWasRead(const Incident& incident) const {
    constexpr Duration kBefore = Seconds(60);
    constexpr Duration kWith = Seconds(2);
    const windows::KernelLogSpans* const log = job_.kernel_log();
    const Timestamp from = std::max(f_.begin, Timestamp{incident.t.ns - kBefore.ns});
    return log != nullptr && log->Covers(from, {incident.t.ns + kWith.ns});
  }

  // Words about a card that fails, against a kernel's log that has been read all along and says
  // nothing. The driver writes there before the program hears of it.
  void DenyWords() {
    if (!f_.timed || !AllRanksAreHere()) return;
    const bool seen =
        std::any_of(causes_.begin(), causes_.end(),
                    [](const Cause& cause) {
                      return cause.incident().kind == IncidentKind::kXid &&
                             cause.candidate->store != proto::STORE_LOG;
                    }) ||
        std::any_of(f_.faults.begin(), f_.faults.end(),
                    [](const NodeFault& fault) { return fault.type == KernelEventType::kSxid; }) ||
        std::any_of(f_.gpu.gpus.begin(), f_.gpu.gpus.end(),
                    [](const RunGpu& gpu) { return gpu.lost || gpu.errors > 0; });
    if (seen) return;
    for (Cause& cause : causes_) {
      const Incident& incident = cause.incident();
      if (cause.candidate->store != proto::STORE_LOG || !KernelLogWasRead(incident)) continue;
      const bool of_card = incident.kind == IncidentKind::kXid ||
                           (incident.kind == IncidentKind::kCudaError &&
                            OwnerOfGpuError(incident) == GpuErrorOwner::kHardware);
      if (!of_card) continue;
      cause.denied = true;
      // An error that the program raised is one, whatever its words are worth.
      if (incident.kind == IncidentKind::kXid) cause.role = Role::kDenied;
    }
  }

  // Training records after it. Of a rank whose own stream has no times to compare with the others',
  // only its own records count.
  int64_t ProgressAfter(const windows::Candidate& candidate) const {
    const auto stream = job_.streams().find(candidate.stream);
    if (job_.ranked_streams() && !f_.timed && stream != job_.streams().end() &&
        stream->second.ranked()) {
      return stream->second.progress - candidate.stream_progress_before;
    }
    return f_.progress - candidate.progress_before;
  }

  // The driver reports what it sees, whether or not the run felt it.
  bool SurvivedXid(const windows::Candidate& xid) const {
    if (f_.exit_known && f_.exit_code == 0) return true;
    if (f_.progress - xid.progress_before < kProgressedAfter) return false;
    // In a job's own text the driver's lines are a script's print of its log, of another day.
    if (xid.store == proto::STORE_LOG) return true;
    // What asks for no more than a restart ended another's context. A weak card is felt later.
    const bool of_context = AsksForRestartAtMost(xid.incident);
    return window_.clock.last_progress() - xid.incident.t > (of_context ? Seconds(10) : kWeakCard);
  }

  bool AfterTrainEnd(const windows::Candidate& candidate) const {
    const windows::MarkerSeen& end = window_.marker(logs::MarkerKind::kTrainEnd);
    if (end.stream == candidate.stream) return candidate.incident.offset > end.offset;
    return candidate.incident.t > end.last;
  }

  // Training is over, but the program is not: its next lines raised, and nothing says afterwards
  // that all went well. What C++, sockets and process groups print on the way out is not that.
  bool EndsTheProgram(const windows::Candidate& candidate) const {
    const Incident& incident = candidate.incident;
    const bool kind =
        incident.kind == IncidentKind::kException || incident.kind == IncidentKind::kUsageError ||
        incident.kind == IncidentKind::kCudaOom || incident.kind == IncidentKind::kStorage;
    if (!kind || incident.shape != "traceback") return false;
    const Evidence* const done = f_.At(f_.leave.done);
    return done == nullptr || done->offset < incident.offset;
  }

  // What the loss of a node, or of all nodes, looks like from inside before the scheduler says so:
  // a requeue, kills, connections that break and collectives that wait for ranks that are gone.
  void DemoteWhatTheSchedulerDid() {
    for (const Cause& act : causes_) {
      const Incident& record = act.incident();
      if (record.kind != IncidentKind::kSchedulerEnd || act.role != Role::kInitiating) continue;
      const bool node = record.sub == subs::kNodeFailure;
      if (!node && record.sub != subs::kPreemption) continue;
      for (Cause& cause : causes_) {
        const Incident& incident = cause.incident();
        const bool requeue =
            incident.kind == IncidentKind::kSchedulerEnd && incident.sub == subs::kRequeue;
        const bool kill = incident.kind == IncidentKind::kSignalDeath && incident.signal == SIGKILL;
        const bool lost = node && (incident.kind == IncidentKind::kPeerLost ||
                                   incident.kind == IncidentKind::kCollectiveTimeout);
        if (cause.role != Role::kInitiating || !(requeue || kill || lost)) continue;
        if (requeue || record.t - incident.t <= kNodeTimeout) cause.role = Role::kCascade;
      }
    }
  }

  // A card that fails may take its node with it, and a node does not break a card. The record's
  // times are cut to whole seconds, so what the kernel saw in that second may seem to be later.
  void DemoteWhatACardDid() {
    for (Cause& act : causes_) {
      if (act.role != Role::kInitiating || act.incident().sub != subs::kNodeFailure) continue;
      if (act.candidate->store != proto::STORE_SCHEDULER) continue;
      const bool card = AnyInitiating(causes_, [&act](const Cause& cause) {
        return cause.incident().kind == IncidentKind::kXid &&
               cause.event == CauseClass::kHardware &&
               cause.incident().t - act.incident().t <= kSimultaneous;
      });
      if (card) act.role = Role::kCascade;
    }
  }

  bool KilledByJob(const Cause& death) const {
    const std::string_view sender = SenderOf(causes_, death);
    return sender == "job" || sender == "launcher";
  }

  // What the scheduler or the launcher sends, or what follows a request to stop, is how the run
  // ended and no failure: it is the answer only where nothing else is.
  void SetCleanUpAside() {
    std::vector<Cause*> sent;
    for (Cause& cause : causes_) {
      if (cause.role != Role::kInitiating || cause.incident().kind != IncidentKind::kSignalDeath)
        continue;
      const std::string_view sender = SenderOf(causes_, cause);
      if (sender == "scheduler" || sender == "launcher" ||
          (f_.timed && FollowsARequest(causes_, cause)))
        sent.push_back(&cause);
    }
    const bool all = !AnyInitiating(causes_, [&sent](const Cause& cause) {
      return std::find(sent.begin(), sent.end(), &cause) == sent.end();
    });
    for (Cause* cause : sent) {
      cause->event = CauseClass::kStopRequest;
      if (!all) cause->role = Role::kCascade;
    }
  }

  // Nobody asks himself to stop: SIGTERM that a process sent to itself ended it like any other
  // signal. Not SIGINT: CPython ends so after a KeyboardInterrupt that nobody caught.
  void RecogniseOwnSignals() {
    for (Cause& cause : causes_) {
      if (cause.incident().kind == IncidentKind::kSignalDeath &&
          cause.incident().signal == SIGTERM && SenderOf(causes_, cause) == "itself")
        cause.event = CauseClass::kSignal;
    }
  }

  // A launcher kills the rest once one has failed, or has ended with a code.
  void DemoteWhatTheLauncherDid() {
    const auto failed_before = [this](const Cause& killed) {
      return std::any_of(causes_.begin(), causes_.end(), [&](const Cause& other) {
        const bool exited = other.incident().kind == IncidentKind::kNonZeroExit &&
                            other.candidate->order < killed.candidate->order;
        const bool failure = other.role == Role::kInitiating && IsFailure(other.event) &&
                             !IsRequest(other) && !KilledByJob(other);
        return exited || failure;
      });
    };
    std::vector<Cause*> killed;
    for (Cause& cause : causes_) {
      if (cause.role == Role::kInitiating && KilledByJob(cause) && failed_before(cause))
        killed.push_back(&cause);
    }
    for (Cause* cause : killed) cause->role = Role::kCascade;
  }

  // The kernel saw what these words are about.
  void SetWordsBesideTheKernels() {
    if (f_.network.trigger.empty()) return;
    for (Cause& said : causes_) {
      const Incident& incident = said.incident();
      if (said.role != Role::kInitiating || !IsAboutConnecting(incident)) continue;
      const std::vector<int32_t>& ranks = f_.network.ranks;
      const bool same = incident.rank < 0 || ranks.empty() ||
                        std::find(ranks.begin(), ranks.end(), incident.rank) != ranks.end();
      if (same) said.role = Role::kSupport;
    }
  }

  void SetEarlierAside() {
    const auto trained_on = [this](const windows::Candidate& end) {
      const bool failed = f_.exit_known && f_.exit_code != 0;
      const bool finished = f_.train_end && !failed && !AfterTrainEnd(end);
      return (finished && ProgressAfter(end) >= kProgressedAfter) ||
             behind_.IsOfTheNextRun(end, ProgressAfter(end));
    };
    SetEarlierRunsAside(causes_, f_, trained_on, [this](const windows::Candidate& said) {
      return behind_.StartsAgain(said, ProgressAfter(said));
    });
  }

  void DemoteConsequences() {
    SetEarlierAside();
    SetToolsAside(causes_, f_);
    RecogniseOwnSignals();
    SetWordsBesideTheKernels();
    DemoteARequeueAfterAFailure(causes_, job_.steps());
    DemoteWhatTheSchedulerDid();
    DemoteWhatACardDid();
    DemoteCleanUp(causes_);
    SetCleanUpAside();
    DemoteWhatTheLauncherDid();
    SetOldXidsAside(causes_);
    const auto own_failure = [](const Cause& cause) {
      return !IsRequest(cause) && IsFailure(cause.event);
    };
    const bool failed = AnyInitiating(causes_, own_failure);
    const bool scheduled = AnyInitiating(causes_, [](const Cause& cause) {
      return cause.incident().kind == IncidentKind::kSchedulerEnd;
    });
    const bool explained_abort = AnyInitiating(causes_, [](const Cause& cause) {
      const IncidentKind kind = cause.incident().kind;
      return kind != IncidentKind::kSignalDeath && kind != IncidentKind::kTerminated &&
             !IsDisposition(cause.event);
    });
    const bool explained_terminate = AnyInitiating(causes_, [](const Cause& cause) {
      const Incident& other = cause.incident();
      return !IsDisposition(cause.event) && other.kind != IncidentKind::kSignalDeath &&
             !(other.kind == IncidentKind::kException && other.shape.starts_with("cpp_"));
    });
    const bool someone_died = AnyInitiating(
        causes_, [](const Cause& cause) { return IsDeath(cause.event) && !IsRequest(cause); });
    for (Cause& cause : causes_) {
      if (cause.role != Role::kInitiating) continue;
      const Incident& incident = cause.incident();
      if (IsRequest(cause) && (failed || scheduled || AfterAnExit(causes_, cause)))
        cause.role = Role::kCascade;
      // A plain cancel after a failure is the launcher or --kill-on-bad-exit cleaning up.
      if (incident.kind == IncidentKind::kSchedulerEnd &&
          (incident.sub == subs::kCancelled || incident.sub == subs::kFailed) && failed) {
        cause.role = Role::kCascade;
      }
      // std::terminate repeats what a watchdog or an error handler has already said.
      if (incident.kind == IncidentKind::kException && incident.shape.starts_with("cpp_") &&
          explained_terminate) {
        cause.role = Role::kCascade;
      }
      // abort() is how C++ ends after an error that was already said.
      if (incident.kind == IncidentKind::kSignalDeath && incident.signal == SIGABRT &&
          explained_abort) {
        cause.role = Role::kCascade;
      }
      // Survivors lose their connections, or wait until their timeout: somebody else is gone.
      const bool lost = incident.kind == IncidentKind::kPeerLost;
      if (((lost || incident.kind == IncidentKind::kRendezvous) && someone_died) ||
          (lost && LeftByItself(f_, causes_, cause)))
        cause.role = Role::kCascade;
      if (incident.kind == IncidentKind::kNonZeroExit && failed) cause.role = Role::kWrapper;
    }
    // The launcher's word alone: a child died by a signal, or with a code.
    if (!AnyInitiating(causes_, [](const Cause& cause) { return !IsDisposition(cause.event); }))
      PromoteWrappers();
    // A lost peer that nothing explains is the best that is known.
    if (!AnyInitiating(causes_, [](const Cause&) { return true; })) {
      for (Cause& cause : causes_) {
        if (cause.role == Role::kCascade && cause.incident().kind == IncidentKind::kPeerLost &&
            OfProcessGroup(cause.incident()) && !LeftByItself(f_, causes_, cause) &&
            !(f_.exit_known && f_.exit_code == 0) && f_.ended) {
          cause.role = Role::kInitiating;
        }
      }
    }
  }

  void PromoteWrappers() {
    for (Cause& cause : causes_) {
      if (cause.role != Role::kWrapper || cause.incident().kind != IncidentKind::kSignalDeath)
        continue;
      if (IsTakedown(cause.incident()) || IsSurvivorsAbort(causes_, cause)) continue;
      cause.role = Role::kInitiating;
    }
    if (AnyInitiating(causes_, [](const Cause&) { return true; })) return;
    for (Cause& cause : causes_) {
      if (cause.role == Role::kWrapper && IsTakedown(cause.incident()) &&
          !AfterAnExit(causes_, cause))
        cause.role = Role::kInitiating;
    }
  }

  void Sort() {
    // Time decides only between events that the clocks can tell apart, so times are compared in
    // blocks that begin with the earliest event of each block.
    std::vector<Cause*> by_time;
    for (Cause& cause : causes_) {
      if (cause.role == Role::kInitiating) by_time.push_back(&cause);
    }
    // Logs that were read from files arrive at once; their lines may print when they were written.
    const bool printed = !f_.timed && job_.ranked_streams() && !by_time.empty() &&
                         std::all_of(by_time.begin(), by_time.end(), [](const Cause* cause) {
                           return cause->candidate->printed_ms > 0;
                         });
    const auto time_of = [printed](const Cause& cause) {
      return printed ? Timestamp{cause.candidate->printed_ms * 1'000'000} : cause.incident().t;
    };
    std::stable_sort(by_time.begin(), by_time.end(), [&time_of](const Cause* a, const Cause* b) {
      return time_of(*a) < time_of(*b);
    });
    int64_t block = 0;
    Timestamp block_begin;
    std::vector<std::pair<const windows::Candidate*, int64_t>> blocks;
    for (const Cause* cause : by_time) {
      if (blocks.empty() ||
          ((f_.timed || printed) && time_of(*cause) - block_begin > kSimultaneous)) {
        ++block;
        block_begin = time_of(*cause);
      }
      blocks.emplace_back(cause->candidate, block);
    }
    const auto block_of = [&blocks](const Cause& cause) {
      for (const auto& [candidate, number] : blocks) {
        if (candidate == cause.candidate) return number;
      }
      return int64_t{0};
    };
    std::stable_sort(causes_.begin(), causes_.end(), [&](const Cause& a, const Cause& b) {
      if (a.role != b.role) return a.role < b.role;
      if (a.role == Role::kInitiating) {
        // Dispositions (time limit, cancel) never go before a failure, however late the failure was
        // said.
        const bool a_late = IsDisposition(a.event), b_late = IsDisposition(b.event);
        if (a_late != b_late) return b_late;
        if (const int64_t x = block_of(a), y = block_of(b); x != y) return x < y;
        if (a.event != b.event) return a.event < b.event;
        if (const bool x = FollowsRoot(a), y = FollowsRoot(b); x != y) return y;
      }
      return a.candidate->order < b.candidate->order;
    });
  }

  void MarkSupport() {
    if (causes_.empty() || causes_.front().role != Role::kInitiating) return;
    for (size_t i = 1; i < causes_.size(); ++i) {
      if (Supports(causes_[i], causes_.front())) causes_[i].role = Role::kSupport;
    }
  }

  const windows::JobWindow& job_;
  const windows::AttemptWindow& window_;
  int32_t from_;
  int32_t to_;
  const JobFeatures& f_;
  const TextBehind behind_;
  std::vector<Cause> causes_;
};

}  // namespace

std::vector<Cause> OrderCauses(const windows::JobWindow& job, const JobFeatures& f) {
  return Orderer(job, job.now(), job.attempt().ordinal, INT32_MAX, f).Run();
}

std::vector<Cause> OrderCausesOf(const windows::JobWindow& job,
                                 const windows::AttemptWindow& window, int32_t ordinal,
                                 const JobFeatures& f) {
  return Orderer(job, window, ordinal, ordinal, f).Run();
}

}  // namespace rankscope::features
