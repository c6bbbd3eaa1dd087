// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/run/artifacts.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "exporter/loop/owned_fd.h"
#include "exporter/run/artifact_archive.h"
#include "exporter/run/artifact_search.h"
#include "exporter/run/clock.h"
#include "exporter/run/write_all.h"

namespace rankscope::run {
namespace {

constexpr char kArchive[] = "artifacts.tar.gz";
constexpr char kList[] = "artifacts.txt";
constexpr size_t kMostListed = 1000;  // of each kind
constexpr size_t kMostListBytes = 512 << 10;

// What cannot be printed would begin a line of its own, or a terminal's command.
std::string Shown(std::string_view name) {
  std::string shown;
  for (const char c : name.substr(0, 300)) {
    const auto byte = static_cast<uint8_t>(c);
    shown += byte < 0x20 || byte == 0x7f ? '?' : c;
  }
  return name.size() > 300 ? shown + "..." : shown;
}

std::string Row(const char* kind, const FoundFile& file, const std::string& why) {
  std::string row = std::string(kind) + ' ' + Shown(file.name);
  if (file.size >= 0) row += ", " + std::to_string(file.size) + " bytes";
  return why.empty() ? row : row + ": " + why;
}

// The child's part: writes archive and list.
void Collect(const ArtifactOptions& options, const std::string& cwd, int folder) {
  const Timestamp until = MonotonicNow() + options.deadline;
  const auto late = [until] { return MonotonicNow() >= until; };
  FoundFiles found = SearchFiles(options.patterns, cwd, late);
  std::string list;
  size_t kept = 0, left = 0;
  const auto leave = [&](const FoundFile& file, const std::string& why) {
    if (++left <= kMostListed) list += Row("left", file, why) + '\n';
  };
  {
    OwnedFd fd(openat(folder, kArchive, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!fd) return;
    ArtifactArchive archive(fd.get(), options.budget, late);
    for (FoundFile& file : found.files) {
      const std::string why = file.why_not.empty() ? archive.Add(file) : file.why_not;
      if (!why.empty()) {
        leave(file, why);
      } else if (++kept <= kMostListed) {
        list += Row("kept", file, {}) + '\n';
      }
    }
    if (kept > 0 && !archive.Finish()) kept = 0;
  }
  if (kept == 0) unlinkat(folder, kArchive, 0);
  if (!found.note.empty()) list += "left " + found.note + '\n';
  if (left > kMostListed) list += "left and " + std::to_string(left - kMostListed) + " more\n";
  const OwnedFd out(
      openat(folder, kList, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (out) WriteAll(out.get(), list);
}

bool WaitFor(pid_t child, Duration patience) {
  const OwnedFd fd(static_cast<int>(syscall(SYS_pidfd_open, child, 0)));
  pollfd polled{fd.get(), POLLIN, 0};
  const bool ended = fd && poll(&polled, 1, static_cast<int>(patience.ns / 1'000'000)) == 1;
  if (!ended) kill(child, SIGKILL);
  // One that hangs in a file system does not die before that answers.
  waitpid(child, nullptr, ended ? 0 : WNOHANG);
  return ended;
}

void ReadList(int folder, const std::string& path, Artifacts& out) {
  const OwnedFd fd(openat(folder, kList, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  std::string text(kMostListBytes, '\0');
  const ssize_t size = fd ? read(fd.get(), text.data(), text.size()) : -1;
  if (size < 0) {
    out.complaint = path + '/' + kList + ": " + std::strerror(errno);
    return;
  }
  std::string_view rest = std::string_view(text).substr(0, static_cast<size_t>(size));
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.starts_with("kept ")) out.kept.emplace_back(line.substr(5));
    if (line.starts_with("left ")) out.left.emplace_back(line.substr(5));
  }
  if (!out.kept.empty()) out.archive = path + '/' + kArchive;
}

}  // namespace

Artifacts CollectArtifacts(const ArtifactOptions& options, const std::string& cwd, int folder,
                           const std::string& path) {
  Artifacts out;
  unlinkat(folder, kList, 0);
  const pid_t child = fork();
  if (child == 0) {
    try {
      Collect(options, cwd, folder);
    } catch (...) {  // memory
    }
    _exit(0);
  }
  if (child < 0) {
    out.complaint = std::string("no process: ") + std::strerror(errno);
  } else if (!WaitFor(child, options.deadline + Seconds(2))) {
    out.complaint = "their file system does not answer";
  } else {
    ReadList(folder, path, out);
  }
  return out;
}

}  // namespace rankscope::run
