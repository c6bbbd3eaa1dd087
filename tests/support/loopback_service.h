// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// A service for tests: takes one connection after the other on a port of the loopback and does with
// each what the test says. Its own thread.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

namespace rankscope {

class LoopbackService {
 public:
  using Serve = std::function<void(int fd)>;

  explicit LoopbackService(Serve serve) : serve_(std::move(serve)) {
    fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(listen(fd_, 8), 0);
    socklen_t size = sizeof address;
    EXPECT_EQ(getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] {
      for (;;) {
        const int fd = accept(fd_, nullptr, nullptr);
        if (fd < 0) return;
        ++connections_;
        serve_(fd);
        close(fd);
      }
    });
  }
  ~LoopbackService() {
    shutdown(fd_, SHUT_RDWR);
    close(fd_);
    thread_.join();
  }

  uint16_t port() const { return port_; }
  int connections() const { return connections_; }

  static std::string Hear(int fd) {
    std::string line;
    char byte = 0;
    while (recv(fd, &byte, 1, 0) == 1) {
      if (byte == '\n') return line;
      line += byte;
    }
    return "(end)";
  }
  static bool Say(int fd, std::string_view text) {
    return send(fd, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
  }

 private:
  Serve serve_;
  int fd_ = -1;
  uint16_t port_ = 0;
  std::atomic<int> connections_{0};
  std::thread thread_;
};

}  // namespace rankscope
