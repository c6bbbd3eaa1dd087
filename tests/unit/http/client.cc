// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/unit/http/client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

namespace rankscope::test {

Client::Client(uint16_t port, int receive_buffer)
    : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  // Before the connection: its window is agreed on then.
  if (receive_buffer > 0) {
    setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof(receive_buffer));
  }
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  closed_ = connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0;
}

Client::~Client() {
  if (fd_ >= 0) close(fd_);
}

Client::Client(Client&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      buffer_(std::move(other.buffer_)),
      closed_(other.closed_) {}

bool Client::Send(std::string_view bytes) const {
  while (!bytes.empty()) {
    const ssize_t sent = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

bool Client::ReadMore(int timeout_ms) {
  if (closed_) return false;
  pollfd waiting{fd_, POLLIN, 0};
  if (poll(&waiting, 1, timeout_ms) <= 0) return false;
  std::array<char, 65536> bytes{};
  const ssize_t got = recv(fd_, bytes.data(), bytes.size(), 0);
  if (got <= 0) {
    closed_ = true;
    return false;
  }
  buffer_.append(bytes.data(), static_cast<size_t>(got));
  return true;
}

std::string Client::Answer(bool head_only, int timeout_ms) {
  size_t head = 0;
  while ((head = buffer_.find("\r\n\r\n")) == std::string::npos) {
    if (!ReadMore(timeout_ms)) return std::exchange(buffer_, "");
  }
  size_t size = head + 4;
  constexpr std::string_view kLength = "Content-Length: ";
  const size_t length = buffer_.find(kLength);
  if (!head_only && length < head) {
    size += std::strtoul(buffer_.c_str() + length + kLength.size(), nullptr, 10);
  }
  while (buffer_.size() < size && ReadMore(timeout_ms)) {
  }
  std::string answer = buffer_.substr(0, size);
  buffer_.erase(0, std::min(size, buffer_.size()));
  return answer;
}

size_t Client::ReadSome(size_t bytes, int pause_ms) {
  poll(nullptr, 0, pause_ms);
  std::string sink(bytes, '\0');
  return static_cast<size_t>(std::max<ssize_t>(recv(fd_, sink.data(), sink.size(), 0), 0));
}

bool Client::ClosedWithin(int timeout_ms) {
  while (ReadMore(timeout_ms)) {
  }
  return closed_;
}

}  // namespace rankscope::test
