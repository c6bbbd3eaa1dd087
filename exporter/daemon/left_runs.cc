// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/daemon/left_runs.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>
#include <variant>

#include "detectors/logs/text/assembler.h"
#include "detectors/logs/text/masked_line.h"
#include "exporter/daemon/door.h"
#include "exporter/loop/owned_fd.h"
#include "exporter/replay/reading.h"
#include "exporter/run/child.h"

namespace rankscope::exporter {
namespace {

constexpr size_t kErrorCap = 512;

// No link is followed in the last step, and what is there must be the user's own.
OwnedFd OpenFolder(int at, const std::string& path, uint32_t uid) {
  OwnedFd folder(openat(at, path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat status = {};
  if (!folder || fstat(folder.get(), &status) != 0) return {};
  if (status.st_uid != uid) {
    errno = EPERM;
    return {};
  }
  return folder;
}

// What a wrapper may say of its run; nothing else is taken from its recording.
class Filter {
 public:
  Filter(const LeftRun& run, LeftRest& rest) : run_(run), rest_(rest) {}

  void Take(const Observation& observation) {
    if (observation.seq <= run_.after_seq || observation.seq >= Door::kFirstOwnSeq) return;
    if (const auto* mark = std::get_if<RunMark>(&observation.kind)) {
      if (mark->job_id == run_.job_id) TakeMark(*mark, observation);
    } else if (const auto* line = std::get_if<LogLine>(&observation.kind)) {
      if (line->job_id == run_.job_id && !rest_.full()) TakeLine(*line, observation);
    }
  }

 private:
  void TakeMark(const RunMark& mark, const Observation& observation) {
    RunMark own;
    own.job_id = run_.job_id;
    own.what = mark.what;
    own.root = run_.root;
    own.uid = run_.uid;
    if (mark.what == RunMark::What::kEnd) {
      own.wait_status = mark.wait_status & 0xffff;
      own.status_known = mark.status_known;
      own.error = mark.error.substr(0, kErrorCap);
      own.from_folder = true;
      ended_ = true;
    } else if (mark.what == RunMark::What::kStreamsClosed) {
      rest_.ended = ended_;
    } else {
      return;
    }
    Add(observation, std::move(own));
  }

  void TakeLine(const LogLine& line, const Observation& observation) {
    if (line.stream < 1 || line.stream > run::kStreams) return;
    LogLine own;
    own.stream = line.stream;
    own.stream_name = line.stream_name.substr(0, kErrorCap);
    own.job_id = run_.job_id;
    own.offset = std::max<int64_t>(0, line.offset);
    own.text = line.text.substr(0, logs::kLineCap);
    own.end = line.end;
    own.cut_bytes = std::max(0, line.cut_bytes);
    own.lost_before = std::max<int64_t>(0, line.lost_before);
    own.redactions = std::max(0, line.redactions);
    logs::MaskText(own, masked_);
    Add(observation, own);
  }

  template <typename Kind>
  void Add(const Observation& of, Kind kind) {
    Observation own;
    own.t = of.t;
    own.seq = of.seq;
    own.kind = std::move(kind);
    rest_.Add(own);
  }

  const LeftRun& run_;
  LeftRest& rest_;
  std::string masked_;
  bool ended_ = false;
};

}  // namespace

void LeftRest::Add(const Observation& observation) {
  Observation& own = observations.emplace_back(observation);
  last_seq = std::max(last_seq, own.seq);
  auto* line = std::get_if<LogLine>(&own.kind);
  if (line == nullptr) return;
  const auto keep = [this](std::string_view text) -> std::string_view {
    bytes_ += static_cast<int64_t>(text.size() + sizeof(Observation));
    return *texts_.emplace_back(std::make_unique<std::string>(text));
  };
  line->text = keep(line->text);
  line->stream_name = keep(line->stream_name);
}

LeftRest ReadLeftRun(const LeftRun& run) {
  LeftRest rest;
  const size_t slash = run.log.rfind('/');
  if (run.log.empty() || run.log.front() != '/' || slash == 0) {
    rest.problem = "its directory is not known";
    return rest;
  }
  const std::string path = run.log.substr(0, slash);
  const OwnedFd folder = OpenFolder(AT_FDCWD, path, run.uid);
  const OwnedFd recording = folder ? OpenFolder(folder.get(), "recording", run.uid) : OwnedFd();
  if (!recording) {
    rest.problem = path + "/recording: " + std::strerror(errno);
    return rest;
  }
  Filter filter(run, rest);
  replay::ReadCallbacks callbacks;
  callbacks.observation = [&](const Observation& observation) { filter.Take(observation); };
  // A state that stands for what was heard already is the user's word, and not needed.
  callbacks.restore = [](const EngineState&) { return true; };
  const replay::ReadResult read = replay::ReadRecordingDirectory(recording.get(), callbacks);
  if (!read.readable) rest.problem = path + "/recording: " + read.error;
  return rest;
}

}  // namespace rankscope::exporter
