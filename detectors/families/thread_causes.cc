// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/families/thread_causes.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <span>

#include "detectors/families/curve.h"

namespace rankscope::families {
namespace {

using features::JobFeatures;
using features::kNoEvidence;
using features::RankWait;
using features::StackCause;

constexpr double kNearlyAlways = 0.9;
constexpr double kEnoughSeconds = 10;  // of samples, before a share of them means anything
constexpr double kStillSeconds = 15;
constexpr double kStarvedShare = 0.75;  // beside it, what runs is too little to get anywhere
// Silence means anything only after this much regularity.
constexpr int64_t kProgressForSilence = 3;

struct SubRow {
  std::string_view sub;
  std::string_view phrase;
  proto::Domain domain;
  bool may_be_all;  // all ranks alike: the thing that they wait for is at fault, and no rank
};

constexpr SubRow kStoppedRow{"stopped", "is stopped by a signal", proto::DOMAIN_UNKNOWN, false};
constexpr SubRow kFrozenRow{"stopped", "is frozen by the freezer of its cgroup",
                            proto::DOMAIN_UNKNOWN, false};
constexpr SubRow kDebuggerRow{"debugger", "is held by a debugger", proto::DOMAIN_WORKLOAD, false};
constexpr SubRow kDataLoaderRow{"dataloader", "waits for its data loader, whose workers do not run",
                                proto::DOMAIN_WORKLOAD, true};
constexpr SubRow kFileLockRow{"file_lock", "waits for a file lock that another process holds",
                              proto::DOMAIN_UNKNOWN, true};
constexpr SubRow kStorageRow{"storage", "waits for a file system", proto::DOMAIN_INFRASTRUCTURE,
                             true};
constexpr SubRow kDriverRow{"driver", "waits inside the GPU driver", proto::DOMAIN_INFRASTRUCTURE,
                            false};
constexpr SubRow kSleepRow{"sleep", "sleeps in a timed wait", proto::DOMAIN_WORKLOAD, false};
constexpr SubRow kOwnWorkRow{"own_work", "is busy with work that the other ranks do not do",
                             proto::DOMAIN_WORKLOAD, false};
constexpr SubRow kBusyRow{"busy", "uses a CPU without waiting, and enters no collective",
                          proto::DOMAIN_WORKLOAD, false};
constexpr SubRow kStarvedRow{"starved", "waits for a CPU and gets hardly any",
                             proto::DOMAIN_INFRASTRUCTURE, false};

const SubRow* RowOfStack(StackCause cause) {
  switch (cause) {
    case StackCause::kDataLoader:
      return &kDataLoaderRow;
    case StackCause::kFileLock:
    case StackCause::kBuildLock:
      return &kFileLockRow;
    case StackCause::kNetworkFile:
    case StackCause::kFuse:
    case StackCause::kLocalFile:
      return &kStorageRow;
    case StackCause::kDriver:
      return &kDriverRow;
    case StackCause::kDebugger:
      return &kDebuggerRow;
    case StackCause::kSleep:
      return &kSleepRow;
    case StackCause::kGarbageCollection:
    case StackCause::kCompile:
    case StackCause::kSave:
    case StackCause::kLoad:
    case StackCause::kDownload:
    case StackCause::kChild:
    case StackCause::kPipe:
    case StackCause::kFifo:
    case StackCause::kPeer:
      return &kOwnWorkRow;
    default:
      return nullptr;
  }
}

// A worker that sleeps is no idle one: these wait in a pipe. So does the rank that waits for it,
// which nobody does who waits in a collective; where others of the job wait so too, it may be for
// their store, and the sleeper is a monitor of somebody's.
bool WorkersSleep(const JobFeatures& f, const RankWait& rank) {
  if (rank.share(WaitClass::kSocket) < kNearlyAlways) return false;
  return f.waits.ranks.size() > 1 &&
         std::all_of(f.waits.ranks.begin(), f.waits.ranks.end(), [&rank](const RankWait& other) {
           constexpr double kSometimes = 0.5;
           return other.rank == rank.rank || other.share(WaitClass::kSocket) < kSometimes;
         });
}

// Workers that have nothing to do wait for their next order, in a pipe; a pool's wait for the lock
// of that pipe, but for the one that holds it. Only where every one of them waits for something
// else does the rank wait for them.
bool WorkersStuck(const JobFeatures& f, const RankWait& rank) {
  const double waits = rank.share(WaitClass::kSocket) + rank.share(WaitClass::kFutex);
  if (rank.workers == 0 || waits < kNearlyAlways || rank.workers_still_seconds < kStillSeconds)
    return false;
  int32_t stuck = 0;
  for (const WaitClass of : {WaitClass::kFutex, WaitClass::kFileLock, WaitClass::kNetworkFile,
                             WaitClass::kBlock, WaitClass::kStopped}) {
    stuck += rank.workers_in[static_cast<size_t>(of)];
  }
  if (WorkersSleep(f, rank)) stuck += rank.workers_in[static_cast<size_t>(WaitClass::kSleep)];
  return stuck == rank.workers;
}

// Starvation slows a thread down and stops none: one that has had the CPU time of several steps
// since the last one is about something else. Where no step tells what it costs, want of a CPU
// explains a standstill only as long as it gets hardly any.
bool IsStarved(const RankWait& rank) {
  constexpr double kHardlyAny = 0.05;
  if (rank.main_runnable_share < kStarvedShare) return false;
  const bool known = std::isfinite(rank.cpu_since_record) && std::isfinite(rank.cpu_per_record);
  return known ? !rank.OutranRecords() : rank.main_running_share <= kHardlyAny;
}

// A quota that is used up in most of its periods is what the CPUs' other users would be.
bool IsThrottled(const RankWait& rank) {
  constexpr double kMostPeriods = 0.5;
  return rank.throttled_share >= kMostPeriods;
}

const SubRow* RowOf(const JobFeatures& f, const RankWait& rank) {
  if (rank.frozen) return &kFrozenRow;
  if (rank.stopped_seconds > 0) return rank.traced ? &kDebuggerRow : &kStoppedRow;
  if (rank.recent_seconds < kEnoughSeconds) return nullptr;
  const bool never_waits = rank.main_running_share + rank.main_runnable_share >= kNearlyAlways;
  // A thread in the CPU's queue moves as little as one that waits, and waits for nobody.
  if (never_waits && IsStarved(rank)) return &kStarvedRow;
  const bool still = rank.still_seconds >= kStillSeconds;
  if (still) {
    if (rank.cause == StackCause::kPipe && WorkersStuck(f, rank)) return &kDataLoaderRow;
    if (const SubRow* row = RowOfStack(rank.cause)) return row;
    if (!features::IsVictim(rank.cause)) return nullptr;
    // Python's frames say that it waits for others: no share of time says more.
    if (rank.cause != StackCause::kUnknown) return nullptr;
    if (rank.share(WaitClass::kFileLock) >= kNearlyAlways) return &kFileLockRow;
    if (rank.share(WaitClass::kNetworkFile) >= kNearlyAlways ||
        rank.share(WaitClass::kBlock) >= kNearlyAlways)
      return &kStorageRow;
    if (rank.share(WaitClass::kGpu) >= kNearlyAlways) return &kDriverRow;
    if (rank.share(WaitClass::kSleep) >= kNearlyAlways) return &kSleepRow;
    if (rank.share(WaitClass::kChild) >= kNearlyAlways) return &kOwnWorkRow;
    if (WorkersStuck(f, rank)) return &kDataLoaderRow;
    return nullptr;
  }
  // On a CPU or in its queue all the time, and never in a wait.
  if (!never_waits) return nullptr;
  return rank.silent_share >= kNearlyAlways * rank.running_share ? &kBusyRow : nullptr;
}

bool Waits(const RankWait& rank) {
  return rank.stopped_seconds == 0 && rank.recent_seconds >= kEnoughSeconds &&
         rank.main_running_share + rank.main_runnable_share < 0.1;
}

// It reads or writes files and gets on with it: saving, evaluating, loading, whether it says so or
// not.
bool WorksOnFiles(const RankWait& rank) {
  constexpr double kOften = 0.3, kMoves = 5;
  return rank.recent_seconds >= kEnoughSeconds && rank.stopped_seconds == 0 &&
         rank.still_seconds < kMoves &&
         rank.share(WaitClass::kBlock) + rank.share(WaitClass::kNetworkFile) >= kOften;
}

// Its card waits inside a collective, for others: however its thread passes the time meanwhile, in
// the driver or asleep between looks, it is not the one that they all wait for.
bool CardWaits(const JobFeatures& f, int32_t rank) {
  return std::any_of(f.gpu.gpus.begin(), f.gpu.gpus.end(), [rank](const features::RunGpu& gpu) {
    return gpu.spin_seconds >= kStillSeconds &&
           std::binary_search(gpu.ranks.begin(), gpu.ranks.end(), rank);
  });
}

using Told = std::vector<std::pair<const RankWait*, const SubRow*>>;

// The ranks that rest alike: who looks after its collective between two sleeps does so for most of
// its time, and one of them for a little more than the next.
size_t CountAtRest(const JobFeatures& f, const Told& told, const SubRow& row) {
  constexpr double kMostly = 0.75;
  const WaitClass rest = &row == &kSleepRow ? WaitClass::kSleep : WaitClass::kGpu;
  return static_cast<size_t>(
      std::count_if(f.waits.ranks.begin(), f.waits.ranks.end(), [&](const RankWait& rank) {
        if (rank.stopped_seconds > 0) return false;
        const auto own = std::find_if(told.begin(), told.end(),
                                      [&rank](const auto& of) { return of.first == &rank; });
        if (own != told.end()) return own->second == &row;
        return Waits(rank) && rank.cause == StackCause::kUnknown && rank.share(rest) >= kMostly;
      }));
}

void Cite(const RankWait& rank, ThreadCause& cause) {
  for (const features::EvidenceRef ref :
       {rank.stopped_evidence, rank.snapshot_evidence, rank.evidence, rank.quota_evidence}) {
    // What a frozen thread was about when it was caught is nobody's fault.
    if (rank.frozen && ref != rank.stopped_evidence) continue;
    if (ref != kNoEvidence) cause.shows.push_back(ref);
  }
}

bool WaitsForChild(const RankWait& rank) {
  return rank.cause == StackCause::kChild ||
         (features::IsVictim(rank.cause) && rank.share(WaitClass::kChild) >= kNearlyAlways);
}

ThreadCause Made(const JobFeatures& f, const SubRow& row, const RankWait& rank) {
  ThreadCause cause;
  cause.sub = row.sub;
  cause.phrase = row.phrase;
  if (rank.stopped_seconds == 0 && !features::IsVictim(rank.cause))
    cause.phrase = features::CausePhrase(rank.cause);
  cause.domain = row.domain;
  if (rank.frozen) cause.advice = "frozen";
  if (&row == &kStarvedRow && IsThrottled(rank)) cause.advice = "cpu_quota";
  if (rank.stopped_seconds == 0) {
    if (rank.cause == StackCause::kFuse) cause.advice = "fuse";
    if (&row == &kOwnWorkRow && WaitsForChild(rank)) cause.advice = "waits_for_child";
    if (&row == &kOwnWorkRow && rank.cause == StackCause::kPipe) cause.advice = "waits_for_pipe";
    if (&row == &kOwnWorkRow && rank.cause == StackCause::kFifo) cause.advice = "waits_for_fifo";
    if (&row == &kOwnWorkRow && rank.cause == StackCause::kPeer) cause.advice = "waits_for_peer";
  }
  cause.ranks = {rank.rank};
  cause.proved = rank.stopped_seconds > 0;
  if (rank.stopped_seconds > 0) cause.onset = f.now - Seconds(rank.stopped_seconds);
  Cite(rank, cause);
  return cause;
}

void Take(const ThreadCause& cause, Finding& finding) {
  finding.sub = cause.sub;
  finding.ranks = cause.ranks;
  finding.domain = cause.domain;
  if (!cause.advice.empty()) finding.advice = cause.advice;
  std::vector<features::EvidenceRef> shows = cause.shows;
  for (const features::EvidenceRef ref : finding.shows) {
    if (std::find(shows.begin(), shows.end(), ref) == shows.end()) shows.push_back(ref);
  }
  finding.shows = std::move(shows);
  finding.root.insert(finding.root.begin(), cause.shows.begin(), cause.shows.end());
  finding.values.Set(FieldId::kTrigger, cause.phrase);
  std::erase(finding.open, Question::kHangTrigger);
  if (!cause.ranks.empty()) std::erase(finding.open, Question::kHangCulprit);
  if (cause.onset.ns != 0) finding.onset = cause.onset;
}

}  // namespace

ThreadCause CauseOfRank(const JobFeatures& f, const RankWait& rank) {
  const SubRow* const row = RowOf(f, rank);
  return row == nullptr ? ThreadCause{} : Made(f, *row, rank);
}

// `named`: the ranks that are not where the others wait, as something else than threads tells.
ThreadCause CauseOfStandstill(const JobFeatures& f, std::span<const int32_t> named) {
  Told told;
  size_t waiting = 0, stopped = 0;
  for (const RankWait& rank : f.waits.ranks) {
    const bool for_its_card = rank.stopped_seconds == 0 && CardWaits(f, rank.rank);
    const SubRow* const row = for_its_card ? nullptr : RowOf(f, rank);
    if (row != nullptr) {
      told.push_back({&rank, row});
      if (rank.stopped_seconds > 0) ++stopped;
    } else if (for_its_card || Waits(rank)) {
      ++waiting;
    }
  }
  // Who is stopped moves for nobody; what the others do follows from it.
  if (stopped > 0)
    std::erase_if(told, [](const auto& of) { return of.first->stopped_seconds == 0; });
  // Most sleep or stand in the GPU driver, and few do something else: a thread that waits for its
  // GPU, and the GPU inside a collective for the others, looks like that. So does each rank that
  // counts as waiting by its calls.
  const auto is_victim = [&f, &told, named](const auto& of) {
    const bool at_rest = of.second == &kDriverRow || of.second == &kSleepRow;
    // Something else names this one: those that sleep a little less than it are not like it.
    const bool is_named = std::find(named.begin(), named.end(), of.first->rank) != named.end();
    const auto as_it = static_cast<size_t>(std::count_if(
        told.begin(), told.end(), [&of](const auto& other) { return other.second == of.second; }));
    const size_t alike = is_named ? as_it : CountAtRest(f, told, *of.second);
    return at_rest && 2 * alike > f.waits.ranks.size();
  };
  const auto in_collective = [&f](const auto& of) {
    const auto& inside = f.collectives.waiting;
    return of.first->stopped_seconds == 0 && !f.collectives.absent.empty() &&
           std::binary_search(inside.begin(), inside.end(), of.first->rank);
  };
  Told actors;
  std::copy_if(told.begin(), told.end(), std::back_inserter(actors),
               [&](const auto& of) { return !is_victim(of) && !in_collective(of); });
  if (actors.empty() && std::all_of(told.begin(), told.end(), is_victim)) return {};
  if (!actors.empty() && actors.size() < told.size()) {
    waiting += told.size() - actors.size();
    told = std::move(actors);
  }
  if (told.empty()) return {};
  const SubRow* const row = told.front().second;
  const bool alike =
      std::all_of(told.begin(), told.end(), [row](const auto& of) { return of.second == row; });
  const bool all = told.size() == f.waits.ranks.size();
  // A few ranks keep the others waiting, or all of them wait for the same thing.
  const bool few = stopped > 0 || (2 * told.size() <= f.waits.ranks.size() && waiting > 0);
  if (!few && !(all && alike && row->may_be_all)) return {};
  ThreadCause cause = Made(f, *row, *told.front().first);
  for (size_t i = 1; i < told.size(); ++i) {
    constexpr size_t kShown = 6;
    cause.ranks.push_back(told[i].first->rank);
    if (cause.shows.size() < kShown) Cite(*told[i].first, cause);
  }
  if (!few) cause.ranks.clear();
  cause.others_wait = told.size() + waiting == f.waits.ranks.size();
  return cause;
}

// Where the main threads stand, for who reads: those first that stand where few do.
void ShowThreads(const JobFeatures& f, Finding& finding) {
  constexpr size_t kShown = 4;
  std::vector<const RankWait*> ranks;
  std::map<std::pair<WaitClass, StackCause>, size_t> places;
  for (const RankWait& rank : f.waits.ranks) {
    ranks.push_back(&rank);
    ++places[{rank.main, rank.cause}];
  }
  const auto alike = [&places](const RankWait* of) { return places[{of->main, of->cause}]; };
  std::stable_sort(ranks.begin(), ranks.end(),
                   [&alike](const RankWait* a, const RankWait* b) { return alike(a) < alike(b); });
  if (ranks.size() > kShown) ranks.resize(kShown);
  std::vector<features::EvidenceRef> shown;
  for (const RankWait* rank : ranks) {
    const features::EvidenceRef ref =
        rank->snapshot_evidence != kNoEvidence ? rank->snapshot_evidence : rank->evidence;
    if (ref == kNoEvidence) continue;
    if (std::find(finding.shows.begin(), finding.shows.end(), ref) == finding.shows.end())
      shown.push_back(ref);
  }
  const auto behind_silence = finding.shows.begin() + (finding.shows.empty() ? 0 : 1);
  finding.shows.insert(behind_silence, shown.begin(), shown.end());
}

void AddThreadCause(const JobFeatures& f, Finding& finding) {
  if (!finding.matched || !f.waits.known()) return;
  // Saving may take this long unseen, as where text tells of it.
  constexpr double kLongPhase = 600;
  const bool saving = f.silence_seconds < kLongPhase &&
                      std::any_of(f.waits.ranks.begin(), f.waits.ranks.end(), WorksOnFiles);
  if (saving || f.suspension.now) {
    finding = {};
    return;
  }
  const ThreadCause cause = CauseOfStandstill(f, finding.ranks);
  if (cause.sub.empty()) return ShowThreads(f, finding);
  // Who is not in the collective is known; threads say why that one is not, or prove another one.
  const bool same = finding.ranks.empty() || cause.ranks.empty() || finding.ranks == cause.ranks;
  if (!same && !cause.proved) return;
  Take(cause, finding);
  if (!cause.proved) return;
  // The kernel says that it is stopped, the text that nothing moves.
  finding.tier = proto::TIER_C;
  finding.cap = cause.others_wait ? cap::kInferred : cap::kUnseenSide;
  finding.component = "process";
}

Finding StandstillOfThreads(const JobFeatures& f) {
  if (!f.running || !f.timed || f.Primary() != nullptr || f.progress >= kProgressForSilence ||
      f.train_end || f.suspension.now)
    return {};
  const ThreadCause cause = CauseOfStandstill(f, {});
  if (!cause.proved || (f.now - cause.onset).seconds() < f.hang_floor_seconds) return {};
  Finding finding;
  finding.matched = true;
  finding.tier = proto::TIER_S;
  finding.cap =
      cause.others_wait ? cap::kOneSource : cap::kEvenOdds;  // nothing tells that it trained
  finding.component = "process";
  finding.symptom = "hang";
  finding.values = {{FieldId::kSeconds, (f.now - cause.onset).seconds()}};
  Take(cause, finding);
  Show(f.alive_evidence, finding);
  return finding;
}

}  // namespace rankscope::families
