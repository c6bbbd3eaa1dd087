// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/gpu/job_mapping.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string_view>
#include <utility>

#include "detectors/model/observation.h"
#include "exporter/gpu/job_mapping_text.h"
#include "exporter/loop/owned_fd.h"

namespace rankscope::collectors {
namespace {

constexpr Duration kLookDeadline = Seconds(5);

bool IsOurs(const struct stat& facts) {
  return facts.st_uid == 0 || facts.st_uid == geteuid();
}

void ReadJobs(int directory, const char* name, JobMapping::Reading& reading) {
  JobMapping::Jobs& jobs = reading.jobs;
  // A name that leads elsewhere, or to something that makes the reader wait, is none of a prolog's.
  const OwnedFd file(openat(directory, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat facts {};
  if (!file || fstat(file.get(), &facts) != 0 || !S_ISREG(facts.st_mode)) return;
  if (!IsOurs(facts) || (facts.st_mode & S_IWOTH) != 0) {
    ++reading.foreign;
    return;
  }
  std::string text(JobMapping::kFileCap, '\0');
  const ssize_t n = read(file.get(), text.data(), text.size());
  const size_t size = n > 0 ? static_cast<size_t>(n) : 0;
  for (std::string& job : ReadJobIds({text.data(), size}, size < text.size()))
    jobs[std::move(job)].insert(name);
}

}  // namespace

JobMapping::JobMapping(std::string directory, Duration interval,
                       std::shared_ptr<ProcessTable> table)
    : directory_(std::move(directory)), interval_(interval), table_(std::move(table)) {}

JobMapping::~JobMapping() {
  Stop();
}

JobMapping::Reading JobMapping::Read(const std::string& directory) {
  Reading reading;
  DIR* const stream = opendir(directory.c_str());
  if (stream == nullptr) return reading;
  reading.readable = true;
  struct stat facts {};
  const bool told = fstat(dirfd(stream), &facts) == 0;
  // Where all may write but only the owner may remove, each file tells by its own owner.
  const bool replaceable = (facts.st_mode & S_IWOTH) != 0 && (facts.st_mode & S_ISVTX) == 0;
  if (!told || !IsOurs(facts) || replaceable) {
    reading.open_to_all = true;
    closedir(stream);
    return reading;
  }
  for (size_t files = 0; files < kMaxFiles;) {
    const dirent* const entry = readdir(stream);
    if (entry == nullptr) break;
    if (!IsGpuName(entry->d_name)) continue;
    ++files;
    ReadJobs(dirfd(stream), entry->d_name, reading);
  }
  closedir(stream);
  return reading;
}

Status JobMapping::Start(exporter::EventLoop& loop, Sink& sink) {
  loop_ = &loop;
  sink_ = &sink;
  state_ = Availability::kUnspecified;
  if (directory_.empty()) {
    TellNewState(Availability::kNotApplicable, "slurm.mapping_dir is empty");
    return {};
  }
  worker_ = std::make_unique<exporter::Worker>(loop);
  timer_ = loop.Every(interval_, [this] { Look(); });
  Look();
  return {};
}

void JobMapping::Stop() {
  if (loop_ == nullptr) return;
  if (worker_ != nullptr) loop_->Cancel(timer_);
  worker_.reset();
  loop_ = nullptr;
}

void JobMapping::Look() {
  if (worker_->pending() > 0) return;
  [[maybe_unused]] const bool submitted = worker_->Submit(
      [this, directory = directory_]() -> std::function<void()> {
        return [this, reading = Read(directory)] { Apply(reading); };
      },
      kLookDeadline,
      [this] {
        TellNewState(Availability::kDown,
                     "job_mapping: reading " + directory_ +
                         " does not return; use a local directory, not a file server");
      });
}

void JobMapping::Apply(const Reading& reading) {
  if (!reading.readable) {
    // What was told stands: a directory that is gone says nothing about who has which GPU.
    TellNewState(Availability::kDown,
                 "job_mapping: cannot read " + directory_ +
                     "; set slurm.mapping_dir to the directory that the prolog writes");
    return;
  }
  if (reading.open_to_all) {
    TellNewState(Availability::kDown, "job_mapping: users other than root can write to " +
                                          directory_ + "; give it to root, with mode 0755");
    return;
  }
  lost_ = reading.foreign;
  if (state_ != Availability::kUp) told_.clear();  // the state makes whoever hears it forget
  TellNewState(Availability::kUp, {});
  for (const auto& [job, gpus] : told_) {
    if (!reading.jobs.contains(job)) TellJob(job, {});
  }
  for (const auto& [job, gpus] : reading.jobs) {
    const auto known = told_.find(job);
    if (known == told_.end() || known->second != gpus) TellJob(job, gpus);
  }
  told_ = reading.jobs;
}

void JobMapping::TellJob(const std::string& job, const std::set<std::string>& gpus) {
  SchedulerFact fact;
  fact.job_id = job;
  fact.field = "gpus";
  fact.origin = "mapping";
  for (const std::string& gpu : gpus) fact.value += (fact.value.empty() ? "" : ",") + gpu;
  Tell(std::move(fact));
  if (!told_.contains(job)) table_->NoteBegun();  // whose GPUs are told anew
}

void JobMapping::TellNewState(Availability state, std::string reason) {
  if (std::exchange(state_, state) == state) return;
  TellState(state, std::move(reason));
}

}  // namespace rankscope::collectors
