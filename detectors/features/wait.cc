// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "detectors/features/landmarks.h"

namespace rankscope::features {
namespace {

using windows::ProcessWaits;
using windows::WaitSecond;

// Samples come each second; who is silent for longer has ended, or nobody looks.
constexpr Duration kFresh = Seconds(5);
constexpr double kWindowSeconds = 60;
// Evidence is made for so many ranks, those that stand out first: of a large node nobody reads
// more.
constexpr size_t kMostCited = 16;

bool IsCompiler(std::string_view comm) {
  constexpr std::array<std::string_view, 12> kCompilers = {"nvcc",    "cicc",  "ptxas", "fatbinary",
                                                           "cc1plus", "cc1",   "g++",   "gcc",
                                                           "ninja",   "clang", "as",    "ld"};
  return std::find(kCompilers.begin(), kCompilers.end(), comm) != kCompilers.end();
}

// Of the looks of the newest minute, how many found the main thread in which class.
std::array<double, kWaitClasses> LooksOfMinute(const ProcessWaits& waits) {
  std::array<double, kWaitClasses> looks{};
  double span = 0, count = 0;
  for (size_t i = 0; i < waits.count() && span < kWindowSeconds; ++i) {
    looks[static_cast<size_t>(WaitClassOf(waits.newest(i).main))] += 1;
    span += waits.newest(i).span;
    ++count;
  }
  for (double& share : looks) share /= std::max(1.0, count);
  return looks;
}

double ShareOf(const std::array<double, kWaitClasses>& looks, WaitClass of) {
  return looks[static_cast<size_t>(of)];
}

StorageWait StorageOf(const std::array<double, kWaitClasses>& looks) {
  const double network = ShareOf(looks, WaitClass::kNetworkFile);
  const double local = ShareOf(looks, WaitClass::kBlock);
  return {network + local, network > local ? WaitClass::kNetworkFile : WaitClass::kBlock};
}

// Since when it cannot run: a freezer holds whatever state its thread was in.
Timestamp HeldSince(const ProcessWaits& waits) {
  return waits.frozen_since.ns != 0 ? waits.frozen_since : waits.stopped_since;
}

void MeasureQuota(const windows::JobWindow& job, Timestamp now, RankWait& rank) {
  const auto found = job.ranks().find(rank.rank);
  if (found == job.ranks().end()) return;
  const windows::SampleRings& rings = found->second.rings;
  constexpr auto kLooks = static_cast<size_t>(kWindowSeconds) + 1;
  const double periods = rings.GrownOver(SignalId::kCpuPeriods, kLooks);
  const double throttled = rings.GrownOver(SignalId::kCpuThrottledPeriods, kLooks);
  if (now - rings.LastTime(SignalId::kCpuQuota) > kFresh || !(periods > 0)) return;
  rank.cpu_quota = rings.Last(SignalId::kCpuQuota);
  rank.throttled_share = throttled > 0 ? std::min(1.0, throttled / periods) : 0;
}

RankWait Measure(const windows::JobWindow& job, const ProcessWaits& waits, Timestamp now) {
  RankWait rank;
  rank.rank = waits.rank;
  rank.process = waits.process;
  rank.main = WaitClassOf(waits.main);
  rank.has_run = waits.has_run;
  rank.main_wait_seconds = waits.main_wait_seconds;
  rank.uninterruptible = waits.uninterruptible;
  rank.still_seconds = job.RunningSeconds(waits.ran, now);
  rank.frozen = waits.frozen_since.ns != 0;
  if (const Timestamp since = HeldSince(waits); since.ns != 0) {
    const double unheard = job.hearing().Within(since, now).seconds();
    rank.stopped_seconds = std::max(1e-9, (now - since).seconds() - unheard);
    rank.traced = !rank.frozen && !waits.tracer.empty();
  }
  rank.cpu_since_record = waits.main_running - waits.main_at_record;
  rank.cpu_per_record = waits.main_per_record;
  MeasureQuota(job, now, rank);
  int64_t samples = 0;
  double main_running = 0, main_runnable = 0, running = 0, silent = 0;
  for (size_t i = 0; i < waits.count() && rank.window_seconds < kWindowSeconds; ++i) {
    const WaitSecond& second = waits.newest(i);
    if (rank.recent_seconds < WaitFeatures::kRecentSeconds) {
      rank.recent_seconds += second.span;
      main_running += second.main_running;
      main_runnable += second.main_runnable;
      running += second.running;
      silent += second.silent;
      rank.main_share[static_cast<size_t>(WaitClassOf(second.main))] += 1;
      ++samples;
    }
    rank.window_seconds += second.span;
    rank.window_running_share += second.main_running;
    rank.window_runnable_share += second.main_runnable;
  }
  if (samples == 0 || !(rank.recent_seconds > 0)) return rank;
  for (double& share : rank.main_share) share /= static_cast<double>(samples);
  rank.main_running_share = main_running / rank.recent_seconds;
  rank.main_runnable_share = main_runnable / rank.recent_seconds;
  rank.running_share = running / rank.recent_seconds;
  rank.silent_share = silent / rank.recent_seconds;
  rank.window_running_share /= rank.window_seconds;
  rank.window_runnable_share /= rank.window_seconds;
  const std::array<double, kWaitClasses> looks = LooksOfMinute(waits);
  rank.storage = StorageOf(looks);
  rank.window_socket_share = ShareOf(looks, WaitClass::kSocket);
  return rank;
}

Evidence OfProcess(EvidenceKind kind, const RankWait& rank, const JobFeatures& f) {
  Evidence evidence;
  evidence.kind = kind;
  evidence.store = proto::STORE_PROCESS;
  evidence.ranks = {rank.rank};
  evidence.process = rank.process;
  evidence.begin = evidence.end = f.now;
  return evidence;
}

void CiteSnapshot(const windows::ThreadSnapshot& seen, Citer& citer, JobFeatures& f,
                  RankWait& rank) {
  Evidence evidence = OfProcess(EvidenceKind::kThreadStack, rank, f);
  evidence.begin = evidence.end = seen.t;
  evidence.values = {{FieldId::kPhrase, std::string(CausePhrase(rank.cause))},
                     {FieldId::kWchan, seen.wchan},
                     {FieldId::kSyscall, seen.syscall},
                     {FieldId::kFd, seen.fd},
                     {FieldId::kStack, seen.stack},
                     {FieldId::kPython, seen.python},
                     {seen.fd == "socket" ? FieldId::kPeer : FieldId::kHolder, seen.holder},
                     {FieldId::kSetting, seen.syscall}};
  rank.snapshot_evidence = citer.Add(std::move(evidence));
}

void CiteStorage(Citer& citer, const JobFeatures& f, RankWait& rank) {
  constexpr double kNotable = 0.3;
  const bool own = rank.storage.share >= rank.worker_storage.share;
  const StorageWait& wait = own ? rank.storage : rank.worker_storage;
  if (wait.share < kNotable) return;
  Evidence evidence = OfProcess(EvidenceKind::kStorageWait, rank, f);
  evidence.observed = wait.share;
  evidence.unit = "ratio";
  evidence.begin = f.now - Seconds(rank.window_seconds);
  evidence.values = {
      {FieldId::kClass, std::string(kWaitClassNames[static_cast<size_t>(wait.kind)])},
      {FieldId::kWorker, own ? "" : "yes"},
      {FieldId::kSeconds, static_cast<int64_t>(rank.window_seconds)},
      {FieldId::kSocketPercent, static_cast<int64_t>(100 * rank.window_socket_share)}};
  rank.storage_evidence = citer.Add(std::move(evidence));
}

void CiteQuota(Citer& citer, const JobFeatures& f, RankWait& rank) {
  constexpr double kNotable = 0.1;
  if (rank.throttled_share < kNotable) return;
  Evidence evidence = OfProcess(EvidenceKind::kCpuQuota, rank, f);
  evidence.observed = rank.throttled_share;
  evidence.unit = "ratio";
  evidence.begin = f.now - Seconds(rank.window_seconds);
  evidence.values = {{FieldId::kCpu, rank.cpu_quota}};
  rank.quota_evidence = citer.Add(std::move(evidence));
}

void Cite(const ProcessWaits& waits, Citer& citer, JobFeatures& f, RankWait& rank) {
  const auto main = std::max_element(rank.main_share.begin(), rank.main_share.end());
  const auto where = static_cast<size_t>(main - rank.main_share.begin());
  Evidence evidence = OfProcess(EvidenceKind::kThreads, rank, f);
  evidence.observed = *main;
  evidence.unit = "ratio";
  evidence.begin = f.now - Seconds(rank.recent_seconds);
  evidence.values = {{FieldId::kClass, std::string(kWaitClassNames[where])},
                     {FieldId::kSeconds, static_cast<int64_t>(rank.recent_seconds)},
                     {FieldId::kStill, static_cast<int64_t>(rank.still_seconds)},
                     {FieldId::kRunningPercent, static_cast<int64_t>(100 * rank.running_share)}};
  if (rank.window_runnable_share > 0.1) {
    Evidence starved = OfProcess(EvidenceKind::kStarved, rank, f);
    starved.observed = rank.window_runnable_share;
    starved.unit = "ratio";
    starved.begin = f.now - Seconds(rank.window_seconds);
    starved.values = {
        {FieldId::kSeconds, static_cast<int64_t>(rank.window_seconds)},
        {FieldId::kRunningPercent, static_cast<int64_t>(100 * rank.window_running_share)}};
    if (rank.OutranRecords()) {
      starved.values.Set(FieldId::kCpu, rank.cpu_since_record);
      starved.values.Set(FieldId::kRate, rank.cpu_per_record);
    }
    rank.evidence = citer.Add(std::move(starved));
  } else {
    rank.evidence = citer.Add(std::move(evidence));
  }
  CiteStorage(citer, f, rank);
  CiteQuota(citer, f, rank);
  if (rank.stopped_seconds > 0) {
    Evidence stopped = OfProcess(EvidenceKind::kStopped, rank, f);
    stopped.observed = rank.stopped_seconds;
    stopped.unit = "s";
    stopped.begin = HeldSince(waits);
    stopped.values = {{FieldId::kBy, rank.frozen ? "freezer" : ""},
                      {FieldId::kTracer, rank.frozen ? std::string() : waits.tracer}};
    if (!rank.frozen && waits.stopper_pid > 0) {
      stopped.values.Set(FieldId::kSender, waits.stopper);
      stopped.values.Set(FieldId::kSenderPid, std::to_string(waits.stopper_pid));
      stopped.values.Set(FieldId::kSenderUid, std::to_string(waits.stopper_uid));
    }
    rank.stopped_evidence = citer.Add(std::move(stopped));
  }
  // A snapshot speaks of the standstill in which it was taken.
  if (waits.snapshot.present() && waits.snapshot.t >= waits.ran) {
    const windows::ThreadSnapshot& seen = waits.snapshot;
    // A process of another node, or of another container, may be a rank.
    const bool foreign = seen.fd == "socket" && seen.holder.find("(pid ") != std::string::npos;
    rank.cause = CauseOf({seen.python, seen.stack, seen.wchan, seen.fd, foreign});
    CiteSnapshot(waits.snapshot, citer, f, rank);
  }
}

// How much a rank differs from one that computes and waits for others.
int Standing(const RankWait& rank) {
  if (rank.stopped_seconds > 0) return 3;
  if (rank.window_runnable_share > 0.1) return 2;
  if (std::max(rank.storage.share, rank.worker_storage.share) > 0.3) return 2;
  return rank.main == WaitClass::kRunning || rank.main == WaitClass::kSocket ||
                 rank.main == WaitClass::kFutex
             ? 0
             : 1;
}

}  // namespace

void DescribeWaits(const windows::JobWindow& job, const windows::AttemptWindow& window,
                   Citer& citer, JobFeatures& f) {
  const windows::WaitTracker& tracker = window.kernel.waits;
  std::map<int32_t, std::pair<RankWait, const ProcessWaits*>> ranks;
  for (const auto& [key, waits] : tracker.processes()) {
    if (waits.worker || (f.now - waits.last > kFresh && HeldSince(waits).ns == 0)) continue;
    ranks[waits.rank] = {Measure(job, waits, f.now), &waits};
  }
  const ProcessWaits* compiler = nullptr;
  for (const auto& [key, waits] : tracker.processes()) {
    if (!waits.worker || f.now - waits.last > kFresh) continue;
    if (IsCompiler(waits.comm)) {
      ++f.waits.compilers;
      compiler = &waits;
    }
    const auto found = ranks.find(waits.rank);
    if (found == ranks.end()) continue;
    RankWait& rank = found->second.first;
    const double still = job.RunningSeconds(waits.ran, f.now);
    rank.workers_still_seconds =
        rank.workers == 0 ? still : std::min(rank.workers_still_seconds, still);
    rank.still_seconds = std::min(rank.still_seconds, still);
    const StorageWait storage = StorageOf(LooksOfMinute(waits));
    if (storage.share > rank.worker_storage.share) rank.worker_storage = storage;
    ++rank.workers;
    ++rank.workers_in[static_cast<size_t>(WaitClassOf(waits.main))];
  }
  std::vector<std::pair<RankWait, const ProcessWaits*>*> order;
  order.reserve(ranks.size());
  for (auto& [number, rank] : ranks) order.push_back(&rank);
  std::stable_sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    return Standing(a->first) > Standing(b->first);
  });
  for (size_t i = 0; i < order.size() && i < kMostCited; ++i) {
    Cite(*order[i]->second, citer, f, order[i]->first);
  }
  for (auto& [number, rank] : ranks) f.waits.ranks.push_back(rank.first);
  if (compiler != nullptr) {
    RankWait of;
    of.rank = compiler->rank;
    of.process = compiler->process;
    Evidence evidence = OfProcess(EvidenceKind::kCompiling, of, f);
    evidence.observed = f.waits.compilers;
    evidence.values = {{FieldId::kText, compiler->comm}, {FieldId::kName, compiler->comm}};
    f.waits.compilers_evidence = citer.Add(std::move(evidence));
  }
}

}  // namespace rankscope::features
