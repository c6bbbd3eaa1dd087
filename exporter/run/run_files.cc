// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/run/run_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "detectors/logs/text/masked_line.h"
#include "exporter/run/clock.h"
#include "exporter/run/write_all.h"

namespace rankscope::run {
namespace {

// linux/magic.h
constexpr long kFuseMagic = 0x65735546;
constexpr long kPipeMagic = 0x50495045;

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

}  // namespace

RunFiles::RunFiles(std::vector<OwnedFd> fds, const HelloMessage& hello, Peer peer)
    : words_{hello.job_id.data(), {hello.root_pid, hello.root_start_ticks}, std::move(peer), {}},
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
  if (auto root = FindForked(words_.peer.process, words_.peer.uid, words_.claimed_root))
    words_.root = *std::move(root);
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

void RunFiles::Hear(const Observation& observation, Batch& batch) {
  Sifted sifted = words_.Sift(observation);
  if (sifted.foreign) ++batch.foreign;
  if (!sifted.heard) return;
  if (auto* line = std::get_if<LogLine>(&sifted.heard->observation.kind)) {
    const bool terminated = line->end == LineEnd::kLf || line->end == LineEnd::kCr;
    const auto* said = std::get_if<LogLine>(&observation.kind);
    recorded_[line->stream - 1] = line->offset + static_cast<int64_t>(said->text.size()) +
                                  line->cut_bytes + (terminated ? 1 : 0);
    line->stream += static_cast<uint32_t>(slot_) * kStreamsPerSlot;
  }
  batch.heard.push_back(*std::move(sifted.heard));
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
    line.job_id = words_.job_id;
    std::string masked;
    logs::FillLine(assembled, line, masked);
    observation.kind = std::move(line);
    batch.heard.push_back(Keep(std::move(observation)));
  });
}

}  // namespace rankscope::run
