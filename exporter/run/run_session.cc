// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/run/run_session.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "detectors/logs/masked_line.h"
#include "exporter/run/write_all.h"

namespace rankscope::run {
namespace {

// linux/magic.h: a file system whose server is the user's own program may keep every reader
// waiting.
constexpr long kFuseMagic = 0x65735546;

// Packets per wake-up of the loop, so that one wrapper does not keep the others waiting.
constexpr int kPacketsPerTurn = 16;
// Bytes of an orphan per wake-up, and per beat of its log.
constexpr size_t kOrphanBlock = 256 * 1024;
constexpr size_t kTailBlocksPerBeat = 16;

// Reads of the follower (4 MiB each) that empty any recording.
constexpr int kMostReads = 16;

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

bool IsReadablePipe(int fd) {
  struct stat status {};
  const int flags = fcntl(fd, F_GETFL);
  return fstat(fd, &status) == 0 && S_ISFIFO(status.st_mode) && flags >= 0 &&
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

RunSession::RunSession(OwnedFd socket, uint32_t uid, exporter::EventLoop& loop, Sink& sink,
                       Callbacks callbacks)
    : socket_(std::move(socket)),
      uid_(uid),
      loop_(loop),
      sink_(sink),
      callbacks_(std::move(callbacks)),
      since_(loop.Now()) {
  if (!loop_.Watch(socket_.get(), EPOLLIN, [this](uint32_t) { OnSocket(); })) Close();
}

RunSession::~RunSession() {
  Close();
}

void RunSession::Close() {
  if (socket_) loop_.Unwatch(socket_.get());
  if (life_) loop_.Unwatch(life_.get());
  for (OwnedFd& stream : streams_) {
    if (stream && draining_) loop_.Unwatch(stream.get());
    stream.Reset();
  }
  socket_.Reset();
  life_.Reset();
  log_.Reset();
  state_ = State::kClosed;
}

void RunSession::OnSocket() {
  for (int i = 0; i < kPacketsPerTurn && socket_; ++i) {
    Packet packet = ReceivePacket(socket_.get());
    if (packet.state == Packet::State::kNothing) return;
    if (packet.state == Packet::State::kMessage) {
      OnPacket(packet);
    } else if (state_ == State::kFollowing) {
      Orphan();
    } else {
      Close();
    }
  }
}

void RunSession::OnPacket(Packet& packet) {
  const auto type = static_cast<uint8_t>(packet.bytes[0]);
  if (state_ == State::kGreeting) {
    if (Greet(packet)) return;
    callbacks_.on_malformed();
    return Close();
  }
  if (type == kWake) {
    behind_ = true;
  } else if (type == kReleaseStream && packet.size == sizeof(StreamMessage)) {
    Release(static_cast<uint8_t>(packet.bytes[1]));
  } else if (type == kEnd && state_ == State::kFollowing) {
    FollowToEnd();
    state_ = State::kEnded;
    since_ = loop_.Now();
    callbacks_.on_end(job_id_);
  } else {
    callbacks_.on_malformed();
  }
}

bool RunSession::Greet(Packet& packet) {
  HelloMessage hello;
  if (packet.size != sizeof hello) return false;
  std::memcpy(&hello, packet.bytes.data(), sizeof hello);
  hello.job_id.back() = '\0';
  const std::string job_id = hello.job_id.data();
  const size_t stream_count = (hello.streams & 1u) + (hello.streams >> 1 & 1u);
  if (hello.type != kHello || hello.version != kProtocolVersion || hello.streams >> kStreams != 0)
    return false;
  if (!IsJobId(job_id) || packet.fds.size() != kHelloFds + stream_count) return false;
  if (!IsDirectory(packet.fds[0].get()) || !IsLog(packet.fds[1].get())) return false;
  for (size_t i = 2; i < packet.fds.size(); ++i) {
    if (!IsReadablePipe(packet.fds[i].get())) return false;
  }
  slot_ = callbacks_.admit(job_id, uid_);
  if (slot_ < 0) return false;

  job_id_ = job_id;
  root_ = {hello.root_pid, hello.root_start_ticks};
  follower_ = std::make_unique<replay::Follower>(packet.fds[0].get(),
                                                 callbacks_.resume_after(job_id, slot_));
  log_ = std::move(packet.fds[1]);
  life_ = std::move(packet.fds[2]);
  size_t next = kHelloFds;
  for (size_t i = 0; i < kStreams; ++i) {
    if ((hello.streams >> i & 1u) != 0) streams_[i] = std::move(packet.fds[next++]);
  }
  state_ = State::kFollowing;
  since_ = loop_.Now();
  behind_ = true;
  return true;
}

void RunSession::Release(int stream) {
  if (stream >= kStreams) return callbacks_.on_malformed();
  streams_[static_cast<size_t>(stream)].Reset();
  const StreamMessage done{kReleasedStream, static_cast<uint8_t>(stream)};
  SendPacket(socket_.get(), BytesOf(done));
}

void RunSession::Follow() {
  behind_ = follower_->Poll([this](const Observation& observation) { Pass(observation); });
}

// A recorder keeps at most its budget of 32 MiB in segments; one that still grows after this many
// reads is none.
void RunSession::FollowToEnd() {
  behind_ = true;
  for (int i = 0; i < kMostReads && behind_; ++i) Follow();
}

// What a wrapper may say: its own marks, its own child, its own lines. Time, other jobs' facts, the
// kernel's and the scheduler's are not its to say.
void RunSession::Pass(const Observation& observation) {
  if (const auto* mark = std::get_if<RunMark>(&observation.kind)) {
    if (mark->job_id == job_id_ && mark->what != RunMark::What::kLost) {
      Observation own = observation;
      std::get<RunMark>(own.kind).root = root_;
      std::get<RunMark>(own.kind).uid = uid_;
      Emit(std::move(own));
    }
  } else if (const auto* start = std::get_if<ProcessStart>(&observation.kind)) {
    if (start->job_id == job_id_ && start->key == root_) {
      Observation own = observation;
      std::get<ProcessStart>(own.kind).uid = uid_;
      Emit(std::move(own));
    }
  } else if (const auto* line = std::get_if<LogLine>(&observation.kind)) {
    if (line->job_id == job_id_ && line->stream >= 1 && line->stream <= kStreams)
      PassLine(observation);
  }
}

void RunSession::PassLine(const Observation& observation) {
  Observation own = observation;
  auto& line = std::get<LogLine>(own.kind);
  const bool terminated = line.end == LineEnd::kLf || line.end == LineEnd::kCr;
  recorded_[line.stream - 1] =
      line.offset + static_cast<int64_t>(line.text.size()) + line.cut_bytes + (terminated ? 1 : 0);
  line.text = line.text.substr(0, logs::kLineCap);
  std::string masked;
  logs::MaskText(line, masked);
  line.writer = {};
  line.stream += static_cast<uint32_t>(slot_) * kStreamsPerSlot;
  Emit(std::move(own));
}

void RunSession::Emit(Observation observation) {
  // A recording that claims to come from the future must not carry the engine there.
  observation.t = std::min(observation.t, loop_.Now());
  sink_.Accept(observation);
}

void RunSession::EmitMark(RunMark::What what) {
  RunMark mark;
  mark.job_id = job_id_;
  mark.what = what;
  mark.root = root_;
  mark.uid = uid_;
  Observation observation;
  observation.t = loop_.Now();
  observation.kind = std::move(mark);
  Emit(std::move(observation));
}

void RunSession::OnBeat() {
  const Timestamp now = loop_.Now();
  switch (state_) {
    case State::kGreeting:
      if (now.ns - since_.ns > kGreetingPatience.ns) {
        callbacks_.on_malformed();
        Close();
      }
      return;
    case State::kFollowing:
      if (behind_) Follow();
      return;
    case State::kEnded:
      if (now.ns - since_.ns > kEndedPatience.ns) Close();
      return;
    case State::kOrphaned:
      if (!draining_) ReadLogTail();
      return;
    case State::kClosed:
      return;
  }
}

void RunSession::Answer(std::string_view json, std::string_view text) {
  if (state_ != State::kEnded) return;
  const OwnedFd memory(memfd_create("rankscope-verdict", MFD_CLOEXEC));
  if (memory && WriteAll(memory.get(), json).error == 0 &&
      WriteAll(memory.get(), text).error == 0) {
    VerdictMessage message;
    message.json_bytes = json.size();
    message.text_bytes = text.size();
    const std::array<int, 1> fds = {memory.get()};
    SendPacket(socket_.get(), BytesOf(message), fds);
  }
  Close();
}

// The wrapper died. Its guardian, if it lives, goes on copying and we read the log behind it; when
// that is gone too, we drain the pipes ourselves, or the command would die of SIGPIPE. Its own
// standard output is lost with it either way.
void RunSession::Orphan() {
  FollowToEnd();
  loop_.Unwatch(socket_.get());
  socket_.Reset();
  state_ = State::kOrphaned;
  since_ = loop_.Now();
  EmitMark(RunMark::What::kLost);

  // What the log holds beyond the recorded text of both streams was in the wrapper's memory.
  struct stat status {};
  fstat(log_.get(), &status);
  log_offset_ = std::min<int64_t>(recorded_[kStdout] + recorded_[kStderr], status.st_size);
  orphan_lines_ = logs::LineAssembler(log_offset_);
  ReadLogTail();
  // No event but the hang-up, which epoll always reports.
  if (!loop_.Watch(life_.get(), 0, [this](uint32_t) { TakeOver(); })) TakeOver();
}

void RunSession::TakeOver() {
  loop_.Unwatch(life_.get());
  life_.Reset();
  ReadLogTail();
  draining_ = true;
  for (int stream = 0; stream < kStreams; ++stream) {
    OwnedFd& fd = streams_[static_cast<size_t>(stream)];
    if (!fd) continue;
    fd = OwnDescription(fd.get());
    if (!loop_.Watch(fd.get(), EPOLLIN, [this, stream](uint32_t) { ReadStream(stream); }))
      fd.Reset();
  }
  if (!streams_[kStdout] && !streams_[kStderr]) CloseOrphan();
}

void RunSession::ReadLogTail() {
  std::vector<char> block(kOrphanBlock);
  for (size_t i = 0; i < kTailBlocksPerBeat; ++i) {
    const ssize_t size = pread(log_.get(), block.data(), block.size(), log_offset_);
    if (size <= 0) return;
    FeedLog({block.data(), static_cast<size_t>(size)});
  }
}

void RunSession::ReadStream(int stream) {
  std::vector<char> block(kOrphanBlock);
  OwnedFd& fd = streams_[static_cast<size_t>(stream)];
  const ssize_t size = read(fd.get(), block.data(), block.size());
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (size > 0) {
    const std::string_view bytes(block.data(), static_cast<size_t>(size));
    WriteAll(log_.get(), bytes);  // a full disk must not stop the draining
    return FeedLog(bytes);
  }
  loop_.Unwatch(fd.get());
  fd.Reset();
  if (!streams_[kStdout] && !streams_[kStderr]) CloseOrphan();
}

void RunSession::FeedLog(std::string_view bytes) {
  log_offset_ += static_cast<int64_t>(bytes.size());
  orphan_lines_.Feed(bytes, [this](const logs::AssembledLine& assembled) {
    LogLine line;
    line.stream = kLogStream + static_cast<uint32_t>(slot_) * kStreamsPerSlot;
    line.stream_name = "log";
    line.job_id = job_id_;
    std::string masked;
    logs::FillLine(assembled, line, masked);
    Observation observation;
    observation.t = loop_.Now();
    observation.kind = std::move(line);
    Emit(std::move(observation));
  });
}

void RunSession::CloseOrphan() {
  EmitMark(RunMark::What::kStreamsClosed);
  Close();
}

}  // namespace rankscope::run
