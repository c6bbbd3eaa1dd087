// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/run/supervisor.h"

#include <poll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "exporter/run/clock.h"
#include "exporter/run/terminal.h"

namespace rankscope::run {
namespace {

// As waitpid would give it.
int WaitStatusOf(const siginfo_t& info) {
  constexpr int kCore = 0x80;
  if (info.si_code == CLD_EXITED) return (info.si_status & 0xff) << 8;
  return info.si_status | (info.si_code == CLD_DUMPED ? kCore : 0);
}

}  // namespace

Supervisor::Supervisor(const Child& child, std::optional<Guardian>& guardian, Queue& queue,
                       std::vector<TerminalPair> terminals, int signal_fd, int done_fd, int streams,
                       Duration drain)
    : child_(child),
      guardian_(guardian),
      queue_(queue),
      terminals_(std::move(terminals)),
      signal_fd_(signal_fd),
      done_fd_(done_fd),
      streams_left_(streams),
      drain_(drain) {}

int Supervisor::Run(const std::string& exec_error) {
  exec_error_ = exec_error;
  Reap();  // it may have ended before the signals were watched
  while (!(exited_ && (streams_left_ == 0 || give_up_ || MonotonicNow().ns >= drain_until_.ns))) {
    Wait();
    ReadGuardian();
    ReadSignals();
    PassOnDue();
    ReadDone();
  }
  return wait_status_;
}

void Supervisor::Wait() {
  std::array<pollfd, 3> polled = {pollfd{signal_fd_, POLLIN, 0}, pollfd{done_fd_, POLLIN, 0},
                                  pollfd{guardian_ ? guardian_->fd() : -1, POLLIN, 0}};
  std::optional<Timestamp> due = vote_.next_due();
  if (exited_ && (!due || drain_until_ < *due)) due = drain_until_;
  int timeout_ms = -1;
  if (due)
    timeout_ms =
        static_cast<int>(std::max<int64_t>(0, (due->ns - MonotonicNow().ns) / 1'000'000 + 1));
  poll(polled.data(), polled.size(), timeout_ms);
}

void Supervisor::ReadGuardian() {
  if (!guardian_) return;
  for (const int signo : guardian_->ReadSignals()) vote_.GuardianReceived(signo, MonotonicNow());
}

void Supervisor::ReadSignals() {
  signalfd_siginfo info{};
  while (read(signal_fd_, &info, sizeof info) == sizeof info) {
    const auto signo = static_cast<int>(info.ssi_signo);
    if (signo == SIGCHLD) {
      Reap();
    } else if (exited_) {
      give_up_ = true;  // somebody wants an end: only grandchildren are waited for
    } else if (info.ssi_code <= 0) {
      // The command may signal its parent; that is no message to itself.
      if (static_cast<pid_t>(info.ssi_pid) != child_.pid) vote_.Received(signo, MonotonicNow());
    } else {
      FromKernel(signo);
    }
  }
}

// The terminal's signals reach its whole foreground group, in which the command is too. A hang-up
// is sent to the session's leader alone.
void Supervisor::FromKernel(int signo) {
  if (signo == SIGWINCH) Resize();
  if (signo == SIGHUP && getsid(0) == getpid()) PassOn(signo);
  if (signo == SIGTSTP || signo == SIGTTIN || signo == SIGTTOU) StopOurselves(signo);
}

// The command was told by the kernel too, and may have looked before its own terminals had
// changed.
void Supervisor::Resize() {
  for (const TerminalPair& pair : terminals_) CopyWindowSize(pair.terminal, pair.master.get());
  if (!terminals_.empty()) PassOn(SIGWINCH);
}

void Supervisor::PassOnDue() {
  if (!vote_.next_due() || MonotonicNow() < *vote_.next_due()) return;
  if (guardian_) {
    for (const int signo : guardian_->AskSignals()) vote_.GuardianReceived(signo, MonotonicNow());
  }
  for (const int signo : vote_.TakeDue(MonotonicNow())) {
    PassOn(signo);
    if (signo == SIGTSTP) StopOurselves(signo);
  }
}

void Supervisor::PassOn(int signo) {
  if (!exited_) kill(child_.pid, signo);
}

// Does what the signal does to a process that has not blocked it, so that the shell sees the job
// stop.
void Supervisor::StopOurselves(int signo) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signo);
  raise(signo);
  sigprocmask(SIG_UNBLOCK, &set, nullptr);
  sigprocmask(SIG_BLOCK, &set, nullptr);
}

// It stays a zombie until we end, too: the daemon can see that it was our child, and its pid is
// nobody else's meanwhile.
void Supervisor::Reap() {
  siginfo_t info{};
  if (exited_ ||
      waitid(P_PID, static_cast<id_t>(child_.pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
      info.si_pid != child_.pid)
    return;
  exited_ = true;
  const int status = WaitStatusOf(info);
  wait_status_ = status;
  const Timestamp now = MonotonicNow();
  drain_until_ = {now.ns + drain_.ns};
  QueueItem item;
  item.kind = QueueItem::Kind::kExited;
  item.t = now;
  item.wait_status = status;
  item.error = exec_error_;
  queue_.Push(std::move(item));
}

void Supervisor::ReadDone() {
  uint64_t ended = 0;
  if (read(done_fd_, &ended, sizeof ended) == sizeof ended)
    streams_left_ -= static_cast<int>(ended);
}

}  // namespace rankscope::run
