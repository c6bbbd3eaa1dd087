// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/replay/flight_dumps.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "detectors/model/ascii.h"
#include "detectors/reports/digest.h"
#include "exporter/loop/owned_fd.h"
#include "exporter/replay/log_file_names.h"

namespace rankscope::replay {
namespace {

constexpr size_t kLook = 4096;
constexpr int64_t kMaxDump = int64_t{48} << 20;  // as the daemon reads them

struct File {
  std::string bytes;
  int64_t written_ns = 0;
  std::string error;
};

// PyTorch's pickles begin with the mark of a protocol; in JSON the first kilobytes hold a member
// that no log has.
bool LooksLikeDump(std::string_view head) {
  constexpr char kPickle = '\x80';
  if (head.size() > 2 && head[0] == kPickle && head[1] >= 2 && head[1] <= 5) return true;
  const size_t begin = head.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos || head[begin] != '{') return false;
  constexpr std::array<std::string_view, 5> kMembers = {
      "\"pg_config\"", "\"pg_status\"", "\"collective_seq_id\"", "\"nccl_comm_state\"",
      "\"comm_lib_version\""};
  return std::any_of(kMembers.begin(), kMembers.end(), [head](std::string_view member) {
    return head.find(member) != std::string_view::npos;
  });
}

std::string ReadUpTo(int fd, size_t most) {
  std::string bytes(most, '\0');
  size_t size = 0;
  while (size < most) {
    const ssize_t got = pread(fd, bytes.data() + size, most - size, static_cast<off_t>(size));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    size += static_cast<size_t>(got);
  }
  bytes.resize(size);
  return bytes;
}

// The whole file where it looks like a dump; no bytes and no error where it does not.
File ReadIfDump(const std::string& path) {
  File file;
  struct stat status = {};
  if (path == "-" || stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return file;
  const OwnedFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (fd.get() < 0 || !LooksLikeDump(ReadUpTo(fd.get(), kLook))) return file;
  if (status.st_size > kMaxDump) {
    file.error = "a dump of more than 48 MiB is not read";
    return file;
  }
  file.bytes = ReadUpTo(fd.get(), static_cast<size_t>(status.st_size));
  file.written_ns = status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec;
  return file;
}

// PyTorch puts the rank behind the name that it was given: "nccl_trace_rank_3", "trace_3".
int32_t RankAtTheEnd(std::string_view path) {
  path.remove_prefix(path.rfind('/') + 1);
  const size_t dot = path.find('.');
  if (dot != std::string_view::npos && dot > 0) path = path.substr(0, dot);
  size_t begin = path.size();
  while (begin > 0 && IsDigit(path[begin - 1])) --begin;
  constexpr size_t kMostDigits = 7;
  if (begin == path.size() || path.size() - begin > kMostDigits) return -1;
  int32_t rank = 0;
  for (const char digit : path.substr(begin)) rank = 10 * rank + (digit - '0');
  return rank;
}

struct Dump {
  std::string path;
  reports::FlightDump content;
  int64_t written_ns = 0;
};

// Of several dumps of a rank the one written last; those without a number get the lowest free ones.
std::map<int32_t, Dump> ByRank(std::vector<Dump> dumps, FlightDumps& found) {
  std::vector<std::string> paths;
  paths.reserve(dumps.size());
  for (const Dump& dump : dumps) paths.push_back(dump.path);
  const std::vector<LogName> names = NameLogs(paths);
  std::map<int32_t, Dump> by_rank;
  std::vector<Dump> unnamed;
  for (size_t i = 0; i < dumps.size(); ++i) {
    const int32_t named = names[i].rank;
    const int32_t rank = named >= 0 ? named : RankAtTheEnd(paths[i]);
    if (rank < 0) {
      unnamed.push_back(std::move(dumps[i]));
      continue;
    }
    const auto [at, fresh] = by_rank.try_emplace(rank);
    if (!fresh) {
      const bool newer = dumps[i].written_ns > at->second.written_ns;
      found.notes.push_back((newer ? at->second.path : paths[i]) +
                            ": left out, an earlier dump of the same rank");
      if (!newer) continue;
    }
    at->second = std::move(dumps[i]);
  }
  int32_t next = 0;
  for (Dump& dump : unnamed) {
    while (by_rank.contains(next)) ++next;
    found.notes.push_back(dump.path + ": its name has no rank; it is called rank " +
                          std::to_string(next));
    by_rank.emplace(next, std::move(dump));
  }
  return by_rank;
}

}  // namespace

FlightDumps TakeFlightDumps(std::vector<std::string>& files) {
  FlightDumps found;
  std::vector<Dump> dumps;
  std::erase_if(files, [&](const std::string& path) {
    File file = ReadIfDump(path);
    if (file.bytes.empty() && file.error.empty()) return false;
    if (file.error.empty()) {
      auto read = reports::ReadFlightDump(file.bytes);
      if (read) {
        dumps.push_back({path, std::move(*read), file.written_ns});
        return true;
      }
      // JSON that is no dump may be a log.
      if (file.bytes[0] != '\x80') return false;
      file.error = read.error();
    }
    found.notes.push_back(path + ": not read: " + file.error);
    return true;
  });
  for (const auto& [rank, dump] : ByRank(std::move(dumps), found)) {
    found.read.push_back(dump.path);
    found.world_size = std::max(found.world_size, rank + 1);
    for (const reports::FlightGroup& group : dump.content.groups) {
      if (!group.ranks.empty())
        found.world_size = std::max(found.world_size, group.ranks.back() + 1);
    }
    for (Event& event : reports::TellFlightDump(dump.content, rank, {}, dump.written_ns)) {
      event.rank.rank = rank;
      found.events.push_back(std::move(event));
    }
  }
  return found;
}

}  // namespace rankscope::replay
