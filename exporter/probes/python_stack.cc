// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/probes/python_stack.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <ctime>

namespace rankscope::probes {
namespace {

constexpr size_t kNameCap = 80;

int64_t NowMilliseconds() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<int64_t>(now.tv_sec) * 1000 + now.tv_nsec / 1'000'000;
}

// Reads until the end of the pipe, the cap or the deadline; false: it was cut short.
bool ReadAll(int fd, int64_t until_ms, std::string& text) {
  std::array<char, 4096> buffer;
  while (text.size() < kDumpCap) {
    pollfd ready{fd, POLLIN, 0};
    const int64_t left = until_ms - NowMilliseconds();
    if (left <= 0) return false;
    if (const int n = poll(&ready, 1, static_cast<int>(left)); n == 0) return false;
    const ssize_t n = read(fd, buffer.data(), buffer.size());
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n <= 0) return n == 0;
    text.append(buffer.data(), static_cast<size_t>(n));
  }
  return false;
}

std::string Cleaned(std::string_view text) {
  std::string clean;
  for (const char c : text.substr(0, kNameCap)) {
    const bool fine = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      c == '_' || c == '.' || c == '<' || c == '>';
    clean += fine ? c : '_';
  }
  return clean;
}

// torch/utils/data/dataloader.py -> torch.utils.data.dataloader; of an absolute path what follows
// the folder of packages, else the name alone.
std::string ModuleOf(std::string_view file) {
  for (const std::string_view root : {"site-packages/", "dist-packages/", "/lib/python"}) {
    const size_t at = file.find(root);
    if (at == std::string_view::npos) continue;
    file.remove_prefix(at + root.size());
    if (root == "/lib/python") file.remove_prefix(std::min(file.size(), file.find('/') + 1));
    break;
  }
  if (file.starts_with("/")) file.remove_prefix(file.rfind('/') + 1);
  if (file.ends_with(".py")) file.remove_suffix(3);
  std::string module(file);
  std::replace(module.begin(), module.end(), '/', '.');
  return Cleaned(module);
}

}  // namespace

std::vector<std::string> PySpyFolders() {
  return {"/usr/bin", "/usr/local/bin", "/opt/rankscope/bin"};
}

std::string FindPySpy(const std::vector<std::string>& folders) {
  for (const std::string& folder : folders) {
    std::string path = folder + "/py-spy";
    if (access(path.c_str(), X_OK) == 0) return path;
  }
  return {};
}

std::string DumpPython(const std::string& py_spy, int pid, Duration deadline) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return {};
  std::string number = std::to_string(pid), program = py_spy;
  std::string dump = "dump", nonblocking = "--nonblocking", option = "--pid";
  char* argv[] = {program.data(), dump.data(),   nonblocking.data(),
                  option.data(),  number.data(), nullptr};
  std::string path = "PATH=/usr/bin:/bin", locale = "LC_ALL=C.UTF-8";
  char* environment[] = {path.data(), locale.data(), nullptr};
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  const int error = posix_spawn(&child, program.c_str(), &files, nullptr, argv, environment);
  posix_spawn_file_actions_destroy(&files);
  close(ends[1]);
  std::string text;
  bool whole = false;
  if (error == 0) {
    whole = ReadAll(ends[0], NowMilliseconds() + deadline.ns / 1'000'000, text);
    if (!whole) kill(child, SIGKILL);
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    whole = whole && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
  close(ends[0]);
  return whole ? text : std::string();
}

// Thread 4711 (active): "MainThread"
//     wait (threading.py:320)
//     <module> (train.py:12)
std::vector<std::string> MainFrames(std::string_view dump) {
  std::vector<std::string> frames;
  bool main = false;
  while (!dump.empty()) {
    const size_t end = dump.find('\n');
    std::string_view line = dump.substr(0, end);
    dump = end == std::string_view::npos ? std::string_view() : dump.substr(end + 1);
    if (line.starts_with("Thread ")) {
      if (main) break;
      main = line.find("\"MainThread\"") != std::string_view::npos;
      continue;
    }
    const size_t open = line.rfind(" (");
    if (!main || !line.starts_with("    ") || open == std::string_view::npos) continue;
    const std::string_view function = line.substr(4, open - 4);
    const std::string_view place = line.substr(open + 2);
    frames.push_back(ModuleOf(place.substr(0, place.rfind(':'))) + ':' + Cleaned(function));
    if (frames.size() >= kPythonFrames) break;
  }
  return frames;
}

}  // namespace rankscope::probes
