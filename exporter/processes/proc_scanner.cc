// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/processes/proc_scanner.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <set>
#include <utility>

#include "exporter/processes/proc_owner.h"

namespace rankscope::collectors {
namespace {

constexpr int32_t kInit = 1;
constexpr int32_t kKernelThreads = 2;  // kthreadd; every kernel thread is its child

double StateNumber(char state) {
  switch (state) {
    case 'R':
      return 0;
    case 'D':
      return 2;
    case 'T':
    case 't':
      return 3;
    case 'Z':
    case 'X':
      return 4;
    default:
      return 1;  // S, I
  }
}

bool HasEnded(const StatLine& stat) {
  // A leader that left its threads behind is a zombie too, and its process lives.
  return (stat.state == 'Z' || stat.state == 'X') && stat.threads <= 1;
}

// Why nothing was read, where that is no word about who was to be read.
bool IsOwnTrouble(int error) {
  return error == EMFILE || error == ENFILE || error == ENOMEM || error == EINTR ||
         error == EACCES || error == EPERM;
}

void Add(SampleBatch& batch, SignalId signal, std::optional<int64_t> value) {
  if (value) batch.samples.push_back({signal, static_cast<double>(*value)});
}

}  // namespace

struct ProcScanner::Pass {
  ScanResult result;
  std::map<int32_t, TrackedProcess> alive;               // tracked and seen in this pass
  std::map<std::string, std::optional<int64_t>> frozen;  // by the directory that freezes
  std::map<std::string, CpuPeriods> periods;             // by the directory that has the quota
  bool first = false;
};

ProcScanner::ProcScanner(ProcReader reader)
    : reader_(std::move(reader)),
      page_bytes_(sysconf(_SC_PAGESIZE)),
      tick_seconds_(1.0 / static_cast<double>(sysconf(_SC_CLK_TCK))) {}

ScanResult ProcScanner::Scan(const ScanRequest& request) {
  Pass pass;
  pass.first = scans_++ == 0;
  has_gpus_ = reader_.HasGpuDriver();
  ScanTracked(request, pass);
  ScanOthers(request, pass);
  ScanHost(pass);
  ScanMemory(pass);
  return std::move(pass.result);
}

void ProcScanner::ScanTracked(const ScanRequest& request, Pass& pass) {
  for (const TrackedProcess& tracked : request.tracked) {
    errno = 0;
    const auto stat = reader_.Stat(tracked.key.pid);
    if (!stat && IsOwnTrouble(errno)) {
      ++pass.result.unseen;
      pass.alive[tracked.key.pid] = tracked;
      continue;
    }
    if (!stat || stat->start_ticks != tracked.key.start_ticks) {
      pass.result.missing.push_back(tracked.key);
      continue;
    }
    if (HasEnded(*stat)) {
      // The kernel shows the exit code to root and to the same user; to others it shows 0.
      const bool known = stat->exit_code != 0 || geteuid() == 0 || geteuid() == tracked.uid;
      pass.result.ended.push_back(
          {tracked.key, stat->exit_code, known, (stat->exit_code & 0x80) != 0});
      continue;
    }
    pass.alive[tracked.key.pid] = tracked;
    SampleBatch batch;
    batch.subject.kind = Subject::Kind::kProcess;
    batch.subject.process = tracked.key;
    batch.samples = {
        {SignalId::kCpuSeconds, static_cast<double>(stat->cpu_ticks) * tick_seconds_},
        {SignalId::kResidentBytes, static_cast<double>(stat->resident_pages * page_bytes_)},
        {SignalId::kThreads, static_cast<double>(stat->threads)},
        {SignalId::kProcessState, StateNumber(stat->state)},
    };
    if (const auto io = reader_.Io(tracked.key.pid)) {
      Add(batch, SignalId::kReadBytes, io->read_bytes);
      Add(batch, SignalId::kWriteBytes, io->write_bytes);
    }
    const MemoryShortage shortage = reader_.Shortage(tracked.key.pid);
    Add(batch, SignalId::kMajorFaults, shortage.major_faults);
    Add(batch, SignalId::kSwappedBytes, shortage.swapped_bytes);
    Add(batch, SignalId::kProcessFrozen, FrozenCgroup(tracked.key, pass));
    AddQuota(tracked.key, pass, batch);
    const int32_t gpus = has_gpus_ ? reader_.OpenGpus(tracked.key.pid) : 0;
    Add(batch, SignalId::kGpuDevicesOpen, gpus);
    pass.result.samples.push_back(std::move(batch));
  }
  const auto gone = [&pass](const auto& entry) {
    const auto alive = pass.alive.find(entry.first.pid);
    return alive == pass.alive.end() || alive->second.key != entry.first;
  };
  std::erase_if(freezers_, gone);
  std::erase_if(quotas_, gone);
}

// A quota above it, as of a pod or of Slurm's job, holds for a process as its own does; the
// smallest is used up first.
ProcScanner::Quota ProcScanner::SmallestQuota(int32_t pid) const {
  constexpr int kMostLevels = 16;
  const auto paths = reader_.Cgroup(pid);
  if (!paths) return {};
  Quota smallest;
  const bool v1 = !paths->cpu.empty();
  std::string directory = v1 ? paths->cpu : paths->unified;
  for (int level = 0; level < kMostLevels && directory.size() > 1; ++level) {
    const auto cpus = reader_.CpuQuota(directory, v1);
    if (cpus && (smallest.directory.empty() || *cpus < smallest.cpus))
      smallest = {directory, v1, *cpus};
    directory.resize(directory.rfind('/'));
  }
  return smallest;
}

void ProcScanner::AddQuota(const ProcessKey& key, Pass& pass, SampleBatch& batch) {
  const auto [known, fresh] = quotas_.try_emplace(key);
  if (fresh || (key.pid + scans_) % kRelookScans == 0) known->second = SmallestQuota(key.pid);
  const Quota& quota = known->second;
  if (quota.directory.empty()) return;
  const auto [found, unread] = pass.periods.try_emplace(quota.directory);
  if (unread) found->second = reader_.Periods(quota.directory, quota.v1);
  batch.samples.push_back({SignalId::kCpuQuota, quota.cpus});
  Add(batch, SignalId::kCpuPeriods, found->second.all);
  Add(batch, SignalId::kCpuThrottledPeriods, found->second.throttled);
}

// The machine's own cgroup, the root, has no freezer. Ranks share theirs: each is read once a scan.
// A process may be moved after its start, as Slurm's tasks are: where it is is looked up again.
std::optional<int64_t> ProcScanner::FrozenCgroup(const ProcessKey& key, Pass& pass) {
  const auto [known, fresh] = freezers_.try_emplace(key);
  Freezer& freezer = known->second;
  if (fresh || (key.pid + scans_) % kRelookScans == 0) {
    const auto paths = reader_.Cgroup(key.pid);
    freezer.v1 = paths && !paths->freezer.empty();
    freezer.directory = !paths ? std::string() : freezer.v1 ? paths->freezer : paths->unified;
  }
  if (freezer.directory.empty() || freezer.directory == "/") return std::nullopt;
  const auto [found, unread] = pass.frozen.try_emplace(freezer.directory);
  if (unread) {
    const auto frozen = reader_.Frozen(freezer.directory, freezer.v1);
    if (frozen) found->second = *frozen ? 1 : 0;
  }
  return found->second;
}

bool ProcScanner::Wanted(const StatLine& stat, const ProcessFacts& facts, const Pass& pass) const {
  return BelongsToAJob(facts) || pass.alive.contains(stat.parent) ||
         (has_gpus_ && reader_.OpenGpus(stat.pid) > 0);
}

void ProcScanner::AddStarted(const StatLine& stat, ProcessFacts facts, Pass& pass) {
  const auto known = pass.alive.find(stat.pid);
  const auto parent = pass.alive.find(stat.parent);
  TrackedProcess before;
  if (known != pass.alive.end()) {
    before = known->second;
  } else if (parent != pass.alive.end()) {
    before = parent->second;
  }
  TrackedProcess tracked = WithFacts(before, facts);
  facts.start.job_id = JobKnown(before, facts);
  facts.start.preexisting = pass.first;
  pass.alive[stat.pid] = tracked;
  nobodies_.erase(stat.pid);
  pass.result.started.push_back({std::move(tracked), std::move(facts.start)});
}

void ProcScanner::ScanOthers(const ScanRequest& request, Pass& pass) {
  for (const ProcessKey& key : request.asked) {
    const auto stat = reader_.Stat(key.pid);
    if (!stat || stat->start_ticks != key.start_ticks) continue;
    if (auto facts = reader_.Facts(*stat)) AddStarted(*stat, std::move(*facts), pass);
  }

  std::unordered_map<int32_t, Nobody> nobodies;
  std::vector<StatLine> others;
  std::vector<int32_t> pids = reader_.Pids();
  if (pids.empty()) ++pass.result.unseen;  // we at least are there
  std::sort(pids.begin(), pids.end());
  for (const int32_t pid : pids) {
    if (pass.alive.contains(pid) || pid == kInit || pid == kKernelThreads || pid == getpid()) {
      continue;
    }
    const auto known = nobodies_.find(pid);
    const bool due = (pid + scans_) % kRelookScans == 0;
    if (known != nobodies_.end() && known->second.looks >= 2 && !due) {
      nobodies.insert(*known);
      continue;
    }
    const auto stat = reader_.Stat(pid);
    if (!stat || HasEnded(*stat)) continue;
    Nobody& nobody = nobodies[pid];
    if (known != nobodies_.end() && known->second.start_ticks == stat->start_ticks &&
        known->second.comm == stat->comm) {
      nobody = known->second;
    } else {
      nobody = {stat->start_ticks, stat->comm, 0};
    }
    if (stat->parent == kKernelThreads) {
      nobody.looks = 2;
      continue;
    }
    others.push_back(*stat);
  }
  nobodies_ = std::move(nobodies);

  // Children come after their parents by pid, except after a wrap: repeat until nobody is added.
  std::set<int32_t> launchers;
  for (bool added = true; added;) {
    added = false;
    for (const StatLine& stat : others) {
      const auto nobody = nobodies_.find(stat.pid);
      if (nobody == nobodies_.end()) continue;  // taken
      const bool adopted = pass.alive.contains(stat.parent) || launchers.contains(stat.pid);
      if (!adopted && nobody->second.looks >= 2 && !has_gpus_) continue;
      auto facts = reader_.Facts(stat);
      nobody->second.looks++;
      if (!facts || !(adopted || Wanted(stat, *facts, pass))) continue;
      if (facts->environment.from_launcher && stat.parent > kInit) launchers.insert(stat.parent);
      AddStarted(stat, std::move(*facts), pass);
      added = true;
    }
    // A launcher that was looked at before its ranks existed.
    for (const int32_t pid : std::exchange(launchers, {})) {
      if (pass.alive.contains(pid)) continue;
      const auto stat = reader_.Stat(pid);
      if (!stat || HasEnded(*stat)) continue;
      if (auto facts = reader_.Facts(*stat)) {
        AddStarted(*stat, std::move(*facts), pass);
        added = true;
      }
    }
  }
}

void ProcScanner::ScanHost(Pass& pass) const {
  SampleBatch batch;
  batch.subject.kind = Subject::Kind::kHost;
  Add(batch, SignalId::kHostMemoryAvailableBytes, reader_.HostMemoryAvailable());
  Add(batch, SignalId::kHostOomKills, reader_.HostOomKills());
  if (!batch.samples.empty()) pass.result.samples.push_back(std::move(batch));
}

void ProcScanner::ScanMemory(Pass& pass) {
  struct Group {
    Subject subject;
    std::string job_directory;
    bool v1 = false;
    bool by_cgroup = false;
    std::set<std::string> directories;
  };
  std::map<std::string, Group> groups;
  for (const auto& [pid, tracked] : pass.alive) {
    const std::string directory(JobCgroup(tracked.memory_cgroup));
    if (directory.empty() || directory == "/") continue;  // the whole machine is nobody's job
    Group& group = groups[tracked.job_id.empty() ? directory : tracked.job_id];
    // What only names the job in its environment may be anybody's; its memory is not the job's.
    if (group.by_cgroup && !tracked.by_cgroup) continue;
    if (group.directories.empty() || tracked.by_cgroup != group.by_cgroup) {
      group.directories.clear();
      group.by_cgroup = tracked.by_cgroup;
      group.job_directory = directory;
      group.v1 = tracked.memory_is_v1;
      group.subject.kind = tracked.job_id.empty() ? Subject::Kind::kProcess : Subject::Kind::kJob;
      group.subject.process = tracked.key;
      group.subject.name = tracked.job_id;
    }
    group.directories.insert(tracked.memory_cgroup);
    group.directories.insert(directory);
  }
  std::erase_if(v1_oom_kills_, [&](const auto& entry) { return !groups.contains(entry.first); });

  for (auto& [name, group] : groups) {
    const MemoryCgroup memory = reader_.Memory(group.job_directory, group.v1);
    std::optional<int64_t> kills = memory.oom_kills;
    if (group.v1 && kills) {
      auto& counts = v1_oom_kills_[name];
      for (const std::string& directory : group.directories) {
        if (const auto own = reader_.Memory(directory, true).oom_kills) counts[directory] = *own;
      }
      kills = 0;
      for (const auto& [directory, count] : counts) *kills += count;
    }
    SampleBatch batch;
    batch.subject = group.subject;
    Add(batch, SignalId::kJobMemoryBytes, memory.current_bytes);
    Add(batch, SignalId::kJobMemoryLimitBytes, memory.limit_bytes);
    Add(batch, SignalId::kJobOomKills, kills);
    if (!batch.samples.empty()) pass.result.samples.push_back(std::move(batch));
  }
}

}  // namespace rankscope::collectors
