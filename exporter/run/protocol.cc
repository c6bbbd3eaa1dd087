// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/run/protocol.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace rankscope::run {

bool IsJobId(std::string_view text) {
  return !text.empty() && text.size() < kJobIdCap && text != "." && text != ".." &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                  c == '.' || c == '_' || c == '-';
         });
}

std::optional<HelloMessage> ReadHello(std::span<const char> bytes, size_t descriptors) {
  HelloMessage hello;
  if (bytes.size() != sizeof hello) return std::nullopt;
  std::memcpy(&hello, bytes.data(), sizeof hello);
  hello.job_id.back() = '\0';
  if (hello.type != kHello || hello.version != kProtocolVersion ||
      hello.streams >> kMaxStreams != 0)
    return std::nullopt;
  const size_t streams = (hello.streams & 1u) + (hello.streams >> 1 & 1u);
  if (!IsJobId(hello.job_id.data()) || descriptors != kHelloFds + streams) return std::nullopt;
  return hello;
}

std::optional<size_t> ReadStream(std::span<const char> bytes) {
  StreamMessage message;
  if (bytes.size() != sizeof message) return std::nullopt;
  std::memcpy(&message, bytes.data(), sizeof message);
  if (message.stream >= kMaxStreams) return std::nullopt;
  return message.stream;
}

std::optional<VerdictMessage> ReadVerdict(std::span<const char> bytes, size_t descriptors) {
  VerdictMessage message;
  if (bytes.size() != sizeof message || descriptors != 1) return std::nullopt;
  std::memcpy(&message, bytes.data(), sizeof message);
  if (message.type != kVerdict || message.json_bytes > kVerdictCap ||
      message.text_bytes > kVerdictCap)
    return std::nullopt;
  return message;
}

bool SendPacket(int socket, std::span<const char> bytes, std::span<const int> fds) {
  iovec part{const_cast<char*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kMaxFds)> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (!fds.empty()) {
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(fds.size_bytes());
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(header), fds.data(), fds.size_bytes());
  }
  return sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
}

Packet ReceivePacket(int socket) {
  Packet packet;
  iovec part{packet.bytes.data(), packet.bytes.size()};
  // Room for all that a message may carry (SCM_MAX_FD, include/net/scm.h), and the sender's
  // credentials: what does not fit the kernel closes, here and now.
  constexpr size_t kMostFds = 253;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kMostFds) + 256> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  ssize_t size = 0;
  do {
    size = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  } while (size < 0 && errno == EINTR);
  if (size < 0) {
    if (errno != EAGAIN) packet.state = Packet::State::kClosed;
    return packet;
  }
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof fd);
      packet.fds.emplace_back(fd);
    }
  }
  packet.size = static_cast<size_t>(size);
  packet.too_much = (message.msg_flags & MSG_TRUNC) != 0 || packet.fds.size() > kMaxFds;
  // There is room for all: the process has no descriptor left (scm_detach_fds, net/core/scm.c).
  packet.fds_lost = (message.msg_flags & MSG_CTRUNC) != 0;
  const bool cut = packet.too_much || packet.fds_lost;
  packet.state = size == 0 || cut ? Packet::State::kClosed : Packet::State::kMessage;
  return packet;
}

}  // namespace rankscope::run
