// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/run/run_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "detectors/logs/masked_line.h"
#include "exporter/run/clock.h"
#include "exporter/run/write_all.h"

namespace rankscope::run {
namespace {

// linux/magic.h
constexpr long kFuseMagic = 0x65735546;
constexpr long kPipeMagic = 0x50495045;

// A file is smaller; two of these fit into a number.
constexpr int64_t kMostOffset = int64_t{1} << 60;

constexpr size_t kDrainBlock = 64 * 1024;

// LogLine::stream of text that is read from the log itself after the wrapper's death: its offsets
// are the log's.
constexpr uint32_t kLogStream = 3;
constexpr uint32_t kStreamsPerSlot = 4;

bool IsDirectory(int fd) {
  struct stat status {};
  struct statfs system {};
  return fstat(fd, &status) == 0 && S_ISDIR(status.st_mode) && fstatfs(fd, &system) == 0 &&
         system.f_type != kFuseMagic;
}

bool IsLog(int fd) {
  struct stat status {};
  struct statfs system {};
  const int flags = fcntl(fd, F_GETFL);
  return fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && fstatfs(fd, &system) == 0 &&
         system.f_type != kFuseMagic && flags >= 0 && (flags & O_ACCMODE) == O_RDWR &&
         (flags & O_APPEND) != 0;
}

// A pipe of pipe(2), and no FIFO: that one lies in a file system.
bool IsReadablePipe(int fd) {
  struct statfs system {};
  const int flags = fcntl(fd, F_GETFL);
  return fstatfs(fd, &system) == 0 && system.f_type == kPipeMagic && flags >= 0 &&
         (flags & O_ACCMODE) == O_RDONLY;
}

// A description of our own on the same pipe: non-blocking whatever the other holders do to theirs,
// and without making theirs non-blocking.
OwnedFd OwnDescription(int pipe) {
  const std::string link = "/proc/self/fd/" + std::to_string(pipe);
  OwnedFd own(open(link.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!own) {
    fcntl(pipe, F_SETFL, O_NONBLOCK);
    own = OwnedFd(fcntl(pipe, F_DUPFD_CLOEXEC, 0));
  }
  return own;
}

Heard Keep(Observation observation) {
  Heard heard;
  if (const auto* line = std::get_if<LogLine>(&observation.kind)) {
    heard.text = line->text;
    heard.stream_name = line->stream_name;
  }
  heard.observation = std::move(observation);
  return heard;
}

// A wrapper records these for its own judgement.
bool IsForItself(const Observation& observation) {
  return std::holds_alternative<Tick>(observation.kind) ||
         std::holds_alternative<Epoch>(observation.kind) ||
         std::holds_alternative<SourceState>(observation.kind);
}

}  // namespace

const Observation& Heard::Bound() {
  if (auto* line = std::get_if<LogLine>(&observation.kind)) {
    line->text = text;
    line->stream_name = stream_name;
  }
  return observation;
}

RunFiles::RunFiles(std::vector<OwnedFd> fds, const HelloMessage& hello, Peer peer)
    : peer_(std::move(peer)),
      job_id_(hello.job_id.data()),
      claimed_root_{hello.root_pid, hello.root_start_ticks},
      stream_bits_(hello.streams),
      directory_(std::move(fds[0])),
      log_(std::move(fds[1])),
      life_(std::move(fds[2])) {
  size_t next = kHelloFds;
  for (size_t i = 0; i < kStreams; ++i) {
    if ((stream_bits_ >> i & 1u) != 0) streams_[i] = std::move(fds[next++]);
  }
}

bool RunFiles::Check() {
  if (!IsDirectory(directory_.get()) || !IsLog(log_.get()) || !IsReadablePipe(life_.get()))
    return false;
  for (const OwnedFd& stream : streams_) {
    if (stream && !IsReadablePipe(stream.get())) return false;
  }
  if (auto root = FindForked(peer_.process, peer_.uid, claimed_root_)) root_ = *std::move(root);
  return true;
}

void RunFiles::Begin(int slot, int64_t after_seq) {
  slot_ = slot;
  replay::FollowerLimits limits;
  limits.bytes_per_poll = kBatchBytes;
  follower_.emplace(directory_.get(), after_seq, limits);
}

Batch RunFiles::ReadRecording() {
  Batch batch;
  batch.more = follower_->Poll([&](const Observation& observation) { Hear(observation, batch); });
  batch.gaps = follower_->gaps();
  return batch;
}

// What a wrapper may say: its own marks, its own child, its own lines. Time, other jobs' facts, the
// kernel's and the scheduler's are not its to say.
void RunFiles::Hear(const Observation& observation, Batch& batch) {
  if (IsForItself(observation)) return;
  if (const auto* mark = std::get_if<RunMark>(&observation.kind);
      mark != nullptr && mark->job_id == job_id_ &&
      (mark->what == RunMark::What::kBegin || mark->what == RunMark::What::kEnd ||
       mark->what == RunMark::What::kStreamsClosed)) {
    Observation own = observation;
    std::get<RunMark>(own.kind).root = root_.key;
    std::get<RunMark>(own.kind).uid = peer_.uid;
    std::get<RunMark>(own.kind).from_folder = false;  // that is the daemon's to say
    batch.heard.push_back(Keep(std::move(own)));
    return;
  }
  const auto* start = std::get_if<ProcessStart>(&observation.kind);
  if (start != nullptr && start->job_id == job_id_ && start->key == claimed_root_ &&
      root_.key.pid != 0) {
    // Its arguments and its environment are the user's own words anyway; the rest is the kernel's.
    Observation own = observation;
    auto& child = std::get<ProcessStart>(own.kind);
    child.key = root_.key;
    child.parent = peer_.process;
    child.uid = peer_.uid;
    child.cgroup = root_.cgroup;
    child.ns_pids = root_.ns_pids;
    batch.heard.push_back(Keep(std::move(own)));
    return;
  }
  const auto* line = std::get_if<LogLine>(&observation.kind);
  if (line != nullptr && line->job_id == job_id_ && line->stream >= 1 && line->stream <= kStreams)
    return HearLine(observation, batch);
  // The start of a command that had ended before it was looked for is no lie.
  if (start == nullptr || start->key != claimed_root_) ++batch.foreign;
}

void RunFiles::HearLine(const Observation& observation, Batch& batch) {
  Observation own = observation;
  auto& line = std::get<LogLine>(own.kind);
  const bool terminated = line.end == LineEnd::kLf || line.end == LineEnd::kCr;
  const int64_t offset = std::clamp<int64_t>(line.offset, 0, kMostOffset);
  recorded_[line.stream - 1] =
      offset + static_cast<int64_t>(line.text.size()) + line.cut_bytes + (terminated ? 1 : 0);
  line.text = line.text.substr(0, logs::kLineCap);
  std::string masked;
  logs::MaskText(line, masked);
  line.writer = {};
  line.stream += static_cast<uint32_t>(slot_) * kStreamsPerSlot;
  batch.heard.push_back(Keep(std::move(own)));
}

// What the log holds beyond the recorded text of both streams was in the wrapper's memory.
Batch RunFiles::ReadLog() {
  Batch batch;
  batch.gaps = follower_->gaps();
  if (!log_lines_) {
    struct stat status {};
    fstat(log_.get(), &status);
    log_offset_ = std::clamp<int64_t>(recorded_[kStdout] + recorded_[kStderr], 0, status.st_size);
    log_lines_.emplace(log_offset_);
  }
  batch.more = ReadLogPiece(batch);
  return batch;
}

// Whether there may be more.
bool RunFiles::ReadLogPiece(Batch& batch) {
  std::vector<char> block(kBatchBytes);
  const ssize_t size = pread(log_.get(), block.data(), block.size(), log_offset_);
  if (size <= 0) return false;
  FeedLog({block.data(), static_cast<size_t>(size)}, batch);
  return true;
}

void RunFiles::TakePipes(std::array<OwnedFd, kStreams> streams) {
  for (size_t i = 0; i < kStreams; ++i) {
    streams_[i] = streams[i] ? OwnDescription(streams[i].get()) : OwnedFd();
  }
}

Batch RunFiles::Drain() {
  Batch batch = ReadLog();
  if (batch.more) return batch;
  bool open = false;
  for (OwnedFd& stream : streams_) {
    if (stream && DrainStream(stream, batch)) batch.more = true;
    open = open || stream;
  }
  batch.closed = !open;
  return batch;
}

// Whether there may be more.
bool RunFiles::DrainStream(OwnedFd& stream, Batch& batch) {
  std::vector<char> block(kDrainBlock);
  const ssize_t size = read(stream.get(), block.data(), block.size());
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (size <= 0) {
    stream.Reset();
    return false;
  }
  const std::string_view bytes(block.data(), static_cast<size_t>(size));
  WriteAll(log_.get(), bytes);  // a full disk must not stop the draining
  FeedLog(bytes, batch);
  return true;
}

void RunFiles::FeedLog(std::string_view bytes, Batch& batch) {
  log_offset_ += static_cast<int64_t>(bytes.size());
  log_lines_->Feed(bytes, [&](const logs::AssembledLine& assembled) {
    Observation observation;
    observation.t = MonotonicNow();
    LogLine line;
    line.stream = kLogStream + static_cast<uint32_t>(slot_) * kStreamsPerSlot;
    line.stream_name = "log";
    line.job_id = job_id_;
    std::string masked;
    logs::FillLine(assembled, line, masked);
    observation.kind = std::move(line);
    batch.heard.push_back(Keep(std::move(observation)));
  });
}

}  // namespace rankscope::run
