// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/run/wrapper.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <functional>
#include <latch>
#include <memory>
#include <new>
#include <optional>
#include <system_error>
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
#include "exporter/run/supervisor.h"
#include "exporter/run/terminal.h"
#include "exporter/run/write_all.h"

namespace rankscope::run {
namespace {

void Say(const std::string& text) {
  WriteAll(STDERR_FILENO, "rankscope run: " + text + "\n");
}

std::string WorkingDirectory() {
  std::array<char, PATH_MAX> path{};
  return getcwd(path.data(), path.size()) != nullptr ? path.data() : "";
}

std::vector<TerminalPair> TerminalsOf(const StreamPipes& pipes) {
  std::vector<TerminalPair> pairs;
  for (size_t stream = 0; stream < kStreams; ++stream) {
    if (!pipes.pty[stream]) continue;
    pairs.push_back({STDOUT_FILENO + static_cast<int>(stream),
                     OwnedFd(fcntl(pipes.read[stream].get(), F_DUPFD_CLOEXEC, 0))});
  }
  return pairs;
}

void Deliver(const Options& options, const RunDirectory& run, const Judgement& judgement) {
  // A verdict that cannot be written must not change the command's exit status; the terminal still
  // gets it.
  const bool to_people = options.print == Options::Print::kStderr ||
                         (options.print == Options::Print::kAuto && isatty(STDERR_FILENO) == 1);
  if (options.print == Options::Print::kJson) WriteAll(STDERR_FILENO, judgement.json);
  if (to_people) WriteAll(STDERR_FILENO, judgement.text);
  if (!run.directory) return;
  const Status json = ReplaceFile(run, "verdict.json", judgement.json);
  const Status text = ReplaceFile(run, "verdict.txt", judgement.text);
  if (!to_people) return;
  for (const Status* status : {&json, &text}) {
    if (!status->ok()) Say("not written: " + status->error());
  }
  Say("log and verdict in " + run.path);
}

// The recorder's own folder, passed on to the daemon without the rest of the run's.
OwnedFd OpenRecording(const RunDirectory& run) {
  if (!run.directory) return {};
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

// Something that we cannot do without is not to be had. The command becomes what it would have been
// without us: this process.
int RunBare(const Options& options, const SignalGuard& signals, const std::string& reason) {
  Say(reason + "; the command runs without a log and without a verdict");
  signals.RestoreInChild();
  execvp(options.argv[0], options.argv);
  const int error = errno;
  WriteAll(STDERR_FILENO, ExecFailureText(options.argv[0], error) + "\n");
  return ExitCodeOfExecFailure(error);
}

OwnedFd WatchSignals() {
  sigset_t all;
  sigfillset(&all);
  return OwnedFd(signalfd(-1, &all, SFD_NONBLOCK | SFD_CLOEXEC));
}

// Not joinable where there is no room for one more thread.
std::thread StartThread(std::function<void()> body) {
  try {
    return std::thread(std::move(body));
  } catch (const std::system_error&) {
    return {};
  }
}

// One run, from the folder to the verdict. What it needs is there before the command is: once that
// runs, nothing that is missing can stop it.
class Run {
 public:
  Run(const Options& options, const MakeConsumer& make_consumer)
      : options_(options), make_consumer_(make_consumer), streams_(TakeStandardStreams()) {}

  int operator()() {
    const SignalGuard signals;  // first: a limit on the size of files is an error, and no signal
    header_ = {options_.job_id, RedactArguments(options_.argv), WorkingDirectory(),
               ReadHostName(),  options_.tool_version,          getpid(),
               WallNowNs()};
    place_ = FindRunPlace(options_.run_directory, header_, options_.environment);
    if (!place_.note.empty()) Say(place_.note);
    Result<StreamPipes> pipes = MakePipes(streams_, options_.ptys);
    if (!pipes) return RunBare(options_, signals, pipes.error());
    pipes_ = *std::move(pipes);
    std::array<int, 2> life{};
    if (pipe2(life.data(), O_CLOEXEC) != 0)
      return RunBare(options_, signals, std::string("cannot make a pipe: ") + std::strerror(errno));
    life_read_ = OwnedFd(life[0]);
    life_write_ = OwnedFd(life[1]);

    started_ = MonotonicNow();
    if (!MakeThreads()) {
      EndThreads();
      return RunBare(options_, signals,
                     "no room for threads or descriptors of our own; raise the limits of processes "
                     "(ulimit -u) and of open files (ulimit -n)");
    }
    const Result<Child> child = SpawnChild(options_.argv, streams_, pipes_, signals);
    if (!child) {
      EndThreads();
      return RunBare(options_, signals, child.error());
    }
    return Watch(*child);
  }

 private:
  // They wait until there is something to do.
  bool MakeThreads() {
    signal_fd_ = WatchSignals();
    done_ = OwnedFd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    tap_.emplace(place_.run.log ? place_.run.log.get() : -1, queue_,
                 [this](int error) { return OtherLog(error); });
    const Relay::Hooks hooks{[this](int stream) {
                               if (guardian_) guardian_->CloseStream(stream);
                               Push(QueueItem::Kind::kRelease, stream);
                             },
                             [this](int stream) { return !link_->Holds(stream); },
                             [this](int stream) {
                               Push(QueueItem::Kind::kClosed, stream);
                               const uint64_t one = 1;
                               [[maybe_unused]] const ssize_t told =
                                   write(done_.get(), &one, sizeof one);
                             }};
    // First of the threads: what it builds is ready when the shortest command ends.
    observing_ = StartThread([this] {
      begin_.wait();
      if (observer_) Observe();
    });
    bool all = signal_fd_ && done_ && observing_.joinable();
    for (int i = 0; i < kStreams; ++i) {
      if (!pipes_.read[static_cast<size_t>(i)]) continue;
      auto& relay = relays_[static_cast<size_t>(i)];
      relay = std::make_unique<Relay>(i, STDOUT_FILENO + i, *tap_, hooks, begin_);
      all = all && relay->works();
    }
    return all;
  }

  // Without memory for a judgement the command goes on without one.
  void Observe() {
    try {
      judgement_ = observer_->Run();
      return;
    } catch (const std::bad_alloc&) {
      Say("not enough memory for a verdict; the command continues without one");
    }
    for (int stream = 0; stream < kStreams; ++stream) link_->Release(stream);
    for (bool finished = false; !finished;) {
      for (const QueueItem& item : queue_.TakeUntil({MonotonicNow().ns + Seconds(1).ns}))
        finished = finished || item.kind == QueueItem::Kind::kFinish;
      link_->Poll(MonotonicNow());
    }
  }

  void EndThreads() {
    begin_.count_down();
    for (const auto& relay : relays_) {
      if (relay) relay->Stop();
    }
    if (observing_.joinable()) observing_.join();
  }

  // The disk of the log is full, or gone, in the middle of the run.
  OwnedFd OtherLog(int error) {
    RunPlace other =
        FindOtherPlace("cannot write " + place_.run.path + "/log any more: " + std::strerror(error),
                       header_, options_.environment);
    other_note_ = other.note;
    QueueItem item;
    item.kind = QueueItem::Kind::kLogMoved;
    item.t = MonotonicNow();
    item.error = other.note;
    if (other.run.log) queue_.Push(std::move(item));
    return std::move(other.run.log);
  }

  void Push(QueueItem::Kind kind, int stream) {
    QueueItem item;
    item.kind = kind;
    item.stream = stream;
    item.t = MonotonicNow();
    queue_.Push(std::move(item));
  }

  DaemonLink::Passed WhatIsPassed(const Child& child, int recording) {
    DaemonLink::Passed passed{options_.job_id,      ReadProcessKey(child.pid), recording,
                              place_.run.log.get(), std::move(life_read_),     {}};
    for (size_t i = 0; i < kStreams; ++i) {
      // The daemon takes pipes only: it reads no device that a user hands it.
      if (pipes_.read[i] && !pipes_.pty[i])
        passed.streams[i] = OwnedFd(fcntl(pipes_.read[i].get(), F_DUPFD_CLOEXEC, 0));
    }
    return passed;
  }

  int Watch(const Child& child) {
    for (OwnedFd& end : pipes_.write) end.Reset();
    // Without a guardian (the limit of processes) signals are passed on unasked, and nothing else
    // changes.
    if (auto made = Guardian::Start(pipes_, place_.run.log.get(), life_write_.get()))
      guardian_ = *std::move(made);

    const OwnedFd recording = OpenRecording(place_.run);
    DaemonLink::Passed passed = WhatIsPassed(child, recording.get());
    Observer::Facts facts{
        options_.job_id, header_.host,  header_.cwd,          place_.run.path + "/log",
        recording.get(), options_.argv, options_.environment, passed.root,
        started_,        place_.note,   {"stdout", "stderr"}};
    if (!place_.run.log) facts.log_path.clear();
    facts.targets = options_.targets;
    facts.notify = options_.notify;
    if (streams_.merged) facts.stream_names[kStdout] = "output";
    // Without a recording there is nothing for the daemon to follow.
    link_.emplace(recording && passed.life_read ? options_.socket_path : std::string(),
                  std::move(passed));
    observer_.emplace(std::move(facts), queue_, *tap_, *link_, make_consumer_);
    std::vector<TerminalPair> terminals = TerminalsOf(pipes_);
    int stream_count = 0;
    for (size_t i = 0; i < kStreams; ++i) {
      if (!relays_[i]) continue;
      relays_[i]->Take(std::move(pipes_.read[i]));
      ++stream_count;
    }
    begin_.count_down();

    std::string exec_error;
    if (child.exec_errno != 0) {
      exec_error = ExecFailureText(options_.argv[0], child.exec_errno);
      const std::string line = exec_error + "\n";
      tap_->Take(streams_.merged ? kStdout : kStderr, line);
      WriteAll(STDERR_FILENO, line);
    }
    Supervisor supervisor(child, guardian_, queue_, std::move(terminals), signal_fd_.get(),
                          done_.get(), stream_count, options_.drain);
    const int wait_status = supervisor.Run(exec_error);
    Finish();
    waitpid(child.pid, nullptr, 0);
    return child.exec_errno != 0 ? ExitCodeOfExecFailure(child.exec_errno)
                                 : ExitCodeOf(wait_status);
  }

  void Finish() {
    bool all_ended = true;
    for (const auto& relay : relays_) {
      if (!relay) continue;
      relay->Stop();
      all_ended = all_ended && relay->ended();
    }
    if (guardian_ && all_ended) guardian_->Dismiss();
    Push(QueueItem::Kind::kFinish, 0);
    observing_.join();
    if (!other_note_.empty()) Say(other_note_);
    Deliver(options_, place_.run, judgement_);
    const Artifacts artifacts = KeepArtifacts();
    if (judgement_.leave) {
      const std::string complaint = judgement_.leave(artifacts);
      if (!complaint.empty()) Say(complaint);
    }
    if (!guardian_) return;
    // Left behind last: its first act as our heir is to copy, and that must come after our own last
    // bytes.
    all_ended ? guardian_->Reap() : guardian_->LeaveBehind();
  }

  // Of the command's files; what it takes is for who asks for it.
  Artifacts KeepArtifacts() const {
    if (options_.artifacts.patterns.empty()) return {};
    if (!place_.run.directory) return {{}, {}, {}, "there is no directory of the run"};
    Artifacts artifacts = CollectArtifacts(options_.artifacts, header_.cwd,
                                           place_.run.directory.get(), place_.run.path);
    if (!artifacts.complaint.empty()) Say("artifacts are not kept: " + artifacts.complaint);
    return artifacts;
  }

  const Options& options_;
  const MakeConsumer& make_consumer_;
  const StandardStreams streams_;
  RunHeader header_;
  RunPlace place_;
  std::string other_note_;  // until they end, of the threads that copy
  StreamPipes pipes_;
  OwnedFd life_read_;
  OwnedFd life_write_;
  Timestamp started_;
  OwnedFd signal_fd_;
  OwnedFd done_;
  Queue queue_;
  std::optional<Tap> tap_;
  std::optional<Guardian> guardian_;
  std::optional<DaemonLink> link_;
  std::optional<Observer> observer_;
  Judgement judgement_;
  std::latch begin_{1};
  std::array<std::unique_ptr<Relay>, kStreams> relays_;
  std::thread observing_;
};

}  // namespace

int Wrap(const Options& options, const MakeConsumer& make_consumer) {
  return Run(options, make_consumer)();
}

}  // namespace rankscope::run
