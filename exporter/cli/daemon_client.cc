// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/cli/daemon_client.h"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <string_view>

namespace rankscope::cli {
namespace {

constexpr size_t kMaxAnswer = 64 << 20;
constexpr timeval kPatience{10, 0};

Error Unreachable(const std::string& address, const std::string& why) {
  return Error{"no rankscope daemon answers at " + address + ": " + why +
               "; start `rankscope serve` or name it with --address HOST:PORT"};
}

// Of `Link: </verdict?after=7>; rel="next"`; only a target of the same daemon is followed.
std::string NextOf(std::string_view head) {
  constexpr std::string_view kLink = "\r\nLink: </";
  const size_t begin = head.find(kLink);
  if (begin == std::string_view::npos) return {};
  const std::string_view line = head.substr(begin + kLink.size() - 1);
  const size_t end = line.find_first_of(">\r");
  if (!line.substr(std::min(end, line.size())).starts_with(">; rel=\"next\"")) return {};
  return std::string(line.substr(0, end));
}

class Socket {
 public:
  explicit Socket(int fd) : fd_(fd) {}
  ~Socket() {
    if (fd_ >= 0) close(fd_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

}  // namespace

Result<HttpAnswer> HttpGet(const std::string& address, const std::string& target,
                           const std::string& accept) {
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos) return Error{"'" + address + "' has no port; write HOST:PORT"};
  const std::string host = colon == 0 ? "127.0.0.1" : address.substr(0, colon);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int failure = getaddrinfo(host.c_str(), address.substr(colon + 1).c_str(), &hints, &found);
  if (failure != 0) return Unreachable(address, gai_strerror(failure));
  const Socket socket(
      ::socket(found->ai_family, found->ai_socktype | SOCK_CLOEXEC, found->ai_protocol));
  setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof kPatience);
  setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &kPatience, sizeof kPatience);
  const bool connected = connect(socket.get(), found->ai_addr, found->ai_addrlen) == 0;
  freeaddrinfo(found);
  if (!connected) return Unreachable(address, std::strerror(errno));

  const std::string request = "GET " + target + " HTTP/1.1\r\nHost: " + address +
                              "\r\nAccept: " + accept + "\r\nConnection: close\r\n\r\n";
  if (send(socket.get(), request.data(), request.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(request.size())) {
    return Unreachable(address, std::strerror(errno));
  }
  std::string text;
  char block[65536];
  while (text.size() < kMaxAnswer) {
    const ssize_t n = recv(socket.get(), block, sizeof block, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Unreachable(address, std::strerror(errno));
    if (n == 0) break;
    text.append(block, static_cast<size_t>(n));
  }
  HttpAnswer answer;
  const size_t end = text.find("\r\n\r\n");
  const size_t space = text.find(' ');
  if (text.rfind("HTTP/1.", 0) != 0 || end == std::string::npos || space > end ||
      std::from_chars(text.data() + space + 1, text.data() + end, answer.status).ec !=
          std::errc()) {
    return Error{address + " does not speak HTTP; name rankscope's own address with --address"};
  }
  answer.next = NextOf(std::string_view(text).substr(0, end));
  answer.body = text.substr(end + 4);
  return answer;
}

std::string QueryValue(const std::string& text) {
  constexpr char kHex[] = "0123456789ABCDEF";
  std::string encoded;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '_' || c == '.' || c == '~';
    if (plain) {
      encoded += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      encoded += {'%', kHex[byte >> 4], kHex[byte & 15]};
    }
  }
  return encoded;
}

}  // namespace rankscope::cli
