// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/run/guardian.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "exporter/run/write_all.h"

namespace rankscope::run {
namespace {

// Wrapper -> guardian: one byte. Guardian -> wrapper: one byte, a signal's number or kLooked.
constexpr unsigned char kLook = 'L';
constexpr unsigned char kCloseFirst = 'C';  // + stream
constexpr unsigned char kLooked = 0xff;

constexpr int kAskMs = 1000;
constexpr size_t kBlock = 64 * 1024;

void Say(int fd, unsigned char byte) {
  [[maybe_unused]] const ssize_t sent = send(fd, &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

// The guardian's own half. It was forked while the process had one thread, so it may call anything.
class Watch {
 public:
  Watch(int control, int log, std::array<int, kStreams> streams)
      : control_(control), log_(log), streams_(streams) {}

  void Run() {
    sigset_t all;
    sigfillset(&all);
    signals_ = signalfd(-1, &all, SFD_NONBLOCK | SFD_CLOEXEC);
    while (Serve()) {
    }
    while (Copy()) {
    }
  }

 private:
  // One turn while the wrapper lives; false when it is gone.
  bool Serve() {
    std::array<pollfd, 2> polled = {pollfd{control_, POLLIN, 0}, pollfd{signals_, POLLIN, 0}};
    if (poll(polled.data(), polled.size(), -1) < 0) return true;
    TellSignals();
    if (polled[0].revents == 0) return true;
    unsigned char byte = 0;
    const ssize_t size = recv(control_, &byte, 1, MSG_DONTWAIT);
    if (size < 0) return errno == EAGAIN || errno == EINTR;
    if (size == 0) return false;
    if (byte == kLook) {
      TellSignals();
      Say(control_, kLooked);
    } else {
      Close(byte - kCloseFirst);
    }
    return true;
  }

  void TellSignals() {
    signalfd_siginfo info{};
    while (read(signals_, &info, sizeof info) == sizeof info) {
      // The kernel's own (Ctrl-C, hang-up) are told apart without a vote.
      if (info.ssi_code <= 0) Say(control_, static_cast<unsigned char>(info.ssi_signo));
    }
  }

  void Close(int stream) {
    if (stream < 0 || stream >= kStreams) return;
    int& fd = streams_[static_cast<size_t>(stream)];
    if (fd >= 0) close(fd);
    fd = -1;
  }

  // One turn of copying after the wrapper; false when every writer is gone.
  bool Copy() {
    std::array<pollfd, kStreams> polled{};
    for (size_t i = 0; i < kStreams; ++i) polled[i] = {streams_[i], POLLIN, 0};
    if (streams_[kStdout] < 0 && streams_[kStderr] < 0) return false;
    if (poll(polled.data(), polled.size(), -1) < 0) return true;
    for (int stream = 0; stream < kStreams; ++stream) {
      if (polled[static_cast<size_t>(stream)].revents != 0) CopyBlock(stream);
    }
    return true;
  }

  void CopyBlock(int stream) {
    const ssize_t size = read(streams_[static_cast<size_t>(stream)], block_.data(), block_.size());
    if (size < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (size <= 0) return Close(stream);
    const std::string_view bytes(block_.data(), static_cast<size_t>(size));
    if (log_ok_) log_ok_ = WriteAll(log_, bytes).written == bytes.size();
    if (WriteAll(STDOUT_FILENO + stream, bytes).error == EPIPE) Close(stream);
  }

  int control_;
  int log_;
  std::array<int, kStreams> streams_;
  int signals_ = -1;
  bool log_ok_ = true;
  std::array<char, kBlock> block_;
};

}  // namespace

Result<Guardian> Guardian::Start(const StreamPipes& pipes, int log_fd, int life_fd) {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return Error{std::string("guardian: no socket pair: ") + std::strerror(errno)};
  }
  OwnedFd ours(ends[0]);
  OwnedFd theirs(ends[1]);
  const pid_t pid = fork();
  if (pid < 0) return Error{std::string("guardian: no process: ") + std::strerror(errno)};
  if (pid == 0) {
    ours.Reset();
    prctl(PR_SET_NAME, kGuardianName);
    [[maybe_unused]] const int kept_open = life_fd;
    Watch(theirs.get(), log_fd, {pipes.read[kStdout].get(), pipes.read[kStderr].get()}).Run();
    _exit(0);
  }
  return Guardian(pid, std::move(ours));
}

std::vector<int> Guardian::ReadSignals() {
  std::vector<int> signals;
  unsigned char byte = 0;
  ssize_t size = 0;
  while ((size = recv(control_.get(), &byte, 1, MSG_DONTWAIT)) == 1) {
    if (byte != kLooked) signals.push_back(byte);
  }
  if (size == 0) gone_ = true;  // nobody votes any more
  return signals;
}

std::vector<int> Guardian::AskSignals() {
  std::vector<int> signals;
  if (gone_) return signals;
  Say(control_.get(), kLook);
  while (true) {
    pollfd polled{control_.get(), POLLIN, 0};
    if (poll(&polled, 1, kAskMs) == 0) return signals;
    unsigned char byte = 0;
    const ssize_t size = recv(control_.get(), &byte, 1, MSG_DONTWAIT);
    if (size == 0 || (size == 1 && byte == kLooked)) return signals;
    if (size == 1) signals.push_back(byte);
  }
}

void Guardian::CloseStream(int stream) {
  Say(control_.get(), static_cast<unsigned char>(kCloseFirst + stream));
}

void Guardian::Dismiss() {
  if (pid_ > 0) kill(pid_, SIGKILL);
}

void Guardian::Reap() {
  if (pid_ > 0) waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

void Guardian::LeaveBehind() {
  pid_ = -1;
  control_.Reset();
}

}  // namespace rankscope::run
