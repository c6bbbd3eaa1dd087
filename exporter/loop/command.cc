// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/loop/command.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>

#include "exporter/loop/owned_fd.h"

namespace rankscope::exporter {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kComplaintCap = 400;
constexpr int kPipeBytes = 1 << 20;  // what an unprivileged user gets (fs.pipe-max-size)

struct Stream {
  OwnedFd fd;
  std::string text;
  size_t keeps = 0;
  bool keeps_last = false;  // of what is too much: else what came first
};

// False: it gives no more.
bool ReadSome(Stream& stream) {
  std::array<char, 65536> buffer;
  const ssize_t n = read(stream.fd.get(), buffer.data(), buffer.size());
  if (n < 0 && (errno == EINTR || errno == EAGAIN)) return true;
  if (n <= 0) return false;
  if (stream.keeps_last) {
    stream.text.append(buffer.data(), static_cast<size_t>(n));
    if (stream.text.size() > stream.keeps) stream.text.erase(0, stream.text.size() - stream.keeps);
    return true;
  }
  const size_t room = stream.keeps - std::min(stream.keeps, stream.text.size());
  stream.text.append(buffer.data(), std::min(room, static_cast<size_t>(n)));
  return true;
}

// Both streams to their ends.
CommandOutcome::End ReadBoth(Stream& out, Stream& err, size_t most, Clock::time_point until) {
  while (out.fd || err.fd) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
    if (left <= 0) return CommandOutcome::End::kLate;
    // poll() passes over what is negative.
    std::array<pollfd, 2> ready = {{{out.fd.get(), POLLIN, 0}, {err.fd.get(), POLLIN, 0}}};
    if (poll(ready.data(), ready.size(), static_cast<int>(std::min<int64_t>(left, 60'000))) < 0 &&
        errno != EINTR)
      return CommandOutcome::End::kFailed;
    if (ready[0].revents != 0 && !ReadSome(out)) out.fd.Reset();
    if (ready[1].revents != 0 && !ReadSome(err)) err.fd.Reset();
    if (out.text.size() > most) return CommandOutcome::End::kTooLong;
  }
  return CommandOutcome::End::kDone;
}

// It may have closed its output and go on.
bool WaitForExit(pid_t child, Clock::time_point until, int& status) {
  for (;;) {
    const pid_t ended = waitpid(child, &status, WNOHANG);
    if (ended == child) return true;
    if (ended < 0 && errno != EINTR) return false;
    if (Clock::now() >= until) return false;
    poll(nullptr, 0, 2);
  }
}

}  // namespace

CommandOutcome RunCommand(const CommandLine& command) {
  CommandOutcome outcome;
  const Clock::time_point begin = Clock::now();
  const Clock::time_point until = begin + std::chrono::nanoseconds(command.deadline.ns);
  std::vector<std::string> words = command.argv;
  std::vector<std::string> environment = {
      "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8"};
  environment.insert(environment.end(), command.environment.begin(), command.environment.end());
  std::vector<char*> argv, envp;
  for (std::string& word : words) argv.push_back(word.data());
  for (std::string& variable : environment) envp.push_back(variable.data());
  argv.push_back(nullptr);
  envp.push_back(nullptr);

  int out_ends[2], err_ends[2];
  if (words.empty() || pipe2(out_ends, O_CLOEXEC) != 0) return outcome;
  Stream out{OwnedFd(out_ends[0]), {}, command.most + 1, false};
  out.text.reserve(std::min(command.expects, command.most));
  fcntl(out_ends[0], F_SETPIPE_SZ, kPipeBytes);  // a smaller pipe works too
  OwnedFd out_end(out_ends[1]);
  if (pipe2(err_ends, O_CLOEXEC) != 0) return outcome;
  Stream err{OwnedFd(err_ends[0]), {}, kComplaintCap, true};
  OwnedFd err_end(err_ends[1]);

  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, out_end.get(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&files, err_end.get(), STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  // The daemon's threads block the signals that its loop takes.
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
  pid_t child = 0;
  const int error =
      posix_spawn(&child, words[0].c_str(), &files, &attributes, argv.data(), envp.data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  out_end.Reset();
  err_end.Reset();
  if (error != 0) {
    outcome.complaint = std::string(strerror(error)) + ": " + words[0];
    return outcome;
  }

  outcome.end = ReadBoth(out, err, command.most, until);
  int status = 0;
  bool ended = false;
  if (outcome.end == CommandOutcome::End::kDone) {
    ended = WaitForExit(child, until, status);
    if (!ended) outcome.end = CommandOutcome::End::kLate;
  }
  if (!ended) {
    kill(-child, SIGKILL);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
  }
  outcome.took = Duration{(Clock::now() - begin).count()};
  outcome.output = std::move(out.text);
  outcome.complaint = std::move(err.text);
  outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  if (outcome.end == CommandOutcome::End::kDone && outcome.exit_code != 0)
    outcome.end = CommandOutcome::End::kFailed;
  return outcome;
}

std::string FindProgram(std::string_view name, const std::vector<std::string>& folders) {
  for (const std::string& folder : folders) {
    std::string path = folder + "/" + std::string(name);
    if (access(path.c_str(), X_OK) == 0) return path;
  }
  return {};
}

}  // namespace rankscope::exporter
