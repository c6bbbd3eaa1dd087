// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/features/cause_relations.h"

#include <algorithm>
#include <csignal>
#include <iterator>
#include <string>
#include <string_view>

#include "detectors/features/left_early.h"
#include "detectors/model/root_cause.h"
#include "detectors/model/subs.h"

namespace rankscope::features {

using logs::FrameKind;
using logs::Incident;
using logs::IncidentKind;

bool SharesProcess(const windows::Candidate& a, const windows::Candidate& b) {
  const Incident& x = a.incident;
  const Incident& y = b.incident;
  if (x.pid != 0 && y.pid != 0) return x.pid == y.pid;
  if (x.rank >= 0 && y.rank >= 0) return x.rank == y.rank;
  return true;  // nobody says otherwise
}

namespace {

bool HasField(const Incident& incident, std::string_view key) {
  return std::any_of(incident.fields.begin(), incident.fields.end(),
                     [key](const KeyValue& field) { return field.key == key; });
}

// A loader ends its workers with SIGTERM when an epoch is over, and nobody ends in order by these.
bool IsCrash(int32_t signal) {
  constexpr int32_t kCrashes[] = {SIGKILL, SIGSEGV, SIGBUS, SIGABRT, SIGILL, SIGFPE};
  return std::find(std::begin(kCrashes), std::end(kCrashes), signal) != std::end(kCrashes);
}

// The rank of a worker that crashed says that the worker no longer answers; or it is the first to
// end, with an error and without a word of its own, and nobody of the job has ended the worker.
bool FailsForItsWorker(const std::vector<windows::Candidate>& all,
                       const windows::Candidate& worker) {
  constexpr Duration kSoon = Seconds(5), kTextIsEarly = Seconds(1);
  const std::string_view by = worker.incident.fields.front().value;
  const auto after = [&worker](const windows::Candidate& other) {
    return other.incident.t - worker.incident.t;
  };
  bool said = by == "job" || by == "launcher" || by == "scheduler";
  const windows::Candidate* first = nullptr;
  for (const windows::Candidate& other : all) {
    const Incident& incident = other.incident;
    if (other.attempt != worker.attempt) continue;
    const bool exit = incident.shape == "wait_status" && incident.rank >= 0;
    if (exit && (first == nullptr || incident.t < first->incident.t)) first = &other;
    if (incident.rank >= 0 && incident.rank != worker.incident.rank) continue;
    if (HasField(incident, "worker_gone") && after(other) <= kSoon &&
        after(other) >= Duration{-kTextIsEarly.ns})
      return true;
    // What its peers say of it is no word of its own.
    if (other.store == proto::STORE_LOG && incident.role != logs::Role::kWrapper &&
        incident.kind != IncidentKind::kPeerLost)
      said = true;
  }
  return !said && first != nullptr && first->incident.rank == worker.incident.rank &&
         first->incident.kind == IncidentKind::kNonZeroExit && after(*first) >= Duration{} &&
         after(*first) <= kSoon;
}

}  // namespace

bool SaysNothing(const std::vector<windows::Candidate>& all, const windows::Candidate& candidate) {
  if (candidate.incident.role == logs::Role::kAdvice) return true;
  if (candidate.incident.shape != "signal_sent") return false;
  if (!HasField(candidate.incident, "worker")) return false;
  const bool told = std::any_of(all.begin(), all.end(), [&](const windows::Candidate& other) {
    return other.store == proto::STORE_LOG && other.incident.pid == candidate.incident.pid;
  });
  return !told && !(IsCrash(candidate.incident.signal) && FailsForItsWorker(all, candidate));
}

bool IsTakedown(const Incident& incident) {
  return incident.kind == IncidentKind::kTerminated ||
         (incident.kind == IncidentKind::kSignalDeath &&
          (incident.signal == SIGTERM || incident.signal == SIGINT));
}

bool IsRequest(const Cause& cause) {
  return IsTakedown(cause.incident()) && cause.event != CauseClass::kSignal;
}

bool IsBareWord(const windows::Candidate& candidate) {
  if (candidate.store != proto::STORE_LOG) return false;
  switch (candidate.incident.kind) {
    case IncidentKind::kHostOom:
    case IncidentKind::kSignalDeath:
    case IncidentKind::kSchedulerEnd:
    case IncidentKind::kTerminated:
      return true;
    default:
      return false;
  }
}

bool Supports(const Cause& other, const Cause& cause) {
  const Incident& a = other.incident();
  const Incident& b = cause.incident();
  // The kernel saw the request that the program, or its end, then tells of.
  if (b.kind == IncidentKind::kTerminated && b.shape == "signal_sent") return IsTakedown(a);
  if (!SharesProcess(*other.candidate, *cause.candidate)) return false;
  // Python's KeyboardInterrupt, and the kernel about the SIGINT that it ended with.
  if (b.kind == IncidentKind::kTerminated && b.signal == SIGINT)
    return a.shape == "signal_sent" && a.signal == SIGINT;
  const bool raised = b.kind == IncidentKind::kHostOom && !b.exception_type.empty();
  if ((b.kind == IncidentKind::kSignalDeath || b.kind == IncidentKind::kHostOom) && !raised) {
    if (a.kind == IncidentKind::kSignalDeath)
      return a.signal == (b.signal != 0 ? b.signal : SIGKILL);
    return a.kind == IncidentKind::kHostOom &&
           (b.signal == SIGKILL || b.kind == IncidentKind::kHostOom);
  }
  // The program's word for what the kernel saw of it, however it puts it.
  if (a.kind == b.kind && (a.kind == IncidentKind::kRendezvous || a.kind == IncidentKind::kStorage))
    return other.candidate->store != cause.candidate->store;
  return a.kind == IncidentKind::kNonZeroExit && a.role == logs::Role::kWrapper && !IsOfWhoLeft(a);
}

bool LeftByItself(const JobFeatures& f, const std::vector<Cause>& causes, const Cause& lost) {
  if (FirstToLeave(f, causes, lost) != nullptr) return true;
  constexpr Duration kTogether = Seconds(1);  // a status is read behind what the socket tells
  constexpr int32_t kSignalled = 128;
  const Incident& loss = lost.incident();
  const auto tells_of_loss = [&causes](int32_t rank) {
    return std::any_of(causes.begin(), causes.end(), [rank](const Cause& cause) {
      return cause.incident().kind == IncidentKind::kPeerLost && cause.incident().rank == rank;
    });
  };
  return std::any_of(causes.begin(), causes.end(), [&](const Cause& cause) {
    const Incident& exited = cause.incident();
    if (exited.shape == kLeftEarly) return exited.rank != loss.rank;
    const bool code = exited.kind == IncidentKind::kNonZeroExit && exited.rank >= 0 &&
                      exited.exit_code > 0 && exited.exit_code < kSignalled &&
                      cause.candidate->store == proto::STORE_PROCESS;
    if (!code || tells_of_loss(exited.rank)) return false;
    // Who tells of the loss after that is another one.
    return loss.rank < 0 ? exited.t < loss.t
                         : exited.rank != loss.rank && exited.t <= loss.t + kTogether;
  });
}

const Cause* FirstToLeave(const JobFeatures& f, const std::vector<Cause>& causes,
                          const Cause& lost) {
  constexpr Duration kSlowExit = Seconds(10);
  constexpr int32_t kOfAnException = 1, kSignalled = 128;
  const bool all_here = f.world_size > 1 && f.rank_pids.size() >= static_cast<size_t>(f.world_size);
  if (!all_here || !WasClosedInOrder(lost.incident())) return nullptr;
  const Cause* first = nullptr;
  for (const Cause& cause : causes) {
    if (cause.incident().shape != "wait_status" || cause.incident().rank < 0) continue;
    if (first == nullptr || cause.incident().t < first->incident().t) first = &cause;
  }
  if (first == nullptr) return nullptr;
  const Incident& exit = first->incident();
  if (exit.kind != IncidentKind::kNonZeroExit || exit.exit_code <= kOfAnException ||
      exit.exit_code >= kSignalled || exit.t - lost.incident().t > kSlowExit)
    return nullptr;
  // A handler of the loss gives every rank its code.
  const bool shared = std::any_of(causes.begin(), causes.end(), [&exit](const Cause& other) {
    const Incident& incident = other.incident();
    const bool tells = incident.kind == IncidentKind::kPeerLost && incident.rank == exit.rank;
    const bool alike = incident.shape == "wait_status" && incident.rank != exit.rank &&
                       incident.exit_code == exit.exit_code;
    return tells || alike;
  });
  return shared ? nullptr : first;
}

bool FollowsRoot(const Cause& cause) {
  const Incident& incident = cause.incident();
  return incident.shape == "elastic_summary" && incident.sub != kRootCause;
}

bool IsAboutConnecting(const Incident& incident) {
  if (incident.kind != IncidentKind::kException) return false;
  constexpr std::string_view kTypes[] = {"ConnectionError", "ConnectionRefusedError",
                                         "TimeoutError", "timeout", "gaierror"};
  const std::string& type = incident.exception_type;
  const std::string_view last = std::string_view(type).substr(type.rfind('.') + 1);
  if (std::find(std::begin(kTypes), std::end(kTypes), last) != std::end(kTypes)) return true;
  constexpr std::string_view kWords[] = {
      "onnection refused", "No route to host",          "is unreachable",  "ddress already in use",
      "timed out",         "Name or service not known", "name resolution", "onnection timed out"};
  return std::any_of(std::begin(kWords), std::end(kWords), [&](std::string_view words) {
    return incident.message.find(words) != std::string::npos;
  });
}

bool WasClosedInOrder(const Incident& loss) {
  constexpr std::string_view kWords[] = {"Connection closed by peer",
                                         "Connection closed by remote peer"};
  return loss.kind == IncidentKind::kPeerLost &&
         std::any_of(std::begin(kWords), std::end(kWords), [&](std::string_view words) {
           return loss.message.find(words) != std::string::npos ||
                  loss.line.find(words) != std::string::npos;
         });
}

bool OfProcessGroup(const Incident& incident) {
  if (incident.frame == FrameKind::kCollective || incident.frame == FrameKind::kRendezvous)
    return true;
  if (incident.shape.starts_with("nccl")) return true;
  return HasField(incident, "backend");
}

bool EndedItsRank(const std::vector<windows::Candidate>& all, const windows::Candidate& raised) {
  const auto same = [&raised](const Incident& other) {
    const Incident& own = raised.incident;
    return (own.pid != 0 && own.pid == other.pid) || (own.rank >= 0 && own.rank == other.rank) ||
           (own.local_rank >= 0 && own.local_rank == other.local_rank);
  };
  for (const windows::Candidate& later : all) {
    if (later.order <= raised.order || !same(later.incident)) continue;
    // The next thing that is said of it.
    return later.incident.kind == IncidentKind::kNonZeroExit && later.incident.exit_code > 0;
  }
  return false;
}

bool WasUncaught(const Incident& incident) {
  return HasField(incident, "uncaught");
}

bool IsPassingWait(const Incident& incident) {
  return incident.kind == IncidentKind::kCollectiveTimeout && incident.sub == subs::kHang;
}

bool HasRecordBefore(const windows::Candidate& said, const windows::CitedPoint& first) {
  const bool behind =
      first.present() && said.stream == first.stream && said.incident.offset < first.offset;
  return said.progress_before > 0 && !behind;
}

bool OutgrowsBuffers(const windows::Candidate& said, const windows::CitedPoint& record,
                     int32_t writers) {
  // Python's buffer for a file or a pipe (io.DEFAULT_BUFFER_SIZE); glibc's is half of it.
  constexpr int64_t kBuffer = 8192;
  return record.present() && said.stream == record.stream &&
         record.offset - said.incident.offset > 2 * kBuffer * writers;
}

bool IsSurvivorsAbort(const std::vector<Cause>& causes, const Cause& abort) {
  if (abort.incident().signal != SIGABRT) return false;
  return std::any_of(causes.begin(), causes.end(), [&abort](const Cause& cause) {
    const Incident& exited = cause.incident();
    const bool failed =
        exited.kind == IncidentKind::kNonZeroExit && exited.exit_code > 0 && exited.exit_code < 128;
    const bool other =
        (exited.rank >= 0 && abort.incident().rank >= 0 && exited.rank != abort.incident().rank) ||
        (exited.pid != 0 && abort.incident().pid != 0 && exited.pid != abort.incident().pid);
    return failed && other;
  });
}

bool AfterAnExit(const std::vector<Cause>& causes, const Cause& takedown) {
  return std::any_of(causes.begin(), causes.end(), [&](const Cause& cause) {
    const Incident& incident = cause.incident();
    return incident.kind == IncidentKind::kNonZeroExit && incident.exit_code != 128 + SIGTERM &&
           incident.exit_code != 128 + SIGINT &&
           cause.candidate->order < takedown.candidate->order &&
           !(takedown.incident().shape == "signal_sent" && takedown.incident().t < incident.t);
  });
}

std::string_view SenderOf(const std::vector<Cause>& causes, const Cause& cause) {
  const Incident& incident = cause.incident();
  if (incident.kind != IncidentKind::kSignalDeath) return {};
  for (const Cause& sent : causes) {
    const std::vector<KeyValue>& fields = sent.incident().fields;
    if (sent.incident().shape != "signal_sent" || fields.empty()) continue;
    if (sent.incident().signal == incident.signal && fields.front().key == "sent_by" &&
        SharesProcess(*sent.candidate, *cause.candidate))
      return fields.front().value;
  }
  return {};
}

bool FollowsARequest(const std::vector<Cause>& causes, const Cause& death) {
  constexpr Duration kSameMoment = Seconds(2);
  constexpr Duration kLongestWait = Seconds(90);
  const Incident& ended = death.incident();
  if (ended.signal != SIGKILL && ended.signal != SIGABRT) return false;
  const std::string_view sender = SenderOf(causes, death);
  const bool own = sender == "job" || sender == "launcher";
  if (!sender.empty() && !own && !(ended.signal == SIGABRT && sender == "itself")) return false;
  return std::any_of(causes.begin(), causes.end(), [&](const Cause& other) {
    const Incident& asked = other.incident();
    const bool end = asked.kind == IncidentKind::kSchedulerEnd && asked.sub != subs::kFailed &&
                     other.candidate->store != proto::STORE_SCHEDULER;
    if (!end && !IsTakedown(asked)) return false;
    if (other.role == Cause::Role::kRecovered || other.role == Cause::Role::kDenied) return false;
    const Duration after = ended.t - asked.t;
    return after > kSameMoment && after <= kLongestWait;
  });
}

namespace {

std::string_view Field(const Cause& cause, std::string_view key) {
  for (const KeyValue& field : cause.incident().fields) {
    if (field.key == key) return field.value;
  }
  return {};
}

bool IsTimeout(const Cause& cause) {
  const bool counts = cause.role == Cause::Role::kInitiating ||
                      cause.role == Cause::Role::kSupport || cause.role == Cause::Role::kCascade;
  return counts && cause.incident().kind == logs::IncidentKind::kCollectiveTimeout &&
         cause.candidate->store == proto::STORE_LOG && !cause.candidate->ranks.empty();
}

}  // namespace

bool IsOfOneCollective(const Cause& a, const Cause& b) {
  constexpr std::string_view kKeys[] = {"seq", "op", "pg"};
  return IsTimeout(a) && IsTimeout(b) && !Field(a, "seq").empty() && !Field(a, "op").empty() &&
         std::all_of(std::begin(kKeys), std::end(kKeys),
                     [&](std::string_view key) { return Field(a, key) == Field(b, key); });
}

std::vector<int32_t> RanksThatGaveUp(const std::vector<Cause>& causes, const Cause& cause) {
  std::vector<int32_t> ranks = cause.candidate->ranks;
  for (const Cause& other : causes) {
    if (&other == &cause || !IsOfOneCollective(cause, other)) continue;
    ranks.insert(ranks.end(), other.candidate->ranks.begin(), other.candidate->ranks.end());
  }
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

bool IsToldWith(const Cause& again, const Cause& told, const Evidence& evidence) {
  if (&again == &told || !IsTimeout(again) || !IsTimeout(told) || evidence.ranks.size() < 2)
    return false;
  // What a watchdog prints below its first line need not repeat which collective it was.
  const bool same = IsOfOneCollective(again, told) ||
                    (again.incident().shape == "nccl_watchdog_follow" &&
                     (Field(again, "seq").empty() || Field(again, "seq") == Field(told, "seq")));
  return same && std::includes(evidence.ranks.begin(), evidence.ranks.end(),
                               again.candidate->ranks.begin(), again.candidate->ranks.end());
}

}  // namespace rankscope::features
