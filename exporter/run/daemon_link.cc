// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/run/daemon_link.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>
#include <utility>
#include <vector>

#include "exporter/run/clock.h"
#include "exporter/run/protocol.h"

namespace rankscope::run {
namespace {

// Reads the daemon's two texts out of the memory it passed.
std::optional<Judgement> ReadJudgement(const Packet& packet) {
  const std::optional<VerdictMessage> message = ReadVerdict(packet.content(), packet.fds.size());
  if (!message) return std::nullopt;
  std::string both(message->json_bytes + message->text_bytes, '\0');
  size_t have = 0;
  while (have < both.size()) {
    const ssize_t size = pread(packet.fds[0].get(), both.data() + have, both.size() - have,
                               static_cast<off_t>(have));
    if (size <= 0) return std::nullopt;
    have += static_cast<size_t>(size);
  }
  Judgement judgement{both.substr(0, message->json_bytes), both.substr(message->json_bytes)};
  judgement.notified = message->notifies == 1;
  return judgement;
}

}  // namespace

DaemonLink::DaemonLink(std::string socket_path, Passed passed)
    : socket_path_(std::move(socket_path)), passed_(std::move(passed)) {
  for (size_t i = 0; i < kStreams; ++i) holds_[i] = static_cast<bool>(passed_.streams[i]);
}

void DaemonLink::Connect() {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket_path_.empty() || socket_path_.size() >= sizeof address.sun_path) return;
  std::memcpy(address.sun_path, socket_path_.data(), socket_path_.size());
  OwnedFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket ||
      connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return;
  }

  HelloMessage hello;
  hello.root_pid = passed_.root.pid;
  hello.root_start_ticks = passed_.root.start_ticks;
  std::memcpy(hello.job_id.data(), passed_.job_id.data(), passed_.job_id.size());
  std::vector<int> fds = {passed_.recording_fd, passed_.log_fd, passed_.life_read.get()};
  for (size_t i = 0; i < kStreams; ++i) {
    if (!passed_.streams[i]) continue;
    hello.streams |= 1u << i;
    fds.push_back(passed_.streams[i].get());
  }
  if (!SendPacket(socket.get(), BytesOf(hello), fds)) return;
  for (size_t i = 0; i < kStreams; ++i) daemon_holds_[i] = (hello.streams & 1u << i) != 0;
  socket_ = std::move(socket);
  wake_pending_ = true;
}

void DaemonLink::Disconnect() {
  // The kernel closed the daemon's copies, or it lets go of them when it finds the connection
  // closed.
  socket_.Reset();
  for (size_t i = 0; i < kStreams; ++i) {
    daemon_holds_[i] = false;
    if (!passed_.streams[i]) holds_[i] = false;
  }
}

void DaemonLink::Hear() {
  while (socket_) {
    Packet packet = ReceivePacket(socket_.get());
    if (packet.state == Packet::State::kNothing) return;
    if (packet.state == Packet::State::kClosed) return Disconnect();
    const auto type = static_cast<uint8_t>(packet.bytes[0]);
    if (type == kReleasedStream) {
      const std::optional<size_t> stream = ReadStream(packet.content());
      if (stream && !passed_.streams[*stream]) {
        daemon_holds_[*stream] = false;
        holds_[*stream] = false;
      }
    } else if (type == kVerdict) {
      answer_ = ReadJudgement(packet);
    }
  }
}

void DaemonLink::Poll(Timestamp now) {
  if (!socket_ && now >= next_try_) {
    next_try_ = {now.ns + kRetry.ns};
    Connect();
  }
  Hear();
  if (socket_ && wake_pending_ && now >= next_wake_) {
    const char wake = static_cast<char>(kWake);
    // A full socket has wake-ups enough in it.
    SendPacket(socket_.get(), {&wake, 1});
    wake_pending_ = false;
    next_wake_ = {now.ns + kWakeInterval.ns};
  }
}

std::optional<Timestamp> DaemonLink::next_due() const {
  if (socket_ && wake_pending_) return next_wake_;
  return std::nullopt;
}

void DaemonLink::Release(int stream) {
  const auto index = static_cast<size_t>(stream);
  passed_.streams[index].Reset();
  const StreamMessage message{kReleaseStream, static_cast<uint8_t>(stream)};
  if (!socket_ || !daemon_holds_[index] || !SendPacket(socket_.get(), BytesOf(message))) {
    daemon_holds_[index] = false;
    holds_[index] = false;
  }
}

std::optional<Judgement> DaemonLink::End() {
  answer_.reset();
  Hear();
  if (!socket_) Connect();  // a daemon that is back since the last try would else never hear of it
  const char end = static_cast<char>(kEnd);
  if (!socket_ || !SendPacket(socket_.get(), {&end, 1})) return std::nullopt;
  const int64_t until = MonotonicNow().ns + kAnswerPatience.ns;
  while (socket_ && !answer_) {
    const int64_t left_ms = (until - MonotonicNow().ns) / 1'000'000;
    if (left_ms <= 0) break;
    pollfd polled{socket_.get(), POLLIN, 0};
    poll(&polled, 1, static_cast<int>(left_ms));
    Hear();
  }
  return std::exchange(answer_, std::nullopt);
}

}  // namespace rankscope::run
