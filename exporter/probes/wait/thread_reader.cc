// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/probes/wait/thread_reader.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <climits>

#include "exporter/processes/proc_text.h"

namespace rankscope::probes {
namespace {

constexpr size_t kSmall = 4096;
constexpr size_t kMountsCap = 1 << 20;  // a container host has hundreds of lines of 200 bytes
constexpr size_t kLocksCap = 1 << 18;

std::string_view NextLine(std::string_view& text) {
  const size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  return line;
}

std::vector<std::string_view> Words(std::string_view line) {
  std::vector<std::string_view> words;
  while (true) {
    while (!line.empty() && line.front() == ' ') line.remove_prefix(1);
    if (line.empty()) return words;
    const size_t end = std::min(line.find(' '), line.size());
    words.push_back(line.substr(0, end));
    line.remove_prefix(end);
  }
}

template <typename T>
std::optional<T> Whole(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// The function in "[<0>] folio_wait_bit+0x14e/0x2e0 [nfs]".
std::string FunctionOf(std::string_view line) {
  const size_t begin = line.find("] ");
  if (begin != std::string_view::npos) line.remove_prefix(begin + 2);
  return std::string(line.substr(0, line.find_first_of("+ ")));
}

}  // namespace

std::string ThreadReader::ReadFile(const std::string& path, size_t limit) const {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  std::string text;
  std::array<char, 4096> buffer;
  while (text.size() < limit) {
    const ssize_t n = read(fd, buffer.data(), std::min(buffer.size(), limit - text.size()));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    text.append(buffer.data(), static_cast<size_t>(n));
  }
  close(fd);
  return text;
}

std::string ThreadReader::OfThread(int32_t pid, int32_t tid, const char* name) const {
  return proc_ + '/' + std::to_string(pid) + "/task/" + std::to_string(tid) + '/' + name;
}

std::vector<int32_t> ThreadReader::Threads(int32_t pid, size_t most) const {
  std::vector<int32_t> tids;
  DIR* const folder = opendir((proc_ + '/' + std::to_string(pid) + "/task").c_str());
  if (folder == nullptr) return tids;
  while (const dirent* entry = readdir(folder)) {
    if (const auto tid = Whole<int32_t>(entry->d_name)) tids.push_back(*tid);
  }
  closedir(folder);
  std::sort(tids.begin(), tids.end(), [pid](int32_t a, int32_t b) {
    return std::pair(a != pid, a) < std::pair(b != pid, b);
  });
  if (tids.size() > most) tids.resize(most);
  return tids;
}

std::optional<ThreadLook> ThreadReader::Look(int32_t pid, int32_t tid) const {
  const auto stat = collectors::ParseStat(ReadFile(OfThread(pid, tid, "stat"), kSmall));
  if (!stat) return std::nullopt;
  ThreadLook look;
  look.tid = tid;
  look.state = stat->state;
  const std::string schedstat = ReadFile(OfThread(pid, tid, "schedstat"), kSmall);
  const auto words = Words(std::string_view(schedstat).substr(0, schedstat.find('\n')));
  if (words.size() >= 2) {
    look.ran.ns = Whole<int64_t>(words[0]).value_or(-1);
    look.runnable.ns = Whole<int64_t>(words[1]).value_or(-1);
  }
  if (look.state == 'S' || look.state == 'D')
    look.call = ParseCall(ReadFile(OfThread(pid, tid, "syscall"), kSmall));
  if (look.call && IsAboutFile(*look.call)) look.file_kind = KindOfFile(pid, look.call->first);
  if (look.state == 'D') look.wchan = WaitChannel(pid, tid);
  return look;
}

std::string ThreadReader::WaitChannel(int32_t pid, int32_t tid) const {
  std::string wchan = ReadFile(OfThread(pid, tid, "wchan"), kSmall);
  return wchan == "0" ? std::string() : wchan;
}

std::vector<std::string> ThreadReader::KernelStack(int32_t pid, int32_t tid, size_t most) const {
  const std::string text = ReadFile(OfThread(pid, tid, "stack"), 4 * kSmall);
  std::vector<std::string> functions;
  std::string_view rest = text;
  while (!rest.empty() && functions.size() < most) {
    std::string function = FunctionOf(NextLine(rest));
    if (!function.empty()) functions.push_back(std::move(function));
  }
  return functions;
}

std::string ThreadReader::KindOfFile(int32_t pid, uint64_t fd) const {
  const std::string process = proc_ + '/' + std::to_string(pid);
  std::array<char, PATH_MAX> target;
  const std::string link = process + "/fd/" + std::to_string(fd);
  const ssize_t length = readlink(link.c_str(), target.data(), target.size());
  if (length <= 0) return {};
  const std::string_view path(target.data(), static_cast<size_t>(length));
  if (!path.starts_with("/") || path.starts_with("/dev/")) return std::string(FileKind(path, {}));
  // The mount by its number: asking the file itself would wait for its server.
  const std::string info = ReadFile(process + "/fdinfo/" + std::to_string(fd), kSmall);
  const auto mount = collectors::FindNumber(info, "mnt_id:");
  const std::string mounts = mount ? ReadFile(process + "/mountinfo", kMountsCap) : std::string();
  std::string_view rest = mounts;
  std::string_view type;
  while (!rest.empty() && type.empty()) {
    const auto words = Words(NextLine(rest));
    if (words.empty() || Whole<int64_t>(words[0]) != mount) continue;
    const auto dash = std::find(words.begin(), words.end(), "-");
    if (words.end() - dash > 1) type = *(dash + 1);
  }
  return std::string(FileKind(path, type));
}

std::string ThreadReader::Name(int32_t pid) const {
  std::string name = ReadFile(proc_ + '/' + std::to_string(pid) + "/comm", kSmall);
  return name.substr(0, name.find('\n'));
}

std::string ThreadReader::Tracer(int32_t pid) const {
  const std::string status = ReadFile(proc_ + '/' + std::to_string(pid) + "/status", kSmall);
  const auto tracer = collectors::FindNumber(status, "TracerPid:");
  if (!tracer || *tracer <= 0) return {};
  const auto of = static_cast<int32_t>(*tracer);
  return Name(of) + " (pid " + std::to_string(of) + ")";
}

std::string ThreadReader::LockHolder(int32_t pid) const {
  const int32_t holder = FindLockHolder(ReadFile(proc_ + "/locks", kLocksCap), pid);
  if (holder <= 0) return {};
  const std::string name = Name(holder);
  if (name.empty()) return "pid " + std::to_string(holder);
  return name + " (pid " + std::to_string(holder) + ")";
}

// 7: FLOCK  ADVISORY  WRITE 14060 fe:00:10952875 0 EOF
// 7: -> FLOCK  ADVISORY  WRITE 14238 fe:00:10952875 0 EOF      waits for the one above
int32_t FindLockHolder(std::string_view locks, int32_t pid) {
  int32_t holder = 0;
  while (!locks.empty()) {
    const auto words = Words(NextLine(locks));
    const bool waits = words.size() > 5 && words[1] == "->";
    const size_t at = waits ? 5 : 4;
    if (words.size() <= at) continue;
    const int32_t owner = Whole<int32_t>(words[at]).value_or(0);
    if (!waits) {
      holder = owner;
    } else if (owner == pid) {
      return holder;
    }
  }
  return 0;
}

}  // namespace rankscope::probes
