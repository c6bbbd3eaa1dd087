// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/support/trainer/process_group.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace sample_trainer {
namespace {

std::runtime_error Failure(const std::string& what, int error) {
  if (error == EAGAIN) return std::runtime_error(what + ": timed out");
  return std::runtime_error(what + ": " + std::strerror(error));
}

void Configure(int fd, int timeout_s) {
  const timeval timeout{timeout_s, 0};
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

void SendAll(int fd, const void* data, size_t size, const std::string& peer) {
  const char* bytes = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t sent = send(fd, bytes, size, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) throw Failure("send to " + peer, errno);
    bytes += sent;
    size -= static_cast<size_t>(sent);
  }
}

void ReceiveAll(int fd, void* data, size_t size, const std::string& peer) {
  char* bytes = static_cast<char*>(data);
  while (size > 0) {
    const ssize_t received = recv(fd, bytes, size, 0);
    if (received < 0 && errno == EINTR) continue;
    if (received < 0) throw Failure("receive from " + peer, errno);
    if (received == 0)
      throw std::runtime_error("receive from " + peer + ": connection closed by peer");
    bytes += received;
    size -= static_cast<size_t>(received);
  }
}

std::string PeerName(int peer) {
  return "rank " + std::to_string(peer);
}

}  // namespace

ProcessGroup::ProcessGroup(int rank, int world_size, const std::string& address, int port,
                           int listen_fd, int timeout_s)
    : rank_(rank), world_size_(world_size), sockets_(static_cast<size_t>(world_size), -1) {
  if (rank == 0) {
    Configure(listen_fd, timeout_s);
    for (int joined = 1; joined < world_size; ++joined) {
      const int fd = accept4(listen_fd, nullptr, nullptr, SOCK_CLOEXEC);
      if (fd < 0) throw Failure("waiting for the other ranks", errno);
      Configure(fd, timeout_s);
      int32_t peer = 0;
      ReceiveAll(fd, &peer, sizeof(peer), "a joining rank");
      if (peer < 1 || peer >= world_size || sockets_[static_cast<size_t>(peer)] >= 0) {
        throw std::runtime_error("a process joined that says it is rank " + std::to_string(peer));
      }
      sockets_[static_cast<size_t>(peer)] = fd;
    }
    close(listen_fd);
    return;
  }
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) throw Failure("socket", errno);
  sockets_[0] = fd;
  Configure(fd, timeout_s);
  sockaddr_in master{};
  master.sin_family = AF_INET;
  master.sin_port = htons(static_cast<uint16_t>(port));
  if (inet_pton(AF_INET, address.c_str(), &master.sin_addr) != 1) {
    throw std::runtime_error("MASTER_ADDR: '" + address + "' is not an IPv4 address");
  }
  if (connect(fd, reinterpret_cast<const sockaddr*>(&master), sizeof(master)) != 0) {
    throw Failure("connect to rank 0 at " + address + ":" + std::to_string(port), errno);
  }
  const int32_t self = rank;
  SendAll(fd, &self, sizeof(self), PeerName(0));
}

ProcessGroup::~ProcessGroup() {
  for (const int fd : sockets_) {
    if (fd >= 0) close(fd);
  }
}

void ProcessGroup::Send(int peer, std::span<const float> values) {
  SendAll(sockets_[static_cast<size_t>(peer)], values.data(), values.size_bytes(), PeerName(peer));
}

void ProcessGroup::Receive(int peer, std::span<float> values) {
  ReceiveAll(sockets_[static_cast<size_t>(peer)], values.data(), values.size_bytes(),
             PeerName(peer));
}

void ProcessGroup::AllReduceMean(std::span<float> values) {
  if (rank_ != 0) {
    Send(0, values);
    Receive(0, values);
    return;
  }
  std::vector<float> theirs(values.size());
  for (int peer = 1; peer < world_size_;
       ++peer) {  // in rank order: the sum is the same in every run
    Receive(peer, theirs);
    for (size_t i = 0; i < values.size(); ++i) values[i] += theirs[i];
  }
  for (float& value : values) value /= static_cast<float>(world_size_);
  for (int peer = 1; peer < world_size_; ++peer) Send(peer, values);
}

}  // namespace sample_trainer
