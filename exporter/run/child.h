// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Starts the command so that it finds what it would have found without us: arguments, environment,
// working directory, process group, controlling terminal, standard input, signal mask and
// dispositions. Main thread, before any other exists.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <array>
#include <string>

#include "detectors/model/result.h"
#include "exporter/loop/owned_fd.h"

namespace rankscope::run {

inline constexpr int kStdout =
    0;  // index of a stream here and on the wire; LogLine::stream is one more
inline constexpr int kStderr = 1;
inline constexpr int kStreams = 2;

// Signals of the wrapper itself. While it lives every signal is blocked (they are read, not
// handled), a broken pipe and a file-size limit are errors and not signals, and a child's end is
// never discarded.
class SignalGuard {
 public:
  SignalGuard();
  SignalGuard(const SignalGuard&) = delete;
  SignalGuard& operator=(const SignalGuard&) = delete;

  // In a child between fork and exec: what this process was started with.
  void RestoreInChild() const;

 private:
  static constexpr std::array<int, 3> kChanged = {SIGCHLD, SIGPIPE, SIGXFSZ};
  sigset_t inherited_mask_{};
  std::array<struct sigaction, kChanged.size()> inherited_{};
};

// How standard output and error were given to us.
struct StandardStreams {
  std::array<bool, kStreams> open = {true, true};
  std::array<bool, kStreams> terminal = {};
  // Both lead to the same place (a terminal, `2>&1`): one pipe for both keeps the order between
  // them, as without us.
  bool merged = false;
};

// A missing descriptor 0, 1 or 2 becomes /dev/null here, so that no file of ours is taken for it;
// the command gets none.
StandardStreams TakeStandardStreams();

// A pipe per stream, or a pty where the stream is to be one (terminal.h).
struct StreamPipes {
  std::array<OwnedFd, kStreams>
      read;  // [kStderr] is empty when merged; empty where the command has no such stream
  std::array<OwnedFd, kStreams> write;
  std::array<bool, kStreams> pty = {};
};

// `with_ptys`: where the stream is a terminal.
Result<StreamPipes> MakePipes(const StandardStreams& streams, bool with_ptys);

struct Child {
  pid_t pid = -1;      // to be waited for, also after a failed exec
  int exec_errno = 0;  // 0: the command runs
};

// argv[0] is looked up in PATH; a text file without "#!" is given to /bin/sh, as every shell does.
Result<Child> SpawnChild(char* const* argv, const StandardStreams& streams,
                         const StreamPipes& pipes, const SignalGuard& signals);

// What the wrapper exits with for a command that ended so: its code, or 128 + the signal.
int ExitCodeOf(int wait_status);

// 127: no such command; 126: there, but not executable.
int ExitCodeOfExecFailure(int exec_errno);

}  // namespace rankscope::run
