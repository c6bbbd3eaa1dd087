// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/job_recordings.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <limits>
#include <optional>
#include <utility>

#include "detectors/model/event_types.h"
#include "exporter/door.h"
#include "exporter/job_of.h"
#include "exporter/kept_file.h"
#include "exporter/replay/reading.h"
#include "exporter/sources.h"

namespace rankscope::exporter {
namespace {

namespace fs = std::filesystem;

// A job id of more recordings than this at once would be a fork bomb of jobs; the engine keeps 64.
constexpr size_t kMaxLive = 128;

// The run source numbers the streams of a job's wrappers so: 1 to 3 of the first, 5 to 7 of the
// second.
constexpr uint32_t kStreamsPerWrapper = 4;

bool Touch(const std::string& path) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return false;
  fsync(fd);
  close(fd);
  return true;
}

int64_t SizeOf(const fs::path& directory) {
  int64_t bytes = 0;
  std::error_code error;
  for (const auto& file : fs::directory_iterator(directory, error)) {
    const auto size = file.file_size(error);
    if (!error) bytes += static_cast<int64_t>(size);
  }
  return bytes;
}

std::string Remedy(const std::string& what) {
  return what + ": " + std::strerror(errno) +
         "; nothing is recorded; make state.dir writable or name another with --state.dir";
}

// An observation with the borrowed texts of its line.
struct Kept {
  Observation observation;
  std::string text;
  std::string stream_name;

  void Bind() {
    if (auto* line = std::get_if<LogLine>(&observation.kind)) {
      line->text = text;
      line->stream_name = stream_name;
    }
  }
};

Kept Keep(const Observation& observation) {
  Kept kept{observation, {}, {}};
  if (const auto* line = std::get_if<LogLine>(&observation.kind)) {
    kept.text = line->text;
    kept.stream_name = line->stream_name;
  }
  return kept;
}

// What the scheduler says of a job may come long after its end, and begins nothing.
bool IsSchedulersWord(const Observation& observation) {
  const auto* fact = std::get_if<SchedulerFact>(&observation.kind);
  return fact != nullptr && fact->origin != "mapping";
}

// Every job on the node judges by whose card it is, and by who else computes there.
bool IsOfGpu(const Observation& observation) {
  const auto* event = std::get_if<Event>(&observation.kind);
  return event != nullptr && (event->type == WireType(EventType::kGpuIdentity) ||
                              event->type == WireType(EventType::kGpuProcess));
}

}  // namespace

JobRecordings::JobRecordings(Options options, Logger& log)
    : options_(std::move(options)), log_(log), boot_id_(options_.header.boot_id) {}

JobRecordings::~JobRecordings() {
  if (lock_fd_ >= 0) close(lock_fd_);
}

Status JobRecordings::Open() {
  const std::string& directory = options_.directory;
  std::error_code error;
  fs::create_directories(directory + "/jobs", error);
  if (error) {
    errno = error.value();
    trouble_ = Remedy("state: cannot create " + directory + "/jobs");
    ++own_errors_;
    return Error{trouble_};
  }
  chmod(directory.c_str(), 0700);
  const std::string lock = directory + "/lock";
  lock_fd_ = open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (lock_fd_ < 0) {
    trouble_ = Remedy("state: cannot write " + lock);
    ++own_errors_;
    return Error{trouble_};
  }
  if (flock(lock_fd_, LOCK_EX | LOCK_NB) != 0) {
    trouble_ = "state: " + directory +
               " belongs to another running rankscope; nothing is recorded; give each its own "
               "--state.dir";
    ++own_errors_;
    return Error{trouble_};
  }
  return {};
}

std::vector<std::string> JobRecordings::Unfinished() const {
  std::vector<std::string> directories;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(options_.directory + "/jobs", error)) {
    if (entry.is_directory(error) && !fs::exists(entry.path() / "finished", error)) {
      directories.push_back(entry.path().string());
    }
  }
  std::sort(directories.begin(), directories.end());
  return directories;
}

// The last start died while it read: find the recording that does it, one by one.
void JobRecordings::CheckSuspects(const std::function<void(const std::string&)>& sane) {
  for (const std::string& directory : Unfinished()) {
    const std::string mark = directory + "/suspect";
    std::error_code error;
    if (fs::exists(mark, error)) {
      const fs::path quarantine = fs::path(options_.directory) / "quarantine";
      fs::create_directories(quarantine, error);
      fs::remove_all(quarantine / fs::path(directory).filename(), error);
      fs::rename(directory, quarantine / fs::path(directory).filename(), error);
      log_.Error("a recording crashed the engine twice and is set aside",
                 {{"recording", directory}, {"to", quarantine.string()}});
      continue;
    }
    if (!Touch(mark)) continue;
    sane(directory);
    fs::remove(mark, error);
  }
}

void JobRecordings::Restore(const std::function<void(const Observation&)>& deliver,
                            const std::function<void(const std::string&)>& sane) {
  if (!trouble_.empty()) return;
  const std::string mark = options_.directory + "/restoring";
  std::error_code error;
  if (fs::exists(mark, error)) CheckSuspects(sane);
  const std::vector<std::string> directories = Unfinished();
  if (directories.empty()) return;
  if (!Touch(mark)) return;

  std::vector<Kept> all;
  for (const std::string& directory : directories) {
    std::string boot_id;
    replay::ReadCallbacks callbacks;
    callbacks.header = [&](const recording::Header& header) { boot_id = header.boot_id; };
    callbacks.observation = [&](const Observation& observation) {
      if (boot_id == boot_id_) all.push_back(Keep(observation));
    };
    const replay::ReadResult result = replay::ReadRecording(directory, callbacks);
    if (!result.readable || boot_id != boot_id_) {
      // Of an earlier boot: its clock means nothing now and its processes are gone. It stays to be
      // replayed by hand.
      Touch(directory + "/finished");
      log_.Warn("a recording cannot be continued",
                {{"recording", directory},
                 {"why", result.readable ? "the machine was restarted" : result.error}});
    }
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Kept& a, const Kept& b) { return a.observation.t < b.observation.t; });
  std::optional<Timestamp> last_tick;
  std::vector<std::pair<uint32_t, int64_t>>
      same_time;  // node-wide observations are in every recording
  Timestamp same_time_t;
  for (Kept& kept : all) {
    kept.Bind();
    const Observation& observation = kept.observation;
    if (std::holds_alternative<Tick>(observation.kind)) {
      if (last_tick == observation.t) continue;
      last_tick = observation.t;
    } else if (observation.source != kRunSource) {
      if (same_time_t != observation.t) same_time.clear();
      same_time_t = observation.t;
      const std::pair<uint32_t, int64_t> id{observation.source, observation.seq};
      if (std::find(same_time.begin(), same_time.end(), id) != same_time.end()) continue;
      same_time.push_back(id);
    }
    const std::string job_id = JobOf(observation, attribution_, boot_id_);
    if (!job_id.empty()) {
      RecorderOf(job_id, observation);
      NoteRestart(job_id, observation);
      if (observation.source == kRunSource && observation.seq < Door::kFirstOwnSeq) {
        const auto* line = std::get_if<LogLine>(&observation.kind);
        int64_t& seq =
            wrapper_seq_[{job_id, line ? static_cast<int>(line->stream / kStreamsPerWrapper) : 0}];
        seq = std::max(seq, observation.seq);
      }
    }
    deliver(observation);
  }
  fs::remove(mark, error);
  log_.Info("took up the jobs of an earlier run",
            {{"jobs", std::to_string(live_.size())}, {"observations", std::to_string(all.size())}});
}

replay::Recorder* JobRecordings::RecorderOf(const std::string& job_id, const Observation& first) {
  if (const auto found = live_.find(job_id); found != live_.end()) return found->second.get();
  const fs::path directory = fs::path(options_.directory) / "jobs" / FileNameOf(job_id);
  const fs::path mark = directory / "finished";
  const bool word = IsSchedulersWord(first);
  std::error_code error;
  if (const auto found = resting_.find(job_id); found != resting_.end()) {
    if (word) {
      told_.insert(job_id);
      return found->second.get();
    }
    if (IsNextAttempt(job_id, first) && live_.size() < kMaxLive) {
      // Its next attempt.
      fs::remove(mark, error);
      unmarked_.erase(job_id);
      replay::Recorder* const recorder = found->second.get();
      live_[job_id] = std::move(found->second);
      resting_.erase(found);
      told_.erase(job_id);
      return recorder;
    }
    Forget(job_id);
  }
  if (word || live_.size() >= kMaxLive) return nullptr;
  std::unique_ptr<replay::Recorder>& recorder = live_[job_id];
  if (!trouble_.empty()) return nullptr;
  // Two lives in one recording would be judged as one: better the verdict of the first is lost.
  MarkFinished(job_id);

  if (fs::exists(mark, error)) {
    // The id is used again: the earlier life keeps its recording under another name.
    struct stat info {};
    stat(mark.c_str(), &info);
    fs::rename(directory, directory.string() + '~' + std::to_string(info.st_mtim.tv_sec), error);
  }
  const bool is_new = !fs::exists(directory, error);
  fs::create_directory(directory, error);
  const int fd = open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) {
    ++own_errors_;
    log_.Warn("a job is not recorded",
              {{"job_id", job_id}, {"why", Remedy("cannot open " + directory.string())}});
    return nullptr;
  }
  chmod(directory.c_str(), 0700);
  replay::RecorderBudgets budgets;
  budgets.segment_bytes = std::max<int64_t>(options_.job_bytes / 8, 64 << 10);
  budgets.facts_bytes = budgets.segment_bytes;
  budgets.progress_bytes = 3 * budgets.segment_bytes;
  recorder =
      std::make_unique<replay::Recorder>(fd, options_.header, replay::RecorderHooks{}, budgets);
  close(fd);
  if (const Status status = recorder->Open(); !status.ok()) {
    log_.Warn("a job is not recorded", {{"job_id", job_id}, {"why", status.error()}});
  }
  if (is_new) {
    for (Observation observation : preamble_) {
      observation.t = std::min(observation.t, first.t);
      recorder->Accept(observation);
    }
  }
  return recorder.get();
}

void JobRecordings::Accept(const Observation& observation) {
  const std::string job_id = JobOf(observation, attribution_, boot_id_);
  if (!job_id.empty() && !IsOfGpu(observation)) {
    if (replay::Recorder* recorder = RecorderOf(job_id, observation)) recorder->Accept(observation);
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
                       IsOfGpu(observation);
  if (!of_node) return;
  for (const auto& [id, recorder] : live_) {
    if (recorder) recorder->Accept(observation);
  }
  // A replay judges when it was judged.
  if (!std::holds_alternative<Tick>(observation.kind)) return;
  for (const std::string& told : told_) resting_.at(told)->Accept(observation);
}

void JobRecordings::Flush() {
  for (const auto& [id, recorder] : live_) {
    if (recorder) recorder->Flush();
  }
  for (const std::string& job_id : told_) resting_.at(job_id)->Flush();
  told_.clear();
}

void JobRecordings::Finish(const std::string& job_id) {
  attribution_.ForgetJob(job_id);
  const auto found = live_.find(job_id);
  if (found == live_.end()) return;
  if (found->second) {
    found->second->Sync();
    unmarked_.insert(job_id);
    if (resting_.size() >= kMaxLive) Forget(resting_.begin()->first);
    resting_[job_id] = std::move(found->second);
  } else {
    restarts_.erase(job_id);
  }
  live_.erase(found);
}

void JobRecordings::MarkFinished(const std::string& job_id) {
  if (unmarked_.erase(job_id) == 0) return;
  if (!Touch(options_.directory + "/jobs/" + FileNameOf(job_id) + "/finished")) ++own_errors_;
  EnforceTotal();
}

void JobRecordings::Forget(const std::string& job_id) {
  told_.erase(job_id);
  if (!live_.contains(job_id)) restarts_.erase(job_id);
  const auto found = resting_.find(job_id);
  if (found == resting_.end()) return;
  found->second->Sync();
  closed_bytes_ += found->second->counters().bytes;
  closed_errors_ += found->second->counters().errors;
  resting_.erase(found);
}

void JobRecordings::EnforceTotal() {
  if (!trouble_.empty()) return;
  struct Finished {
    fs::file_time_type when;
    fs::path directory;
    int64_t bytes = 0;
  };
  std::vector<Finished> finished;
  int64_t total = 0;
  std::error_code error;
  for (const char* folder : {"/jobs", "/quarantine"}) {
    for (const auto& entry : fs::directory_iterator(options_.directory + folder, error)) {
      const int64_t bytes = SizeOf(entry.path());
      total += bytes;
      const bool done =
          fs::exists(entry.path() / "finished", error) || std::string_view(folder) == "/quarantine";
      if (done) finished.push_back({fs::last_write_time(entry.path(), error), entry.path(), bytes});
    }
  }
  std::sort(finished.begin(), finished.end(),
            [](const Finished& a, const Finished& b) { return a.when < b.when; });
  for (const Finished& oldest : finished) {
    if (total <= options_.total_bytes) return;
    const auto rests = std::find_if(resting_.begin(), resting_.end(), [&](const auto& each) {
      return oldest.directory.filename() == FileNameOf(each.first);
    });
    if (rests != resting_.end()) Forget(std::string(rests->first));
    fs::remove_all(oldest.directory, error);
    total -= oldest.bytes;
    log_.Info("removed the oldest recording to stay within state.total_bytes",
              {{"recording", oldest.directory.string()}});
  }
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

int64_t JobRecordings::OpenBytes() const {
  int64_t bytes = 0;
  for (const auto& [job_id, recorder] : live_) {
    if (recorder) bytes += recorder->counters().bytes;
  }
  for (const auto& [job_id, recorder] : resting_) bytes += recorder->counters().bytes;
  return bytes;
}

int64_t JobRecordings::errors() const {
  int64_t errors = closed_errors_ + own_errors_;
  for (const auto& [job_id, recorder] : live_) {
    if (recorder) errors += recorder->counters().errors;
  }
  for (const auto& [job_id, recorder] : resting_) errors += recorder->counters().errors;
  return errors;
}

std::string JobRecordings::trouble() const {
  if (!trouble_.empty()) return trouble_;
  for (const auto& [job_id, recorder] : live_) {
    if (recorder && recorder->counters().broken) {
      return "recording of job " + job_id + ": " + std::strerror(recorder->counters().last_error) +
             "; free space below " + options_.directory;
    }
  }
  return {};
}

}  // namespace rankscope::exporter
