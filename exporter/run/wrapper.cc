// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/run/wrapper.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "exporter/run/child.h"
#include "exporter/run/clock.h"
#include "exporter/run/daemon_link.h"
#include "exporter/run/guardian.h"
#include "exporter/run/observer.h"
#include "exporter/run/process_facts.h"
#include "exporter/run/queue.h"
#include "exporter/run/relay.h"
#include "exporter/run/run_directory.h"
#include "exporter/run/signal_vote.h"
#include "exporter/run/terminal.h"
#include "exporter/run/write_all.h"

namespace rankscope::run {
namespace {

int Refuse(const std::string& reason) {
  std::fprintf(stderr, "rankscope run: %s\n", reason.c_str());
  return kRefused;
}

std::string WorkingDirectory() {
  std::array<char, PATH_MAX> path{};
  return getcwd(path.data(), path.size()) != nullptr ? path.data() : "";
}

// A stream of ours that is a terminal, and the command's that stands for it.
struct TerminalPair {
  int terminal = -1;
  OwnedFd master;
};

std::vector<TerminalPair> TerminalsOf(const StreamPipes& pipes) {
  std::vector<TerminalPair> pairs;
  for (size_t stream = 0; stream < kStreams; ++stream) {
    if (!pipes.pty[stream]) continue;
    pairs.push_back({STDOUT_FILENO + static_cast<int>(stream),
                     OwnedFd(fcntl(pipes.read[stream].get(), F_DUPFD_CLOEXEC, 0))});
  }
  return pairs;
}

// The main thread's part while the command runs.
class Supervisor {
 public:
  Supervisor(const Child& child, std::optional<Guardian>& guardian, Queue& queue,
             std::vector<TerminalPair> terminals, int done_fd, int streams, Duration drain)
      : child_(child),
        guardian_(guardian),
        queue_(queue),
        terminals_(std::move(terminals)),
        done_fd_(done_fd),
        streams_left_(streams),
        drain_(drain) {
    sigset_t all;
    sigfillset(&all);
    signals_ = OwnedFd(signalfd(-1, &all, SFD_NONBLOCK | SFD_CLOEXEC));
  }

  // Until the command has ended and its streams have, or the drain time is over. Returns the wait
  // status.
  int Run(const std::string& exec_error) {
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

 private:
  void Wait() {
    std::array<pollfd, 3> polled = {pollfd{signals_.get(), POLLIN, 0}, pollfd{done_fd_, POLLIN, 0},
                                    pollfd{guardian_ ? guardian_->fd() : -1, POLLIN, 0}};
    std::optional<Timestamp> due = vote_.next_due();
    if (exited_ && (!due || drain_until_ < *due)) due = drain_until_;
    int timeout_ms = -1;
    if (due)
      timeout_ms =
          static_cast<int>(std::max<int64_t>(0, (due->ns - MonotonicNow().ns) / 1'000'000 + 1));
    poll(polled.data(), polled.size(), timeout_ms);
  }

  void ReadGuardian() {
    if (!guardian_) return;
    for (const int signo : guardian_->ReadSignals()) vote_.GuardianReceived(signo, MonotonicNow());
  }

  void ReadSignals() {
    signalfd_siginfo info{};
    while (read(signals_.get(), &info, sizeof info) == sizeof info) {
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
  void FromKernel(int signo) {
    if (signo == SIGWINCH) Resize();
    if (signo == SIGHUP && getsid(0) == getpid()) PassOn(signo);
    if (signo == SIGTSTP || signo == SIGTTIN || signo == SIGTTOU) StopOurselves(signo);
  }

  // The command was told by the kernel too, and may have looked before its own terminals had
  // changed.
  void Resize() {
    for (const TerminalPair& pair : terminals_) CopyWindowSize(pair.terminal, pair.master.get());
    if (!terminals_.empty()) PassOn(SIGWINCH);
  }

  void PassOnDue() {
    if (!vote_.next_due() || MonotonicNow() < *vote_.next_due()) return;
    if (guardian_) {
      for (const int signo : guardian_->AskSignals()) vote_.GuardianReceived(signo, MonotonicNow());
    }
    for (const int signo : vote_.TakeDue(MonotonicNow())) {
      PassOn(signo);
      if (signo == SIGTSTP) StopOurselves(signo);
    }
  }

  void PassOn(int signo) {
    if (!exited_) kill(child_.pid, signo);
  }

  // Does what the signal does to a process that has not blocked it, so that the shell sees the job
  // stop.
  void StopOurselves(int signo) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, signo);
    raise(signo);
    sigprocmask(SIG_UNBLOCK, &set, nullptr);
    sigprocmask(SIG_BLOCK, &set, nullptr);
  }

  void Reap() {
    int status = 0;
    if (exited_ || waitpid(child_.pid, &status, WNOHANG) != child_.pid) return;
    exited_ = true;
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

  void ReadDone() {
    uint64_t ended = 0;
    if (read(done_fd_, &ended, sizeof ended) == sizeof ended)
      streams_left_ -= static_cast<int>(ended);
  }

  const Child& child_;
  std::optional<Guardian>& guardian_;
  Queue& queue_;
  std::vector<TerminalPair> terminals_;
  int done_fd_;
  int streams_left_;
  Duration drain_;
  OwnedFd signals_;
  SignalVote vote_;
  std::string exec_error_;
  bool exited_ = false;
  bool give_up_ = false;
  int wait_status_ = 0;
  Timestamp drain_until_;
};

void Deliver(const Options& options, const RunDirectory& run, const Judgement& judgement) {
  // A verdict that cannot be written must not change the command's exit status; the terminal still
  // gets it.
  const Status json = ReplaceFile(run, "verdict.json", judgement.json);
  const Status text = ReplaceFile(run, "verdict.txt", judgement.text);
  const bool to_people = options.print == Options::Print::kStderr ||
                         (options.print == Options::Print::kAuto && isatty(STDERR_FILENO) == 1);
  if (options.print == Options::Print::kJson) WriteAll(STDERR_FILENO, judgement.json);
  if (to_people) {
    WriteAll(STDERR_FILENO, judgement.text);
    for (const Status* status : {&json, &text}) {
      if (!status->ok())
        WriteAll(STDERR_FILENO, "rankscope run: not written: " + status->error() + "\n");
    }
    WriteAll(STDERR_FILENO, "rankscope run: log and verdict in " + run.path + "\n");
  }
}

// The recorder's own folder, passed on to the daemon without the rest of the run's.
OwnedFd OpenRecording(const RunDirectory& run) {
  mkdirat(run.directory.get(), "recording", 0755);
  return OwnedFd(
      openat(run.directory.get(), "recording", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
}

std::string ExecFailureText(const char* command, int exec_errno) {
  const char* remedy = exec_errno == ENOENT
                           ? "check its name, PATH and the interpreter of its first line"
                           : "check its permissions and format";
  return std::string("rankscope run: cannot execute ") + command + ": " +
         std::strerror(exec_errno) + "; " + remedy;
}

}  // namespace

int Wrap(const Options& options, const MakeConsumer& make_consumer) {
  const StandardStreams streams = TakeStandardStreams();
  RunHeader header{options.job_id, RedactArguments(options.argv), WorkingDirectory(),
                   ReadHostName(), options.tool_version,          getpid(),
                   WallNowNs()};
  Result<RunDirectory> run = CreateRunDirectory(options.run_directory, header);
  if (!run) return Refuse(run.error());
  Result<StreamPipes> pipes = MakePipes(streams, options.ptys);
  std::array<int, 2> life{};
  if (!pipes) return Refuse(pipes.error());
  if (pipe2(life.data(), O_CLOEXEC) != 0)
    return Refuse(std::string("cannot make a pipe: ") + std::strerror(errno));
  OwnedFd life_read(life[0]);
  const OwnedFd life_write(life[1]);

  const SignalGuard signals;
  const Timestamp started = MonotonicNow();
  const Result<Child> child = SpawnChild(options.argv, streams, *pipes, signals);
  if (!child) return Refuse(child.error());
  for (OwnedFd& end : pipes->write) end.Reset();

  // Without a guardian (the limit of processes) signals are passed on unasked, and nothing else
  // changes.
  std::optional<Guardian> guardian;
  if (auto made = Guardian::Start(*pipes, run->log.get(), life_write.get()))
    guardian = *std::move(made);

  const OwnedFd recording = OpenRecording(*run);
  Queue queue;
  Tap tap(run->log.get(), queue);
  DaemonLink::Passed passed{options.job_id, ReadProcessKey(child->pid), recording.get(),
                            run->log.get(), std::move(life_read),       {}};
  int stream_count = 0;
  for (size_t i = 0; i < kStreams; ++i) {
    if (!pipes->read[i]) continue;
    // The daemon takes pipes only: it reads no device that a user hands it.
    if (!pipes->pty[i])
      passed.streams[i] = OwnedFd(fcntl(pipes->read[i].get(), F_DUPFD_CLOEXEC, 0));
    ++stream_count;
  }
  Observer::Facts facts{options.job_id,      header.host,     header.cwd,
                        run->path + "/log",  recording.get(), options.argv,
                        options.environment, passed.root,     started,
                        {"stdout", "stderr"}};
  if (streams.merged) facts.stream_names[kStdout] = "output";
  // Without a recording there is nothing for the daemon to follow.
  DaemonLink link(recording ? options.socket_path : std::string(), std::move(passed));

  std::vector<TerminalPair> terminals = TerminalsOf(*pipes);
  const OwnedFd done(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  const auto push = [&queue](QueueItem::Kind kind, int stream) {
    QueueItem item;
    item.kind = kind;
    item.stream = stream;
    item.t = MonotonicNow();
    queue.Push(std::move(item));
  };
  const Relay::Hooks hooks{[&](int stream) {
                             if (guardian) guardian->CloseStream(stream);
                             push(QueueItem::Kind::kRelease, stream);
                           },
                           [&](int stream) { return !link.Holds(stream); },
                           [&](int stream) {
                             push(QueueItem::Kind::kClosed, stream);
                             const uint64_t one = 1;
                             [[maybe_unused]] const ssize_t told =
                                 write(done.get(), &one, sizeof one);
                           }};
  // First of the threads: what it builds is ready when the shortest command ends.
  Observer observer(std::move(facts), queue, tap, link, make_consumer);
  Judgement judgement;
  std::thread observing([&] { judgement = observer.Run(); });

  std::array<std::unique_ptr<Relay>, kStreams> relays;
  for (int i = 0; i < kStreams; ++i) {
    OwnedFd& in = pipes->read[static_cast<size_t>(i)];
    if (in)
      relays[static_cast<size_t>(i)] =
          std::make_unique<Relay>(i, std::move(in), STDOUT_FILENO + i, tap, hooks);
  }

  std::string exec_error;
  if (child->exec_errno != 0) {
    exec_error = ExecFailureText(options.argv[0], child->exec_errno);
    const std::string line = exec_error + "\n";
    tap.Take(streams.merged ? kStdout : kStderr, line);
    WriteAll(STDERR_FILENO, line);
  }

  Supervisor supervisor(*child, guardian, queue, std::move(terminals), done.get(), stream_count,
                        options.drain);
  const int wait_status = supervisor.Run(exec_error);

  bool all_ended = true;
  for (const auto& relay : relays) {
    if (!relay) continue;
    relay->Stop();
    all_ended = all_ended && relay->ended();
  }
  if (guardian && all_ended) guardian->Dismiss();
  push(QueueItem::Kind::kFinish, 0);
  observing.join();
  Deliver(options, *run, judgement);
  if (guardian) {
    // Left behind last: its first act as our heir is to copy, and that must come after our own last
    // bytes.
    all_ended ? guardian->Reap() : guardian->LeaveBehind();
  }
  return child->exec_errno != 0 ? ExitCodeOfExecFailure(child->exec_errno)
                                : ExitCodeOf(wait_status);
}

}  // namespace rankscope::run
