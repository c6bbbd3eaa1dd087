// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// A RAS service for tests: takes one connection after the other on a port of the loopback and does
// with each what the test says. Its own thread.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <string>
#include <string_view>
#include <thread>

#include "exporter/collectors/ras_listener.h"

namespace rankscope::collectors {

class RasService {
 public:
  using Serve = std::function<void(int fd)>;

  explicit RasService(Serve serve) : serve_(std::move(serve)) {
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
        ++open_;
        serve_(fd);
        --open_;
        close(fd);
      }
    });
  }
  ~RasService() {
    shutdown(fd_, SHUT_RDWR);
    close(fd_);
    thread_.join();
  }

  uint16_t port() const { return port_; }
  int connections() const { return connections_; }
  ListeningSocket socket_at() const {
    const uint32_t loopback = htonl(INADDR_LOOPBACK);
    return {false, std::string(reinterpret_cast<const char*>(&loopback), 4), port_, getuid(), 777};
  }

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

  // As NCCL answers: one line each, and a report with the end of the connection.
  static Serve Reporting(std::string report, bool json) {
    return [report = std::move(report), json](int fd) {
      for (;;) {
        const std::string line = Hear(fd);
        if (line.starts_with("CLIENT PROTOCOL")) {
          Say(fd, "SERVER PROTOCOL 2\n");
        } else if (line.starts_with("TIMEOUT")) {
          Say(fd, "OK\n");
        } else if (line.starts_with("SET FORMAT")) {
          Say(fd, json ? "OK\n" : "ERROR: Unknown command '" + line + "'\n");
        } else if (line == "VERBOSE STATUS") {
          Say(fd, report);
          return;
        } else {
          return;
        }
      }
    };
  }

 private:
  Serve serve_;
  int fd_ = -1;
  uint16_t port_ = 0;
  std::atomic<int> connections_{0}, open_{0};
  std::thread thread_;
};

// The text of NCCL 2.26 for a job of four ranks in one communicator; `warnings` after it.
inline std::string RasText(const std::string& errors, const std::string& warnings) {
  return "NCCL version 2.26.2 compiled with CUDA 12.6\n"
         "CUDA runtime version 12060, driver version 12060\n\n"
         "Job summary\n===========\n\n"
         "  Nodes  Processes         GPUs  Processes     GPUs\n"
         "(total)   per node  per process    (total)  (total)\n"
         "      1          4            1          4        4\n\n"
         "Communicators... (0.00s)\n=============\n\n"
         "Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors\n"
         "    #  in group  per comm  per node  per comm  in group\n"
         "    0         1         1         4         4         4   RUNNING  " +
         errors + "\n\nErrors\n======\n\nWarnings\n========\n\n" + warnings;
}

inline std::string RasMismatch(int64_t most, int64_t behind, int32_t pid) {
  return RasText("MISMATCH",
                 "#0-0 (27a079b828ff1a75) MISMATCH\n"
                 "  Communicator ranks have different AllReduce operation counts\n"
                 "  3 ranks have launched up to operation " +
                     std::to_string(most) + "\n  Rank 2 has launched up to operation " +
                     std::to_string(behind) + " -- GPU 2 managed by process " +
                     std::to_string(pid) + " on node 10.0.0.1\n");
}

}  // namespace rankscope::collectors
