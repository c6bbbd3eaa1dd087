// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The start of JobRecordings: its directory, and what an earlier run has left there. Here the loop
// waits for the disk, for nobody is served yet.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "exporter/daemon/door.h"
#include "exporter/daemon/job_of.h"
#include "exporter/daemon/job_recordings.h"
#include "exporter/daemon/sources.h"
#include "exporter/replay/reading.h"

namespace rankscope::exporter {
namespace {

namespace fs = std::filesystem;

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

std::string Remedy(const std::string& what) {
  return what + ": " + std::strerror(errno) +
         "; nothing is recorded; make state.dir writable, or choose another with --state.dir";
}

// An observation with the borrowed texts of its line.
struct Kept {
  Observation observation;
  // The tick that judged it: the next one of its recording. What was read late is judged by a tick
  // that is long after its time, and a line may be stamped after a tick that it came before.
  Timestamp judged{INT64_MAX};
  Timestamp order;  // the newest time that its recording had until here
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
  Kept kept;
  kept.observation = observation;
  if (const auto* line = std::get_if<LogLine>(&observation.kind)) {
    kept.text = line->text;
    kept.stream_name = line->stream_name;
  }
  return kept;
}

// Empty, or why what is kept here could be another's word.
std::string Stranger(const std::string& directory) {
  struct stat info {};
  if (lstat(directory.c_str(), &info) != 0) return {};              // to be made
  if (!S_ISDIR(info.st_mode) && !S_ISLNK(info.st_mode)) return {};  // said when it is used
  if (stat(directory.c_str(), &info) != 0) return {};
  const std::string whose =
      "state: " + directory + " belongs to uid " + std::to_string(info.st_uid);
  if (info.st_uid != geteuid() && info.st_uid != 0)
    return whose +
           ", who could change its contents; nothing is recorded; chown it, or choose another with "
           "--state.dir";
  // Nobody has put anything there yet, and nobody will, once its mode is set.
  std::error_code error;
  const bool empty = fs::is_empty(directory, error);
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0 && !(empty && !error))
    return "state: others may write to " + directory +
           "; nothing is recorded; chmod it to 0700, or choose another with --state.dir";
  return {};
}

}  // namespace

Status JobRecordings::Open() {
  const std::string& directory = options_.directory;
  if (trouble_ = Stranger(directory); !trouble_.empty()) {
    ++own_errors_;
    return Error{trouble_};
  }
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
      log_.Error("recording moved to quarantine: the daemon crashed twice while it read it",
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
    Timestamp newest;
    size_t unjudged = all.size();
    replay::ReadCallbacks callbacks;
    callbacks.header = [&](const recording::Header& header) { boot_id = header.boot_id; };
    callbacks.observation = [&](const Observation& observation) {
      if (boot_id != boot_id_) return;
      all.push_back(Keep(observation));
      newest = all.back().order = std::max(newest, observation.t);
      if (!std::holds_alternative<Tick>(observation.kind)) return;
      for (; unjudged < all.size(); ++unjudged) all[unjudged].judged = observation.t;
    };
    const replay::ReadResult result = replay::ReadRecording(directory, callbacks);
    if (!result.readable || boot_id != boot_id_) {
      // Of an earlier boot: its clock means nothing now and its processes are gone. It stays to be
      // replayed by hand.
      Touch(directory + "/finished");
      log_.Warn("recording cannot be continued; it remains for `rankscope replay`",
                {{"recording", directory},
                 {"reason", result.readable ? "the machine was restarted" : result.error}});
    }
  }
  std::stable_sort(all.begin(), all.end(), [](const Kept& a, const Kept& b) {
    const bool a_ticks = std::holds_alternative<Tick>(a.observation.kind);
    const bool b_ticks = std::holds_alternative<Tick>(b.observation.kind);
    return std::tie(a.judged, a_ticks, a.order) < std::tie(b.judged, b_ticks, b.order);
  });
  std::optional<Timestamp> last_tick;
  // What is of no job is in every recording, and may stand behind another time in each.
  std::set<std::tuple<int64_t, uint32_t, int64_t>> of_the_node;
  for (Kept& kept : all) {
    kept.Bind();
    const Observation& observation = kept.observation;
    const std::string job_id = JobOf(observation, attribution_, boot_id_);
    if (std::holds_alternative<Tick>(observation.kind)) {
      if (last_tick && observation.t <= *last_tick) continue;
      last_tick = observation.t;
    } else if (observation.source != kRunSource && job_id.empty() &&
               !of_the_node.insert({observation.t.ns, observation.source, observation.seq})
                    .second) {
      continue;
    }
    if (!job_id.empty()) {
      JobWith(job_id, observation);
      NoteRestart(job_id, observation);
      if (const auto* told = std::get_if<RunMark>(&observation.kind);
          told != nullptr && told->what == RunMark::What::kDisowned) {
        // The numbers were another user's.
        std::erase_if(wrapper_seq_, [&](const auto& known) { return known.first.first == job_id; });
      }
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
  log_.Info("jobs restored from their recordings",
            {{"jobs", std::to_string(live_.size())}, {"observations", std::to_string(all.size())}});
}

}  // namespace rankscope::exporter
