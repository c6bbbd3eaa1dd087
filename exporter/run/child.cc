// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/run/child.h"

#include <fcntl.h>
#include <linux/kcmp.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "exporter/run/terminal.h"

namespace rankscope::run {
namespace {

// The most an unprivileged process may ask for: bursts of a megabyte cost the command nothing.
constexpr int kPipeBytes = 1 << 20;

bool SameDestination(int a, int b) {
  struct stat of_a {};
  struct stat of_b {};
  if (fstat(a, &of_a) != 0 || fstat(b, &of_b) != 0) return false;
  if (of_a.st_dev != of_b.st_dev || of_a.st_ino != of_b.st_ino) return false;
  // A regular file opened twice has two write positions; only a shared description is one
  // destination.
  if (!S_ISREG(of_a.st_mode)) return true;
  return syscall(SYS_kcmp, getpid(), getpid(), KCMP_FILE, a, b) == 0;
}

// Runs in the child, where only async-signal-safe calls are allowed.
[[noreturn]] void ExecCommand(char* const* argv, const StandardStreams& streams,
                              const StreamPipes& pipes, const SignalGuard& signals, int report_fd) {
  for (int stream = 0; stream < kStreams; ++stream) {
    const int target = stream + STDOUT_FILENO;
    const int source = streams.merged ? kStdout : stream;
    if (streams.open[static_cast<size_t>(stream)]) {
      dup2(pipes.write[static_cast<size_t>(source)].get(), target);
    }
  }
  signals.RestoreInChild();
  execvp(argv[0], argv);
  const int error = errno;
  [[maybe_unused]] const ssize_t reported = write(report_fd, &error, sizeof error);
  _exit(ExitCodeOfExecFailure(error));
}

}  // namespace

SignalGuard::SignalGuard() {
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, &inherited_mask_);
  for (size_t i = 0; i < kChanged.size(); ++i) {
    struct sigaction action {};
    action.sa_handler = kChanged[i] == SIGCHLD ? SIG_DFL : SIG_IGN;
    sigaction(kChanged[i], &action, &inherited_[i]);
  }
}

void SignalGuard::RestoreInChild() const {
  for (size_t i = 0; i < kChanged.size(); ++i) sigaction(kChanged[i], &inherited_[i], nullptr);
  sigprocmask(SIG_SETMASK, &inherited_mask_, nullptr);
}

StandardStreams TakeStandardStreams() {
  StandardStreams streams;
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (fcntl(fd, F_GETFD) >= 0) continue;
    // The lowest free number is this one. Closed again by exec.
    open("/dev/null", (fd == STDIN_FILENO ? O_RDONLY : O_WRONLY) | O_CLOEXEC);
    if (fd != STDIN_FILENO) streams.open[static_cast<size_t>(fd - STDOUT_FILENO)] = false;
  }
  for (size_t stream = 0; stream < kStreams; ++stream) {
    streams.terminal[stream] =
        streams.open[stream] && isatty(STDOUT_FILENO + static_cast<int>(stream)) == 1;
  }
  streams.merged = streams.open[kStdout] && streams.open[kStderr] &&
                   SameDestination(STDOUT_FILENO, STDERR_FILENO);
  return streams;
}

Result<StreamPipes> MakePipes(const StandardStreams& streams, bool with_ptys) {
  StreamPipes pipes;
  for (size_t stream = 0; stream < kStreams; ++stream) {
    if (!streams.open[stream] || (stream == kStderr && streams.merged)) continue;
    if (with_ptys && streams.terminal[stream]) {
      if (std::optional<Pty> pty = OpenPtyLike(STDOUT_FILENO + static_cast<int>(stream))) {
        pipes.read[stream] = std::move(pty->master);
        pipes.write[stream] = std::move(pty->slave);
        pipes.pty[stream] = true;
        continue;
      }
    }
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) {
      return Error{std::string("cannot make a pipe: ") + std::strerror(errno) +
                   "; raise the limit of open files (ulimit -n)"};
    }
    pipes.read[stream] = OwnedFd(ends[0]);
    pipes.write[stream] = OwnedFd(ends[1]);
    fcntl(ends[1], F_SETPIPE_SZ, kPipeBytes);  // a smaller pipe works too
  }
  return pipes;
}

Result<Child> SpawnChild(char* const* argv, const StandardStreams& streams,
                         const StreamPipes& pipes, const SignalGuard& signals) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) {
    return Error{std::string("cannot make a pipe: ") + std::strerror(errno) +
                 "; raise the limit of open files (ulimit -n)"};
  }
  const OwnedFd report_read(ends[0]);
  OwnedFd report_write(ends[1]);
  // vfork: the command's exec does not wait for a copy of our page tables, and we go on when it has
  // happened.
  const pid_t pid = vfork();
  if (pid == 0) ExecCommand(argv, streams, pipes, signals, report_write.get());
  if (pid < 0) {
    return Error{std::string("cannot start a process: ") + std::strerror(errno) +
                 "; raise the limit of processes (ulimit -u)"};
  }
  report_write.Reset();
  Child child{pid, 0};
  int error = 0;
  ssize_t size = 0;
  do {
    size = read(report_read.get(), &error, sizeof error);
  } while (size < 0 && errno == EINTR);
  if (size == sizeof error) child.exec_errno = error;
  return child;
}

int ExitCodeOf(int wait_status) {
  return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

int ExitCodeOfExecFailure(int exec_errno) {
  return exec_errno == ENOENT || exec_errno == ENOTDIR ? 127 : 126;
}

}  // namespace rankscope::run
