// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/support/trainer/launcher.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

namespace sample_trainer {
namespace {

constexpr unsigned kGraceSeconds = 5;  // from SIGTERM to SIGKILL

struct Child {
  pid_t pid = 0;
  bool running = true;
};

// A listening socket on a free port of loopback. Rank 0 inherits it: the port cannot be taken in
// between.
int ListenOnFreePort(int& port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  if (fd < 0 || bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
      listen(fd, SOMAXCONN) != 0 ||
      getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    throw std::runtime_error(std::string("cannot listen on 127.0.0.1: ") + std::strerror(errno));
  }
  port = ntohs(address.sin_port);
  return fd;
}

void SetEnvironment(int rank, int ranks, int port, int listen_fd) {
  setenv("RANK", std::to_string(rank).c_str(), 1);
  setenv("LOCAL_RANK", std::to_string(rank).c_str(), 1);
  setenv("WORLD_SIZE", std::to_string(ranks).c_str(), 1);
  setenv("LOCAL_WORLD_SIZE", std::to_string(ranks).c_str(), 1);
  setenv("MASTER_ADDR", "127.0.0.1", 1);
  setenv("MASTER_PORT", std::to_string(port).c_str(), 1);
  if (rank == 0) fcntl(listen_fd, F_SETFD, 0);  // survives exec
  setenv("SAMPLE_TRAINER_LISTEN_FD", std::to_string(rank == 0 ? listen_fd : -1).c_str(), 1);
}

void SignalRunning(const std::vector<Child>& children, int signal_number) {
  for (const Child& child : children) {
    if (child.running) kill(child.pid, signal_number);
  }
}

void PrintEnd(size_t rank, pid_t pid, int status) {
  if (WIFSIGNALED(status)) {
    const int number = WTERMSIG(status);
    std::fprintf(stderr, "rank %zu (pid %d) killed by signal %d (SIG%s)\n", rank, pid, number,
                 sigabbrev_np(number));
  } else {
    std::fprintf(stderr, "rank %zu (pid %d) exited with code %d\n", rank, pid, WEXITSTATUS(status));
  }
}

}  // namespace

int Launch(int ranks, char** argv) {
  // Signals are taken with sigwait: no handler, and nothing is lost between two waits.
  sigset_t signals;
  sigset_t before;
  sigemptyset(&signals);
  for (const int number : {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGALRM}) sigaddset(&signals, number);
  sigprocmask(SIG_BLOCK, &signals, &before);

  int port = 0;
  const int listen_fd = ListenOnFreePort(port);
  std::vector<Child> children;
  for (int rank = 0; rank < ranks; ++rank) {
    const pid_t pid = fork();
    if (pid < 0) {
      const std::string reason = std::strerror(errno);
      SignalRunning(children, SIGKILL);
      throw std::runtime_error("cannot fork rank " + std::to_string(rank) + ": " + reason);
    }
    if (pid == 0) {
      sigprocmask(SIG_SETMASK, &before, nullptr);
      SetEnvironment(rank, ranks, port, listen_fd);
      execv("/proc/self/exe", argv);
      std::fprintf(stderr, "rank %d: cannot execute itself: %s\n", rank, std::strerror(errno));
      _exit(127);
    }
    children.push_back({pid, true});
  }
  close(listen_fd);

  size_t running = children.size();
  bool stopping = false;
  int result = 0;
  while (running > 0) {
    int number = 0;
    sigwait(&signals, &number);
    if (number == SIGALRM) {
      SignalRunning(children, SIGKILL);
    } else if (number != SIGCHLD) {
      if (!stopping) {
        std::fprintf(stderr, "received SIG%s, stopping %zu ranks\n", sigabbrev_np(number), running);
        result = 128 + number;
      }
      stopping = true;
      SignalRunning(children, SIGTERM);
      alarm(kGraceSeconds);
    }
    int status = 0;
    for (pid_t pid = 0; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
      for (size_t rank = 0; rank < children.size(); ++rank) {
        if (children[rank].pid != pid) continue;
        children[rank].running = false;
        --running;
        if (status == 0) continue;
        PrintEnd(rank, pid, status);
        if (result == 0) result = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
        if (!stopping) {
          stopping = true;
          SignalRunning(children, SIGTERM);
          alarm(kGraceSeconds);
        }
      }
    }
  }
  return result;
}

}  // namespace sample_trainer
