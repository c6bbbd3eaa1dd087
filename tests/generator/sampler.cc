// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/generator/sampler.h"

#include <algorithm>
#include <cmath>

#include "detectors/model/wait_class.h"
#include "tests/generator/text.h"

namespace rankscope::generator {
namespace {

SampleBatch OfProcessBatch(const ProcessKey& key, std::vector<Sample> samples) {
  SampleBatch batch;
  batch.subject.kind = Subject::Kind::kProcess;
  batch.subject.process = key;
  batch.samples = std::move(samples);
  return batch;
}

WaitClass ClassOf(Doing doing) {
  switch (doing) {
    case Doing::kImport:
    case Doing::kHost:
    case Doing::kCompute:
    case Doing::kSpin:
      return WaitClass::kRunning;
    case Doing::kRead:
    case Doing::kWrite:
    case Doing::kStuckFile:
      return WaitClass::kNetworkFile;
    case Doing::kCompile:
      return WaitClass::kChild;
    case Doing::kStuckGpu:
      return WaitClass::kGpu;
    case Doing::kStopped:
      return WaitClass::kStopped;
    case Doing::kSleep:
      return WaitClass::kSleep;
    case Doing::kLock:
      return WaitClass::kFileLock;
    case Doing::kIdle:
    case Doing::kSocket:
      return WaitClass::kSocket;
    default:
      return WaitClass::kFutex;
  }
}

double StateNumber(Doing doing) {
  switch (doing) {
    case Doing::kImport:
    case Doing::kHost:
    case Doing::kCompute:
    case Doing::kSpin:
      return 0;
    case Doing::kStuckFile:
    case Doing::kStuckGpu:
      return 2;
    case Doing::kStopped:
      return 3;
    default:
      return 1;
  }
}

bool InTraining(const Second& second) {
  return second.of(Doing::kCompute) > 0 || second.of(Doing::kSpin) > 0;
}

}  // namespace

Sampler::Sampler(World& world) : world_(world), random_(world.random.Fork(77)) {}

const Life* Sampler::Alive(int rank, double t) const {
  for (auto it = world_.lives_.rbegin(); it != world_.lives_.rend(); ++it)
    if (it->rank == rank && it->born <= t && t < it->died) return &*it;
  return nullptr;
}

void Sampler::Run(double until) {
  const Plan& plan = world_.plan;
  for (double t = 1; t <= until; t += 1) {
    world_.Tell(t + 0.5, Source::kAgent, Tick{});
    for (int i = 0; i < plan.locals(); ++i) {
      const int rank = plan.first_local() + i;
      const Life* const life = Alive(rank, t);
      if (life != nullptr) OfProcess(*life, t);
      OfGpu(rank, life, t);
    }
    OfHost(t);
    if (plan.ranks > 1 && std::fmod(t, 30) == 17) Ras(t);
    if (plan.inspector && std::fmod(t, 30) == 5) Inspect(t);
  }
}

void Sampler::OfProcess(const Life& life, double t) {
  const auto index = static_cast<size_t>(t - 1 - std::floor(life.born));
  if (t - 1 < std::floor(life.born) || index >= life.seconds.size()) return;
  const Second& second = life.seconds[index];
  Totals& totals = totals_[life.key.pid];
  ProcessSecond process;
  process.rank = life.rank;
  process.t = t;
  const double age = t - life.born;
  const double working = std::min(1.0, age / 60);
  process.resident = (1 + 7 * working) * kGiBytes * (1 + 0.002 * random_.Normal());
  process.threads = age < 5 ? 12 : 60;
  for (const auto& hook : world_.on_process) hook(process);
  const double running = second.of(Doing::kImport) + second.of(Doing::kHost) +
                         second.of(Doing::kCompute) + second.of(Doing::kSpin);
  totals.cpu += running + 0.3 * second.of(Doing::kData) + 0.05;
  const double reading = second.of(Doing::kRead);
  totals.read += reading * 4e8 + second.data_read + process.read_rate;
  totals.written += second.written;
  totals.major_faults += process.major_faults;
  const bool open = age > world_.plan.import_seconds;
  world_.Tell(t + 0.02, Source::kProcfs,
              OfProcessBatch(life.key, {{SignalId::kCpuSeconds, std::floor(totals.cpu * 100) / 100},
                                        {SignalId::kResidentBytes, std::floor(process.resident)},
                                        {SignalId::kThreads, process.threads},
                                        {SignalId::kProcessState, StateNumber(second.last)},
                                        {SignalId::kReadBytes, std::floor(totals.read)},
                                        {SignalId::kWriteBytes, std::floor(totals.written)},
                                        {SignalId::kMajorFaults, totals.major_faults},
                                        {SignalId::kGpuDevicesOpen, open ? 1.0 : 0.0}}));
  if (open) Calls(life, second, totals, t);
  // The library is mapped with the first import of torch; whose code never got there has none.
  if (!open && std::fmod(t, 10) == 0)
    world_.Tell(t + 0.03, Source::kCuda,
                OfProcessBatch(life.key, {{SignalId::kCudaUse, age > 2 ? 1.0 : 0.0}}));
  if (world_.plan.ranks > 1 && open) Collectives(life, second, totals, t);
  Waits(life, second, totals, t, process.runnable);
  Files(life, second, totals, t, process);
  totals.first = false;
}

void Sampler::Calls(const Life& life, const Second& second, Totals& totals, double t) {
  totals.launches += std::floor(second.launches);
  totals.sync += second.sync;
  totals.blocked += second.blocked;
  if (second.launches > 0) {
    totals.sync_calls += std::ceil(second.sync * 3);
    totals.copies += std::ceil(second.launches / 200);
    totals.copied += second.launches * 2e4;
    totals.last_launch = second.launched;
    if (totals.first_launch < 0) totals.first_launch = t - 1;
  }
  if (totals.allocated == 0 && InTraining(second))
    totals.allocated = world_.plan.memory_share * world_.plan.gpu.memory_bytes;
  std::vector<Sample> samples = {
      {world_.plan.graphs ? SignalId::kGraphLaunches : SignalId::kKernelLaunches, totals.launches},
      {world_.plan.graphs ? SignalId::kKernelLaunches : SignalId::kGraphLaunches, 0}};
  if (totals.last_launch >= 0) {
    const double since = std::max(0.0, t - totals.last_launch);
    const double gap =
        std::max({static_cast<double>(second.largest_gap), since, second.launches > 0 ? 0.002 : 0});
    samples.push_back({SignalId::kLargestLaunchGapSeconds, gap});
    samples.push_back({SignalId::kLastLaunchAge, since});
    // Every time between two launches is a gap; nearly all are short.
    samples.push_back(
        {SignalId::kLaunchGapSeconds, std::max(0.0, totals.last_launch - totals.first_launch)});
    totals.gaps[0] += std::floor(second.launches);
    for (size_t slot = 0; slot < second.gaps.size(); ++slot) {
      if (slot > 0) totals.gaps[slot] += second.gaps[slot];
      if (slot == 0 ? second.launches > 0 : second.gaps[slot] > 0)
        samples.push_back({static_cast<SignalId>(201 + slot), totals.gaps[slot]});
    }
    samples.push_back(
        {SignalId::kLaunchSeconds, totals.launches * world_.seconds_per_launch + totals.blocked});
  }
  const double spins = second.last == Doing::kSpin ? second.age : 0.0;
  const double in_sync = std::max<double>(second.sync_age, spins);
  samples.insert(samples.end(), {{SignalId::kSyncCalls, totals.sync_calls},
                                 {SignalId::kCudaSyncSeconds, totals.sync},
                                 {SignalId::kOldestSyncSeconds, in_sync},
                                 {SignalId::kCopyCalls, totals.copies},
                                 {SignalId::kCopySeconds, totals.copies * 2e-5},
                                 {SignalId::kCopiedBytes, totals.copied},
                                 {SignalId::kAllocatedBytes, totals.allocated},
                                 {SignalId::kAllocationFailures, 0},
                                 {SignalId::kCudaErrors, 0},
                                 {SignalId::kCudaUse, totals.launches > 0 ? 2.0 : 1.0},
                                 {SignalId::kCountedShare, 1},
                                 {SignalId::kTimedShare, 1}});
  world_.Tell(t + 0.03, Source::kCuda, OfProcessBatch(life.key, std::move(samples)));
}

void Sampler::Collectives(const Life& life, const Second& second, Totals& totals, double t) {
  totals.enqueued += second.enqueued;
  totals.completed += second.completed;
  totals.inside += second.enqueued * 2e-5;
  totals.bytes +=
      second.enqueued * world_.plan.bytes_per_step / std::max(1, world_.plan.collectives_per_step);
  std::vector<Sample> samples = {{SignalId::kCollectivesEnqueued, totals.enqueued},
                                 {SignalId::kCollectiveBytes, std::floor(totals.bytes)},
                                 {SignalId::kCollectiveSeconds, totals.inside},
                                 {SignalId::kCollectiveSequence, totals.enqueued},
                                 {SignalId::kCommunicators, life.grouped < t ? 1.0 : 0.0},
                                 {SignalId::kInitsInFlight, 0},
                                 {SignalId::kCommunicatorInitSeconds, 0},
                                 {SignalId::kCommunicatorAborts, 0}};
  if (world_.plan.watchdog && totals.enqueued > 0) {
    totals.queries += 10;
    samples.insert(samples.end(),
                   {{SignalId::kEventQueries, totals.queries},
                    {SignalId::kCollectivesCompleted, totals.completed},
                    {SignalId::kCollectivesInFlight, second.collective_open ? 1.0 : 0.0},
                    {SignalId::kOldestCollectiveSeconds,
                     second.collective_open ? second.collective_age : 0.0}});
  }
  world_.Tell(t + 0.04, Source::kNccl, OfProcessBatch(life.key, std::move(samples)));
}

void Sampler::Waits(const Life& life, const Second& second, Totals& totals, double t,
                    double runnable) {
  std::array<double, kWaitClasses> now{};
  for (size_t i = 0; i < kDoings; ++i)
    now[static_cast<size_t>(ClassOf(static_cast<Doing>(i)))] += second.seconds[i];
  totals.main_running += std::max(0.0, now[0] - runnable);
  totals.runnable += runnable;
  totals.silent += second.silent;
  if (second.last == Doing::kHost && second.age > 0.5) totals.silent += second.of(Doing::kHost);
  // Its other threads sleep.
  now[2] += 20;
  now[3] += 4;
  for (size_t i = 0; i < now.size(); ++i) totals.waits[i] += now[i];
  std::vector<Sample> samples;
  constexpr SignalId kOf[] = {
      SignalId::kRunningSeconds,    SignalId::kRunnableSeconds,        SignalId::kWaitFutexSeconds,
      SignalId::kWaitSocketSeconds, SignalId::kWaitNetworkFileSeconds, SignalId::kWaitBlockSeconds,
      SignalId::kWaitGpuSeconds,    SignalId::kWaitSleepSeconds,       SignalId::kStoppedSeconds};
  for (size_t i = 0; i < std::size(kOf); ++i) {
    const double value = i == 1 ? totals.runnable : totals.waits[i];
    if (totals.first || now[i] > 0 || (i == 1 && runnable > 0)) samples.push_back({kOf[i], value});
  }
  const WaitClass main = ClassOf(second.last);
  samples.push_back({SignalId::kSilentRunningSeconds, totals.silent});
  samples.push_back(
      {SignalId::kUninterruptibleThreads,
       second.last == Doing::kStuckFile || second.last == Doing::kStuckGpu ? 1.0 : 0.0});
  samples.push_back({SignalId::kMainRunningSeconds, totals.main_running});
  samples.push_back({SignalId::kMainRunnableSeconds, totals.runnable});
  samples.push_back({SignalId::kMainWaitSeconds, IsOnCpu(main) ? 0.0 : second.age});
  samples.push_back({SignalId::kMainWaitClass, static_cast<double>(main)});
  world_.Tell(t + 0.05, Source::kWait, OfProcessBatch(life.key, std::move(samples)));
}

void Sampler::Files(const Life& life, const Second& second, Totals& totals, double t,
                    const ProcessSecond& process) {
  totals.checkpoint_written += second.written;
  totals.checkpoint_read += second.read;
  totals.data_read += second.data_read + process.read_rate;
  totals.data_seconds += (second.data_read + process.read_rate) / 1.2e9;
  totals.write_seconds += second.of(Doing::kWrite);
  if (totals.first || second.written > 0 || second.read > 0 || std::fmod(t, 5) == 0) {
    world_.Tell(
        t + 0.06, Source::kIo,
        OfProcessBatch(life.key, {{SignalId::kCheckpointWrittenBytes, totals.checkpoint_written},
                                  {SignalId::kCheckpointReadBytes, totals.checkpoint_read},
                                  {SignalId::kDataReadBytes, totals.data_read},
                                  {SignalId::kDataReadSeconds, totals.data_seconds},
                                  {SignalId::kFileWriteSeconds, totals.write_seconds},
                                  {SignalId::kSyncFileSeconds, totals.write_seconds * 0.2},
                                  {SignalId::kFileErrors, 0}}));
  }
  if (std::fmod(t, 30) == 0) {
    std::vector<Sample> space;
    if (process.shared_memory_free >= 0)
      space.push_back({SignalId::kSharedMemoryFreeBytes, process.shared_memory_free});
    if (process.checkpoint_free >= 0)
      space.push_back({SignalId::kCheckpointFreeBytes, process.checkpoint_free});
    if (!space.empty()) world_.Tell(t + 0.07, Source::kIo, OfProcessBatch(life.key, space));
  }
  totals.retransmits += process.retransmits;
  totals.sent += 1e4;
  totals.received += 1e4;
  if (process.retransmits > 0 || std::fmod(t, 10) == 0) {
    world_.Tell(t + 0.08, Source::kNetwork,
                OfProcessBatch(life.key, {{SignalId::kTcpRetransmits, totals.retransmits},
                                          {SignalId::kTcpResets, 0},
                                          {SignalId::kConnectFailures, 0},
                                          {SignalId::kTcpSentBytes, totals.sent},
                                          {SignalId::kTcpReceivedBytes, totals.received}}));
  }
}

}  // namespace rankscope::generator
