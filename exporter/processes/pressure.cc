// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/processes/pressure.h"

#include <array>
#include <charconv>
#include <functional>
#include <utility>

#include "exporter/loop/small_file.h"
#include "exporter/processes/proc_text.h"

namespace rankscope::collectors {
namespace {

constexpr Duration kPollDeadline = Seconds(20);
constexpr size_t kMaxJobs = 256;
constexpr char kNoPressure[] =
    "/proc/pressure is missing; use a kernel with CONFIG_PSI, and boot it with psi=1";

struct ResourceRow {
  const char* name;  // of the file
  SignalId host_some, host_full, job_some, job_full;
};
constexpr std::array kResources = {
    ResourceRow{"cpu", SignalId::kHostCpuWaitingSeconds, SignalId::kHostCpuStalledSeconds,
                SignalId::kJobCpuWaitingSeconds, SignalId::kJobCpuStalledSeconds},
    ResourceRow{"memory", SignalId::kHostMemoryWaitingSeconds, SignalId::kHostMemoryStalledSeconds,
                SignalId::kJobMemoryWaitingSeconds, SignalId::kJobMemoryStalledSeconds},
    ResourceRow{"io", SignalId::kHostIoWaitingSeconds, SignalId::kHostIoStalledSeconds,
                SignalId::kJobIoWaitingSeconds, SignalId::kJobIoStalledSeconds},
};

void Add(SampleBatch& batch, SignalId id, const std::optional<double>& seconds) {
  if (seconds) batch.samples.push_back({id, *seconds});
}

SampleBatch ReadHost(const std::string& proc_root) {
  SampleBatch batch;
  batch.subject.kind = Subject::Kind::kHost;
  for (const ResourceRow& row : kResources) {
    const StallTime time = ReadPressure(proc_root + "/pressure/" + row.name);
    Add(batch, row.host_some, time.some);
    Add(batch, row.host_full, time.full);
  }
  return batch;
}

SampleBatch ReadJob(const std::string& job_id, const std::string& directory) {
  SampleBatch batch;
  batch.subject.kind = Subject::Kind::kJob;
  batch.subject.name = job_id;
  for (const ResourceRow& row : kResources) {
    const StallTime time = ReadPressure(directory + '/' + row.name + ".pressure");
    Add(batch, row.job_some, time.some);
    Add(batch, row.job_full, time.full);
  }
  return batch;
}

}  // namespace

StallTime ParsePressure(std::string_view text) {
  StallTime time;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    constexpr std::string_view kTotal = " total=";
    const size_t at = line.find(kTotal);
    if (at == std::string_view::npos) continue;
    const std::string_view number = line.substr(at + kTotal.size());
    uint64_t microseconds = 0;
    const auto [end, error] =
        std::from_chars(number.data(), number.data() + number.size(), microseconds);
    if (error != std::errc() || end != number.data() + number.size()) continue;
    const double seconds = static_cast<double>(microseconds) * 1e-6;
    if (line.starts_with("some ")) time.some = seconds;
    if (line.starts_with("full ")) time.full = seconds;
  }
  return time;
}

StallTime ReadPressure(const std::string& path) {
  return ParsePressure(ReadSmallFile(path));
}

Pressure::Pressure(std::shared_ptr<ProcessTable> table, Duration interval, std::string proc_root,
                   std::string cgroup_root)
    : table_(std::move(table)),
      interval_(interval),
      proc_root_(std::move(proc_root)),
      cgroup_root_(std::move(cgroup_root)) {}

Pressure::~Pressure() {
  Stop();
}

Status Pressure::Start(exporter::EventLoop& loop, Sink& sink) {
  loop_ = &loop;
  sink_ = &sink;
  worker_ = std::make_unique<exporter::Worker>(loop);
  timer_ = loop.Every(interval_, [this] { Poll(); });
  Poll();
  return {};
}

void Pressure::Stop() {
  if (loop_ == nullptr) return;
  loop_->Cancel(timer_);
  worker_.reset();
  loop_ = nullptr;
}

// Cgroups of version 1 have no pressure files. What only the environment of a process names may be
// anybody's: its cgroup is not the job's.
Pressure::Jobs Pressure::JobDirectories() const {
  Jobs jobs;
  for (const auto& [pid, process] : table_->processes()) {
    if (process.job_id.empty() || !process.by_cgroup || process.memory_is_v1) continue;
    const std::string_view directory = JobCgroup(process.memory_cgroup);
    if (directory.size() < 2 || jobs.size() == kMaxJobs) continue;
    jobs.emplace(process.job_id, cgroup_root_ + std::string(directory));
  }
  return jobs;
}

void Pressure::Poll() {
  if (worker_->pending() > 0) return;  // the last poll is still under way
  const bool submitted = worker_->Submit(
      [this, proc_root = proc_root_, jobs = JobDirectories()]() -> std::function<void()> {
        std::vector<SampleBatch> batches = {ReadHost(proc_root)};
        for (const auto& [job_id, directory] : jobs) batches.push_back(ReadJob(job_id, directory));
        return [this, batches = std::move(batches)] { Apply(batches); };
      },
      kPollDeadline,
      [this] { TellState(Availability::kDown, "a read of /proc/pressure does not return"); });
  if (!submitted) return;  // cannot be: nothing was pending
}

void Pressure::Apply(const std::vector<SampleBatch>& batches) {
  if (batches.front().samples.empty()) {
    TellState(Availability::kUnsupported, kNoPressure);
    return;
  }
  TellState(Availability::kUp, {});
  for (const SampleBatch& batch : batches) {
    if (batch.samples.empty()) continue;
    Tell(batch);
  }
}

}  // namespace rankscope::collectors
