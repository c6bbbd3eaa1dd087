// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/nccl/ras_client.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <thread>

namespace rankscope::collectors {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kMaxLine = 1024;  // "SERVER PROTOCOL 2", "OK", "ERROR: ..."

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

// A socket stays in the network namespace it was made in. A thread of its own goes there, and does
// not come back.
int SocketIn(int network_fd, int family) {
  const int kType = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;
  if (network_fd < 0) return socket(family, kType, 0);
  int fd = -1;
  int error = 0;
  std::thread([&] {
    if (setns(network_fd, CLONE_NEWNET) == 0) fd = socket(family, kType, 0);
    error = errno;
  }).join();
  errno = error;
  return fd;
}

class Conversation {
 public:
  Conversation(int fd, Clock::time_point deadline) : fd_(fd), deadline_(deadline) {}

  // False: not in time, or not at all (errno).
  bool Wait(short events) {
    for (;;) {
      const auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(deadline_ - Clock::now()).count();
      if (left <= 0) {
        errno = ETIMEDOUT;
        return false;
      }
      pollfd entry{fd_, events, 0};
      const int n = poll(&entry, 1, static_cast<int>(left));
      if (n > 0) return true;
      if (n == 0) errno = ETIMEDOUT;
      if (n == 0 || errno != EINTR) return false;
    }
  }

  bool Connect(const ListeningSocket& to) {
    sockaddr_storage storage{};
    socklen_t size = 0;
    // A service that listens everywhere is asked at the loopback.
    const bool anywhere =
        std::all_of(to.address.begin(), to.address.end(), [](char byte) { return byte == 0; });
    if (to.v6) {
      auto* address = reinterpret_cast<sockaddr_in6*>(&storage);
      address->sin6_family = AF_INET6;
      address->sin6_port = htons(to.port);
      std::memcpy(&address->sin6_addr, to.address.data(), sizeof address->sin6_addr);
      if (anywhere) address->sin6_addr = in6addr_loopback;
      size = sizeof *address;
    } else {
      auto* address = reinterpret_cast<sockaddr_in*>(&storage);
      address->sin_family = AF_INET;
      address->sin_port = htons(to.port);
      std::memcpy(&address->sin_addr, to.address.data(), sizeof address->sin_addr);
      if (anywhere) address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      size = sizeof *address;
    }
    if (connect(fd_, reinterpret_cast<sockaddr*>(&storage), size) == 0) return true;
    if (errno != EINPROGRESS || !Wait(POLLOUT)) return false;
    int error = 0;
    socklen_t length = sizeof error;
    if (getsockopt(fd_, SOL_SOCKET, SO_ERROR, &error, &length) != 0) return false;
    errno = error;
    return error == 0;
  }

  bool Say(std::string_view text) {
    while (!text.empty()) {
      if (!Wait(POLLOUT)) return false;
      const ssize_t n = send(fd_, text.data(), text.size(), MSG_NOSIGNAL);
      if (n < 0 && errno != EAGAIN && errno != EINTR) return false;
      if (n > 0) text.remove_prefix(static_cast<size_t>(n));
    }
    return true;
  }

  // The next line, without its end. False at the end of the connection too (errno 0).
  bool Hear(std::string& line) {
    for (;;) {
      if (const size_t end = pending_.find('\n'); end != std::string::npos) {
        line = pending_.substr(0, end);
        pending_.erase(0, end + 1);
        return true;
      }
      if (pending_.size() >= kMaxLine) {
        errno = EMSGSIZE;
        return false;
      }
      if (!Read(kMaxLine)) return false;
    }
  }

  // What comes until the other side ends it, at most `most` bytes.
  bool HearAll(size_t most, std::string& text, bool& cut) {
    while (pending_.size() < most) {
      if (Read(most - pending_.size())) continue;
      if (errno != 0) {
        text = std::move(pending_);
        return false;
      }
      text = std::move(pending_);
      return true;
    }
    text = std::move(pending_);
    cut = true;
    return true;
  }

 private:
  bool Read(size_t most) {
    char piece[16384];
    for (;;) {
      if (!Wait(POLLIN)) return false;
      const ssize_t n = recv(fd_, piece, std::min(most, sizeof piece), 0);
      if (n > 0) {
        pending_.append(piece, static_cast<size_t>(n));
        return true;
      }
      if (n == 0) {
        errno = 0;
        return false;
      }
      if (errno != EAGAIN && errno != EINTR) return false;
    }
  }

  int fd_;
  Clock::time_point deadline_;
  std::string pending_;
};

std::string Reason(const char* what) {
  return std::string(what) + ": " +
         (errno == 0 ? std::string("the service closed the connection") : std::strerror(errno));
}

}  // namespace

RasAnswer AskRas(const RasQuestion& question) {
  const auto begin = Clock::now();
  RasAnswer answer;
  const auto failed = [&](const char* what) {
    answer.error = Reason(what);
    answer.silent = errno == ETIMEDOUT;
    answer.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    return answer;
  };
  const Descriptor fd(SocketIn(question.network_fd, question.socket.v6 ? AF_INET6 : AF_INET));
  if (fd.get() < 0) return failed("socket");
  Conversation service(fd.get(), begin + question.deadline);
  if (!service.Connect(question.socket)) return failed("connect");

  std::string line;
  if (!service.Say("CLIENT PROTOCOL 2\n") || !service.Hear(line)) return failed("handshake");
  if (!line.starts_with("SERVER PROTOCOL")) {
    errno = EPROTO;
    return failed("handshake");
  }
  // What the service does not know it says so and goes on without.
  if (!service.Say("TIMEOUT " + std::to_string(kRasTimeoutSeconds) + "\n") || !service.Hear(line))
    return failed("TIMEOUT");
  if (question.json) {
    if (!service.Say("SET FORMAT json\n") || !service.Hear(line)) return failed("SET FORMAT");
    answer.json = line.starts_with("OK");
  }
  if (!service.Say("VERBOSE STATUS\n")) return failed("STATUS");
  if (!service.HearAll(kMaxAnswer, answer.text, answer.cut)) {
    // Half a report is one; nothing is not.
    if (answer.text.empty()) return failed("STATUS");
    answer.cut = true;
  }
  answer.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  if (answer.text.empty()) answer.error = "STATUS: the service sent an empty answer";
  return answer;
}

}  // namespace rankscope::collectors
