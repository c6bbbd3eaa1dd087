// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/daemon/job_recordings.h"

#include <unistd.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "detectors/model/event_types.h"
#include "exporter/daemon/job_of.h"
#include "exporter/daemon/kept_file.h"
#include "exporter/daemon/sources.h"

namespace rankscope::exporter {
namespace {

// More recordings than this at once would be a fork bomb of jobs, with four descriptors each. The
// engine keeps fewer jobs, and fewer of one user.
constexpr size_t kMaxLive = 1024;
// Of ended jobs.
constexpr size_t kMaxResting = 256;

// Handed over at once where so much has come together before the next tick.
constexpr size_t kHandOverBytes = 64 << 10;
// How long a tick waits for the kernel to take what was recorded. Mostly it takes 100 us.
constexpr Duration kFlushPatience = Milliseconds(20);
// A disk that takes longer is said not to answer.
constexpr Duration kSlow = Seconds(2);
// The least that a live recording is given.
constexpr int64_t kLeastJobBytes = 512 << 10;

// What the scheduler says of a job may come long after its end, and begins nothing.
bool IsSchedulersWord(const Observation& observation) {
  const auto* fact = std::get_if<SchedulerFact>(&observation.kind);
  const bool word = fact != nullptr && fact->origin != "mapping";
  return word || std::holds_alternative<SchedulerRecord>(observation.kind);
}

// Every job on the node judges by whose GPU it is, by who else computes there, and by whether the
// node stood still.
bool IsOfNode(const Observation& observation) {
  const auto* event = std::get_if<Event>(&observation.kind);
  return event != nullptr && (event->type == WireType(EventType::kGpuIdentity) ||
                              event->type == WireType(EventType::kGpuProcess) ||
                              event->type == WireType(EventType::kNodeGap));
}

// Of the job's owner, if the observation knows him.
std::optional<uint32_t> OwnerIn(const Observation& observation) {
  if (const auto* mark = std::get_if<RunMark>(&observation.kind)) return mark->uid;
  if (const auto* start = std::get_if<ProcessStart>(&observation.kind)) return start->uid;
  return std::nullopt;
}

int64_t OwnerKey(const std::optional<uint32_t>& uid) {
  return uid ? static_cast<int64_t>(*uid) : -1;
}

}  // namespace

JobRecordings::JobRecordings(Options options, Logger& log, DiskThread& frames, DiskThread& slow)
    : options_(std::move(options)),
      log_(log),
      frames_(frames),
      slow_(slow),
      boot_id_(options_.header.boot_id),
      self_(std::make_shared<JobRecordings*>(this)) {}

JobRecordings::~JobRecordings() {
  *self_ = nullptr;
  if (lock_fd_ >= 0) close(lock_fd_);
}

std::string JobRecordings::DirectoryOf(const std::string& job_id) const {
  return options_.directory + "/jobs/" + FileNameOf(job_id);
}

// Null: what comes begins no recording.
JobRecordings::Job* JobRecordings::JobWith(const std::string& job_id, const Observation& first) {
  if (const auto found = live_.find(job_id); found != live_.end()) return &found->second;
  const bool word = IsSchedulersWord(first);
  if (const auto found = resting_.find(job_id); found != resting_.end()) {
    if (word) {
      told_.insert(job_id);
      return &found->second;
    }
    if (IsNextAttempt(job_id, first) && live_.size() < kMaxLive) {
      unmarked_.erase(job_id);
      Job& job = live_[job_id] = std::move(found->second);
      resting_.erase(found);
      told_.erase(job_id);
      Tell(job, [](RecordingWriter& writer) { writer.GoOn(); });
      return &job;
    }
    Forget(job_id);
  }
  if (word) return nullptr;
  if (live_.size() >= kMaxLive) {
    if (unrecorded_.size() < kMaxLive) unrecorded_.insert(job_id);
    return nullptr;
  }
  // Two lives in one recording would be judged as one: better the verdict of the first is lost.
  MarkFinished(job_id);
  return &(live_[job_id] = Begin(job_id, first));
}

JobRecordings::Job JobRecordings::Begin(const std::string& job_id, const Observation& first) {
  Job job;
  if (!trouble_.empty()) return job;
  job.budget = options_.job_bytes;
  job.writer =
      std::make_shared<RecordingWriter>(DirectoryOf(job_id), options_.header, job.budget, totals_);
  RecordedFrames preamble;
  for (Observation observation : preamble_) {
    observation.t = std::min(observation.t, first.t);
    preamble.Add(observation);
  }
  Tell(job, [preamble = std::move(preamble)](RecordingWriter& writer) { writer.Open(preamble); });
  return job;
}

void JobRecordings::Tell(const Job& job, std::function<void(RecordingWriter&)> what) {
  if (!job.writer) return;
  const bool taken =
      frames_.Submit([writer = job.writer, what = std::move(what)]() -> std::function<void()> {
        what(*writer);
        return nullptr;
      });
  if (!taken) ++own_errors_;
}

void JobRecordings::Add(Job& job, const Observation& observation) {
  if (!job.uid) job.uid = OwnerIn(observation);
  if (!job.writer) return;
  const int64_t lost = job.frames.lost;
  job.frames.Add(observation);
  lost_ += job.frames.lost - lost;
  if (job.frames.bytes.size() >= kHandOverBytes) HandOver({&job});
}

void JobRecordings::HandOver(const std::vector<Job*>& jobs) {
  auto batches = std::make_shared<Batches>();
  size_t held = 0;
  for (Job* job : jobs) {
    if (job->frames.empty()) continue;
    held += job->frames.held();
    batches->emplace_back(job->writer, std::exchange(job->frames, {}));
  }
  if (batches->empty()) return;
  const bool taken = frames_.Submit(
      [batches]() -> std::function<void()> {
        for (const auto& [writer, frames] : *batches) writer->Append(frames);
        return nullptr;
      },
      held);
  if (taken) return;
  // The disk is far behind: these are lost, and the recordings say so when it takes more.
  size_t next = 0;
  for (Job* job : jobs) {
    if (next == batches->size() || (*batches)[next].first != job->writer) continue;
    RecordedFrames& frames = (*batches)[next++].second;
    lost_ += static_cast<int64_t>(frames.frames.size());
    frames.Drop();
    job->frames = std::move(frames);
    job->exact = false;
  }
}

void JobRecordings::Accept(const Observation& observation) {
  const std::string job_id = JobOf(observation, attribution_, boot_id_);
  if (!job_id.empty() && options_.watched && !options_.watched(job_id)) {
    attribution_.ForgetJob(job_id);
    return;
  }
  if (!job_id.empty() && !IsOfNode(observation)) {
    if (Job* const job = JobWith(job_id, observation)) Add(*job, observation);
    NoteRestart(job_id, observation);
    return;
  }
  const auto* batch = std::get_if<SampleBatch>(&observation.kind);
  const bool of_node = (batch != nullptr && (batch->subject.kind == Subject::Kind::kHost ||
                                             batch->subject.kind == Subject::Kind::kGpu)) ||
                       std::holds_alternative<Tick>(observation.kind) ||
                       std::holds_alternative<Epoch>(observation.kind) ||
                       std::holds_alternative<SourceState>(observation.kind) ||
                       std::holds_alternative<KernelEvent>(observation.kind) ||
                       IsOfNode(observation);
  if (!of_node) return;
  NoteState(observation);
  for (auto& [id, job] : live_) Add(job, observation);
  // A replay judges when it was judged.
  if (!std::holds_alternative<Tick>(observation.kind)) return;
  for (const std::string& told : told_) Add(resting_.at(told), observation);
}

// A job that begins later begins with how the sources are then.
void JobRecordings::NoteState(const Observation& observation) {
  const auto* const state = std::get_if<SourceState>(&observation.kind);
  if (state == nullptr) return;
  for (Observation& each : preamble_) {
    const auto* const known = std::get_if<SourceState>(&each.kind);
    if (known == nullptr || known->source != state->source || known->name != state->name) continue;
    each = observation;
    return;
  }
}

void JobRecordings::Flush() {
  const bool behind = !frames_.Drain({});
  std::vector<Job*> jobs;
  for (auto& [id, job] : live_) jobs.push_back(&job);
  for (const std::string& job_id : told_) jobs.push_back(&resting_.at(job_id));
  HandOver(jobs);
  told_.clear();
  if (live_.size() != shared_among_) ShareRoom();
  if (!behind) frames_.Drain(kFlushPatience);
}

// To the disk, after all that has been handed over.
void JobRecordings::Sync(const Job& job) {
  if (!job.writer) return;
  const bool taken = frames_.Submit([directory = job.writer->directory(),
                                     self = self_]() -> std::function<void()> {
    return [directory, self] {
      if (*self == nullptr) return;
      const bool queued =
          (*self)->slow_.Submit([directory, totals = (*self)->totals_]() -> std::function<void()> {
            if (!SyncRecording(directory)) ++totals->errors;
            return nullptr;
          });
      if (!queued) ++(*self)->own_errors_;
    };
  });
  if (!taken) ++own_errors_;
}

void JobRecordings::Finish(const std::string& job_id) {
  attribution_.ForgetJob(job_id);
  const auto found = live_.find(job_id);
  if (found == live_.end()) return;
  if (found->second.writer) {
    HandOver({&found->second});
    Tell(found->second, [](RecordingWriter& writer) { writer.Rest(); });
    Sync(found->second);
    if (resting_.size() >= kMaxResting) Forget(std::string(resting_.begin()->first));
    unmarked_[job_id] = found->second;
    resting_[job_id] = std::move(found->second);
  } else {
    restarts_.erase(job_id);
  }
  live_.erase(found);
}

void JobRecordings::MarkFinished(const std::string& job_id) {
  const auto found = unmarked_.extract(job_id);
  if (found.empty()) return;
  const std::optional<uint32_t> uid = found.mapped().uid;
  Tell(found.mapped(), [uid](RecordingWriter& writer) { writer.MarkFinished(uid); });
  EnforceTotal();
}

void JobRecordings::Drop(const std::string& job_id) {
  attribution_.ForgetJob(job_id);
  restarts_.erase(job_id);
  unrecorded_.erase(job_id);
  const auto found = live_.find(job_id);
  if (found == live_.end()) return;
  const bool recorded = found->second.writer != nullptr;
  live_.erase(found);
  if (recorded)
    Remove({{.path = DirectoryOf(job_id), .name = FileNameOf(job_id), .uid = std::nullopt}});
}

void JobRecordings::Forget(const std::string& job_id) {
  told_.erase(job_id);
  unrecorded_.erase(job_id);
  if (!live_.contains(job_id)) restarts_.erase(job_id);
  const auto found = resting_.find(job_id);
  if (found == resting_.end()) return;
  HandOver({&found->second});
  Sync(found->second);
  resting_.erase(found);
}

// The budget is the node's: where several users' jobs run at once, each user has an equal share of
// it, and each of his jobs an equal share of that.
void JobRecordings::ShareRoom() {
  shared_among_ = live_.size();
  std::map<int64_t, int64_t> jobs_of;
  for (const auto& [id, job] : live_) ++jobs_of[OwnerKey(job.uid)];
  std::set<int64_t> owners = with_room_;
  for (const auto& [owner, jobs] : jobs_of) owners.insert(owner);
  if (owners.empty()) return;
  const int64_t share = options_.total_bytes / static_cast<int64_t>(owners.size());
  for (auto& [id, job] : live_) {
    const int64_t least = std::min(kLeastJobBytes, options_.job_bytes);
    const int64_t budget =
        std::clamp(share / jobs_of[OwnerKey(job.uid)], least, options_.job_bytes);
    if (budget == job.budget) continue;
    job.budget = budget;
    Tell(job, [budget](RecordingWriter& writer) { writer.SetBudget(budget); });
  }
}

void JobRecordings::EnforceTotal() {
  if (!trouble_.empty()) return;
  ShareRoom();
  if (scanning_) {
    scan_again_ = true;
    return;
  }
  scanning_ =
      slow_.Submit([directory = options_.directory, self = self_]() -> std::function<void()> {
        auto folders = ScanRecordings(directory);
        return [self, folders = std::move(folders)]() mutable {
          if (*self != nullptr) (*self)->OnScanned(std::move(folders));
        };
      });
}

void JobRecordings::OnScanned(std::vector<RecordingFolder> folders) {
  scanning_ = false;
  if (std::exchange(scan_again_, false)) EnforceTotal();
  std::map<std::string, const Job*> known;
  for (const auto& [job_id, job] : resting_) known[FileNameOf(job_id)] = &job;
  for (const auto& [job_id, job] : unmarked_) known[FileNameOf(job_id)] = &job;
  for (const auto& [job_id, job] : live_) known[FileNameOf(job_id)] = &job;
  std::set<std::string> live;
  for (const auto& [job_id, job] : live_) live.insert(FileNameOf(job_id));
  with_room_.clear();
  for (RecordingFolder& folder : folders) {
    if (const auto found = known.find(folder.name); found != known.end()) {
      folder.finished = true;
      folder.in_use = live.contains(folder.name);
      if (!folder.uid) folder.uid = found->second->uid;
    }
    with_room_.insert(OwnerKey(folder.uid));
  }
  std::vector<RecordingFolder> gone = ToRemove(std::move(folders), options_.total_bytes);
  if (gone.empty()) return;
  std::set<std::string> names;
  for (const RecordingFolder& folder : gone) {
    names.insert(folder.name);
    log_.Info("recording removed: all recordings exceed state.total_bytes",
              {{"recording", folder.path}});
  }
  std::vector<std::string> resting;
  for (const auto& [job_id, job] : resting_) {
    if (names.contains(FileNameOf(job_id))) resting.push_back(job_id);
  }
  for (const std::string& job_id : resting) Forget(job_id);
  std::erase_if(unmarked_, [&](const auto& one) { return names.contains(FileNameOf(one.first)); });
  Remove(std::move(gone));
}

void JobRecordings::Remove(std::vector<RecordingFolder> gone) {
  // In order with the frames: whoever begins under the same name comes after this.
  const bool taken = frames_.Submit([directory = options_.directory, gone = std::move(gone),
                                     self = self_]() -> std::function<void()> {
    for (const RecordingFolder& folder : gone) PutAside(directory, folder);
    return [self, directory] {
      if (*self == nullptr) return;
      // What could not be removed now is with the next scan.
      static_cast<void>((*self)->slow_.Submit([directory]() -> std::function<void()> {
        RemoveAside(directory);
        return nullptr;
      }));
    };
  });
  if (!taken) ++own_errors_;
}

std::vector<attribution::ProcessInfo> JobRecordings::LiveProcesses() const {
  std::vector<attribution::ProcessInfo> processes;
  for (const auto& [job_id, recorder] : live_) {
    for (const attribution::ProcessInfo* info : attribution_.OfJob(job_id)) {
      if (info->alive) processes.push_back(*info);
    }
  }
  return processes;
}

std::vector<std::string> JobRecordings::LiveJobs() const {
  std::vector<std::string> jobs;
  for (const auto& [job_id, recorder] : live_) jobs.push_back(job_id);
  return jobs;
}

int64_t JobRecordings::TakeWrapperSeq(const std::string& job_id, int slot) {
  const auto found = wrapper_seq_.extract({job_id, slot});
  return found.empty() ? std::numeric_limits<int64_t>::min() : found.mapped();
}

std::optional<int64_t> JobRecordings::WrapperSeq(const std::string& job_id) const {
  const auto next = wrapper_seq_.upper_bound({job_id, 0});
  if (next != wrapper_seq_.end() && next->first.first == job_id) return std::nullopt;
  const auto found = wrapper_seq_.find({job_id, 0});
  return found == wrapper_seq_.end() ? std::nullopt : std::optional(found->second);
}

// A wrapper that comes again begins another job's recording, unless Slurm has put the job back into
// the queue since.
bool JobRecordings::IsNextAttempt(const std::string& job_id, const Observation& observation) const {
  const auto* mark = std::get_if<RunMark>(&observation.kind);
  if (mark == nullptr) return true;
  const auto known = restarts_.find(job_id);
  return mark->slurm_restart > (known == restarts_.end() ? 0 : known->second);
}

void JobRecordings::NoteRestart(const std::string& job_id, const Observation& observation) {
  const auto* mark = std::get_if<RunMark>(&observation.kind);
  if (mark == nullptr || mark->slurm_restart <= 0) return;
  if (!live_.contains(job_id) && !resting_.contains(job_id)) return;
  int32_t& known = restarts_[job_id];
  known = std::max(known, mark->slurm_restart);
}

std::string JobRecordings::trouble() const {
  if (!trouble_.empty()) return trouble_;
  if (frames_.behind().ns > kSlow.ns) {
    return "state: the disk of " + options_.directory +
           " does not respond; observations to be recorded are kept in memory";
  }
  for (const auto& [job_id, job] : live_) {
    const std::string why = job.writer ? job.writer->trouble() : std::string();
    if (!why.empty()) {
      return "recording of job " + job_id + ": " + why + "; free space below " + options_.directory;
    }
  }
  return {};
}

bool JobRecordings::Exact(const std::string& job_id) const {
  for (const auto* jobs : {&live_, &resting_}) {
    const auto found = jobs->find(job_id);
    if (found == jobs->end()) continue;
    const Job& job = found->second;
    return job.writer && job.exact && job.writer->exact();
  }
  return !unrecorded_.contains(job_id);
}

}  // namespace rankscope::exporter
