// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/run/run_session.h"

#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "exporter/run/write_all.h"

namespace rankscope::run {
namespace {

// Packets per wake-up of the loop, so that one wrapper does not keep the others waiting.
constexpr int kPacketsPerTurn = 16;

}  // namespace

RunSession::RunSession(OwnedFd socket, Peer peer, exporter::EventLoop& loop, Sink& sink,
                       Callbacks callbacks)
    : socket_(std::move(socket)),
      peer_(std::move(peer)),
      loop_(loop),
      sink_(sink),
      callbacks_(std::move(callbacks)),
      since_(loop.Now()) {
  if (!loop_.Watch(socket_.get(), EPOLLIN, [this](uint32_t) { OnSocket(); })) Close();
}

RunSession::~RunSession() {
  Close();
}

// What it may still hold unread came from the user, and may be anything.
void RunSession::DropSocket() {
  if (!socket_) return;
  loop_.Unwatch(socket_.get());
  std::vector<OwnedFd> fds;
  fds.push_back(std::move(socket_));
  callbacks_.dispose(std::move(fds), nullptr);
}

void RunSession::Close() {
  DropSocket();
  if (life_) loop_.Unwatch(life_.get());
  life_.Reset();
  for (OwnedFd& stream : streams_) stream.Reset();
  if (files_ != nullptr) callbacks_.dispose({}, std::exchange(files_, nullptr));
  if (std::exchange(late_, false)) callbacks_.on_late(false);
  batch_ = {};
  batch_open_ = false;
  state_ = State::kClosed;
}

bool RunSession::speaks() const {
  return state_ != State::kGreeting && state_ != State::kChecking && state_ != State::kEnded &&
         state_ != State::kClosed;
}

void RunSession::OnSocket() {
  for (int i = 0; i < kPacketsPerTurn && socket_; ++i) {
    Packet packet = ReceivePacket(socket_.get());
    if (packet.state == Packet::State::kNothing) return;
    if (packet.state == Packet::State::kMessage) {
      OnPacket(packet);
    } else {
      if (packet.too_much) callbacks_.on_malformed();
      if (packet.fds_lost) callbacks_.on_fds_lost();
      OnWrapperGone();
    }
    if (!packet.fds.empty()) callbacks_.dispose(std::move(packet.fds), nullptr);
  }
}

void RunSession::OnWrapperGone() {
  switch (state_) {
    case State::kFollowing:
      DropSocket();
      return BeginLastReads(State::kLosing);
    case State::kChecking:
      gone_ = true;
      return DropSocket();
    case State::kEnding:
      return DropSocket();  // it has not waited for its verdict; the job gets one all the same
    default:
      return Close();
  }
}

void RunSession::OnPacket(Packet& packet) {
  if (state_ == State::kGreeting) {
    if (Greet(packet)) return;
    callbacks_.on_malformed();
    return Close();
  }
  OnPacketFollowing(static_cast<uint8_t>(packet.bytes[0]), packet);
}

void RunSession::OnPacketFollowing(uint8_t type, const Packet& packet) {
  const bool follows = state_ == State::kFollowing || state_ == State::kChecking;
  if (type == kWake) {
    behind_ = true;
    callbacks_.on_ready();
  } else if (const auto stream = ReadStream(packet.content()); type == kReleaseStream && stream) {
    Release(*stream);
  } else if (type == kEnd && follows) {
    end_said_ = true;
    if (state_ == State::kFollowing) BeginLastReads(State::kEnding);
  } else {
    callbacks_.on_malformed();
  }
}

bool RunSession::Greet(Packet& packet) {
  const std::optional<HelloMessage> hello = ReadHello(packet.content(), packet.fds.size());
  if (!hello) return false;

  job_id_ = hello->job_id.data();
  files_ = new RunFiles(std::exchange(packet.fds, {}), *hello, peer_);
  state_ = State::kChecking;
  since_ = loop_.Now();
  const Job check = [this, files = files_, alive = std::weak_ptr(alive_)] {
    const bool good = files->Check();
    return [this, alive, good] {
      if (!alive.expired()) OnChecked(good);
    };
  };
  const bool submitted = callbacks_.submit(check, [this, alive = std::weak_ptr(alive_)] {
    if (alive.expired() || std::exchange(late_, true)) return;
    callbacks_.on_late(true);
  });
  if (!submitted) {
    callbacks_.on_refused();
    Close();
  }
  return true;
}

void RunSession::OnChecked(bool good) {
  if (state_ == State::kClosed) return;
  if (std::exchange(late_, false)) callbacks_.on_late(false);
  if (!good) {
    callbacks_.on_malformed();
    return Close();
  }
  TryToBegin();
}

void RunSession::TryToBegin() {
  slot_ = callbacks_.admit(job_id_, peer_);
  asks_ = slot_ == kLater;
  if (asks_) return;
  if (slot_ < 0) return Close();
  root_ = files_->root();
  files_->Begin(slot_, callbacks_.resume_after(job_id_, slot_));
  life_ = files_->TakeLife();
  for (size_t stream = 0; stream < streams_.size(); ++stream) {
    streams_[stream] = files_->TakeStream(static_cast<int>(stream));
    if (released_[stream]) LetGo(stream);
  }
  state_ = State::kFollowing;
  since_ = loop_.Now();
  behind_ = true;
  if (end_said_) {
    BeginLastReads(State::kEnding);
  } else if (gone_) {
    BeginLastReads(State::kLosing);
  }
  callbacks_.on_ready();
}

void RunSession::Release(size_t stream) {
  released_[stream] = true;
  if (state_ != State::kChecking) LetGo(stream);
}

void RunSession::LetGo(size_t stream) {
  streams_[stream].Reset();
  const StreamMessage done{kReleasedStream, static_cast<uint8_t>(stream)};
  SendPacket(socket_.get(), BytesOf(done));
}

// What was written before the last word is read, though a read is under way that began before it.
void RunSession::BeginLastReads(State state) {
  state_ = state;
  since_ = loop_.Now();
  behind_ = true;
  last_reads_ = 0;
  callbacks_.on_ready();
}

bool RunSession::WantsRead() const {
  if (reading_ || batch_open_ || files_ == nullptr) return false;
  const bool follows = state_ == State::kFollowing || state_ == State::kEnding ||
                       state_ == State::kLosing || state_ == State::kOrphaned;
  return follows && behind_;
}

void RunSession::Read() {
  if (take_over_ && !draining_) {
    draining_ = true;
    files_->TakePipes(std::exchange(streams_, {}));
  }
  const bool orphaned = state_ == State::kOrphaned;
  const Job read = [this, files = files_, orphaned, drain = draining_,
                    alive = std::weak_ptr(alive_)] {
    auto batch = std::make_shared<Batch>(drain      ? files->Drain()
                                         : orphaned ? files->ReadLog()
                                                    : files->ReadRecording());
    return [this, alive, batch] {
      if (!alive.expired()) OnBatch(std::move(*batch));
    };
  };
  const bool submitted = callbacks_.submit(read, [this, alive = std::weak_ptr(alive_)] {
    if (alive.expired() || std::exchange(late_, true)) return;
    callbacks_.on_late(true);
  });
  if (!submitted) return;  // and is tried again
  reading_ = true;
  behind_ = false;
  if (state_ == State::kEnding || state_ == State::kLosing) ++last_reads_;
}

void RunSession::OnBatch(Batch batch) {
  if (state_ == State::kClosed) return;
  reading_ = false;
  if (std::exchange(late_, false)) callbacks_.on_late(false);
  gaps_ = batch.gaps;
  foreign_ += batch.foreign;
  batch_.heard.assign(std::move_iterator(batch.heard.begin()),
                      std::move_iterator(batch.heard.end()));
  batch_.more = batch.more;
  batch_.closed = batch.closed;
  batch_open_ = true;
  if (batch_.heard.empty()) AfterBatch();
  callbacks_.on_ready();
}

void RunSession::Deliver(size_t most, size_t most_bytes) {
  size_t bytes = 0;
  for (size_t i = 0; i < most && bytes < most_bytes && !batch_.heard.empty(); ++i) {
    Heard heard = std::move(batch_.heard.front());
    batch_.heard.pop_front();
    bytes += heard.text.size();
    heard.Bound();
    EmitOwn(std::move(heard.observation));  // whoever hears it may close this session
  }
  if (batch_open_ && batch_.heard.empty()) AfterBatch();
}

void RunSession::AfterBatch() {
  batch_open_ = false;
  behind_ = behind_ || batch_.more;
  const bool all_read = !behind_ || last_reads_ >= kMostLastReads;
  if (state_ == State::kEnding && all_read) {
    state_ = State::kEnded;
    since_ = loop_.Now();
    callbacks_.on_end(job_id_);
    if (state_ == State::kEnded && !socket_) Close();
  } else if (state_ == State::kLosing && all_read) {
    Orphan();
  } else if (state_ == State::kOrphaned && batch_.closed) {
    EmitMark(RunMark::What::kStreamsClosed);
    Close();
  }
}

// The wrapper died. Its guardian, if it lives, goes on copying and we read the log behind it; when
// that is gone too, we drain the pipes ourselves, or the command would die of SIGPIPE. Its own
// standard output is lost with it either way.
void RunSession::Orphan() {
  state_ = State::kOrphaned;
  since_ = loop_.Now();
  behind_ = true;
  EmitMark(RunMark::What::kLost);
  if (state_ != State::kOrphaned) return;
  // No event but the hang-up, which epoll always reports.
  if (!loop_.Watch(life_.get(), 0, [this](uint32_t) { TakeOver(); })) TakeOver();
}

void RunSession::TakeOver() {
  loop_.Unwatch(life_.get());
  life_.Reset();
  take_over_ = true;
  behind_ = true;
  callbacks_.on_ready();
}

void RunSession::EmitOwn(Observation observation) {
  const auto* mark = std::get_if<RunMark>(&observation.kind);
  if (mark == nullptr || mark->what == RunMark::What::kBegin) return Emit(std::move(observation));
  const bool closes = mark->what == RunMark::What::kStreamsClosed;
  (closes ? closed_told : end_told) = true;
  const bool company =
      callbacks_.has_company(*this, closes ? &RunSession::closed_told : &RunSession::end_told);
  if (mark->what == RunMark::What::kEnd) {
    const int32_t settled = callbacks_.settle_status(job_id_, mark->wait_status, !company);
    if (company) return EmitExit(*mark);
    std::get<RunMark>(observation.kind).wait_status = settled;
  }
  // Of a job with several wrappers the last one ends it.
  if (!company) Emit(std::move(observation));
}

void RunSession::Emit(Observation observation) {
  // A recording that claims to come from the future must not carry the engine there.
  observation.t = std::min(observation.t, loop_.Now());
  sink_.Accept(observation);
}

// Of one wrapper of several: how its own command ended.
void RunSession::EmitExit(const RunMark& end) {
  if (root_.pid == 0) return;
  ProcessExit exit;
  exit.key = root_;
  exit.wait_status = end.wait_status;
  exit.status_known = end.status_known;
  Observation observation;
  observation.t = loop_.Now();
  observation.kind = exit;
  Emit(std::move(observation));
}

void RunSession::EmitMark(RunMark::What what) {
  RunMark mark;
  mark.job_id = job_id_;
  mark.what = what;
  mark.root = root_;
  mark.uid = peer_.uid;
  Observation observation;
  observation.t = loop_.Now();
  observation.kind = std::move(mark);
  EmitOwn(std::move(observation));
}

void RunSession::OnBeat() {
  const Timestamp now = loop_.Now();
  switch (state_) {
    case State::kGreeting:
      if (now - since_ <= kGreetingPatience) return;
      callbacks_.on_malformed();
      return Close();
    case State::kChecking:
      if (asks_) return TryToBegin();
      if (now - since_ > kEndedPatience) Close();
      return;
    case State::kEnding:
      if (now - since_ <= kEndedPatience) return;
      EmitMark(RunMark::What::kLost);
      return Close();
    case State::kEnded:
      if (now - since_ > kEndedPatience) Close();
      return;
    case State::kOrphaned:
      behind_ = true;  // nobody says when the log or a pipe has grown
      return;
    case State::kFollowing:
    case State::kLosing:
    case State::kClosed:
      return;
  }
}

void RunSession::Answer(std::string_view json, std::string_view text, bool notifies) {
  if (state_ != State::kEnded) return;
  const OwnedFd memory(memfd_create("rankscope-verdict", MFD_CLOEXEC));
  if (socket_ && memory && WriteAll(memory.get(), json).error == 0 &&
      WriteAll(memory.get(), text).error == 0) {
    VerdictMessage message;
    message.notifies = notifies ? 1 : 0;
    message.json_bytes = json.size();
    message.text_bytes = text.size();
    const std::array<int, 1> fds = {memory.get()};
    SendPacket(socket_.get(), BytesOf(message), fds);
  }
  Close();
}

}  // namespace rankscope::run
