// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/replay/log_file_set.h"

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
#include <tuple>

#include "detectors/logs/text/prefix.h"
#include "detectors/logs/text/printed_time.h"
#include "exporter/loop/owned_fd.h"
#include "exporter/replay/packed_text.h"

namespace rankscope::replay {
namespace {

constexpr size_t kLook = 64 * 1024;  // of the beginning, and of the end

// Clocks of a job's nodes agree to seconds; files that lie further apart than this tell of other
// days, or of another time zone.
constexpr int64_t kApartMs = 10 * 60 * 1000;

// What a launcher writes, and no worker does.
constexpr std::array<std::string_view, 6> kLauncherWords = {
    "elastic/multiprocessing/api.py",
    "elastic/agent/server/",
    "torch.distributed.elastic.agent.server",
    "Root Cause (first observed failure)",
    "[launch.py:",
    "torch.distributed.run"};

struct Look {
  std::string error;  // why it cannot be read
  int64_t size = 0;
  bool seekable = false;
  bool text = true;
  uint64_t hash = 0;  // of what was looked at
  int64_t first_ms = 0;
  int64_t last_ms = 0;
  bool year_known = false;
  int32_t year = 2000;
  std::set<int32_t> speakers;  // ranks that prefixes of lines name; at most kMostSpeakers
  bool launcher = false;
};
constexpr size_t kMostSpeakers = 4;

void LookAtLines(std::string_view text, logs::PrintedClock& clock, Look& look) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (const int64_t ms = clock.Advance(line); ms > 0) {
      if (look.first_ms == 0) look.first_ms = ms;
      look.last_ms = ms;
    }
    if (look.speakers.size() < kMostSpeakers) {
      const logs::Unprefixed unprefixed = logs::StripLauncherPrefixes(line);
      if (unprefixed.rank >= 0)
        look.speakers.insert(unprefixed.local_rank ? -1 - unprefixed.rank : unprefixed.rank);
    }
  }
}

uint64_t Hash(std::string_view bytes, uint64_t hash) {
  for (const char byte : bytes) hash = (hash ^ static_cast<uint8_t>(byte)) * 1099511628211ull;
  return hash;
}

// Bytes that text does not hold, more than a tenth of them.
bool LooksBinary(std::string_view bytes) {
  const auto odd = std::count_if(bytes.begin(), bytes.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x20 && byte != '\n' && byte != '\r' && byte != '\t' && byte != 0x1b &&
           byte != '\b' && byte != '\f';
  });
  return static_cast<size_t>(odd) * 10 > bytes.size();
}

// The beginning of a packed file's text; of its end nothing is known.
void LookAtPacked(std::string_view packed, Look& look) {
  std::string text(kLook, '\0');
  PackedText unpacker;
  text.resize(unpacker.Read(packed, text.data(), text.size()));
  look.text = !LooksBinary(text);
  logs::PrintedClock clock;
  LookAtLines(text, clock, look);
  for (const std::string_view word : kLauncherWords)
    look.launcher = look.launcher || text.find(word) != std::string::npos;
  look.year = clock.year();
  look.year_known = clock.year_known();
}

Look LookAt(const std::string& file) {
  Look look;
  if (file == "-") return look;
  struct stat status = {};
  if (stat(file.c_str(), &status) != 0) {
    look.error = std::strerror(errno);
    return look;
  }
  if (S_ISDIR(status.st_mode)) look.error = "is a directory";
  if (!S_ISREG(status.st_mode)) return look;  // a pipe can be read only once
  const OwnedFd fd(open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (fd.get() < 0) {
    look.error = std::strerror(errno);
    return look;
  }
  look.seekable = true;
  look.size = status.st_size;
  std::string bytes(kLook, '\0');
  logs::PrintedClock clock;
  uint64_t hash = 14695981039346656037ull;
  const int64_t tail = std::max<int64_t>(kLook, look.size - static_cast<int64_t>(kLook));
  for (const int64_t at : {int64_t{0}, tail}) {
    if (at >= look.size && at > 0) break;
    const ssize_t size = pread(fd.get(), bytes.data(), bytes.size(), at);
    if (size < 0) {
      look.error = std::strerror(errno);
      return look;
    }
    const std::string_view seen(bytes.data(), static_cast<size_t>(size));
    hash = Hash(seen, hash);
    if (at == 0 && PackerOf(seen) == "gzip") {
      look.hash = hash;
      LookAtPacked(seen, look);
      return look;
    }
    if (at == 0) look.text = !LooksBinary(seen);
    LookAtLines(seen, clock, look);
    for (const std::string_view word : kLauncherWords)
      look.launcher = look.launcher || seen.find(word) != std::string_view::npos;
  }
  look.hash = hash;
  look.year = clock.year();
  look.year_known = clock.year_known();
  return look;
}

// The file's own lines know better than its name: several speakers, or another one, and the number
// is a node's; a launcher speaks for no rank.
void Contradict(const Look& look, LogName& name) {
  if (look.launcher && name.restart < 0) name = {};
  if (look.speakers.empty()) return;
  const int32_t speaker = *look.speakers.begin();
  if (look.speakers.size() == 1 && (speaker == name.rank || speaker == -1 - name.local_rank))
    return;
  const bool of_worker = name.restart >= 0 && look.speakers.size() == 1 && speaker >= 0;
  name.rank = of_worker ? speaker : -1;
  if (!of_worker) name.local_rank = -1;
}

// Files whose times overlap those of the one that spans most.
void CompareTimes(const std::vector<Look>& looks, std::vector<size_t> members,
                  std::vector<JobLog>& logs) {
  size_t longest = members.front();
  const auto span = [&looks](size_t i) { return looks[i].last_ms - looks[i].first_ms; };
  for (const size_t i : members) {
    if (looks[i].first_ms > 0 && (looks[longest].first_ms == 0 || span(i) > span(longest)))
      longest = i;
  }
  const Look& reference = looks[longest];
  if (reference.first_ms == 0) return;
  for (const size_t i : members) {
    logs[i].timed = looks[i].first_ms > 0 && looks[i].first_ms <= reference.last_ms + kApartMs &&
                    looks[i].last_ms >= reference.first_ms - kApartMs;
  }
}

}  // namespace

JobLogSet ArrangeLogs(std::span<const std::string> files) {
  JobLogSet set;
  std::vector<JobLog> logs;
  std::vector<Look> looks;
  const std::vector<LogName> names = NameLogs(files);
  int32_t year = 2000;
  std::map<std::tuple<int64_t, uint64_t>, size_t> same;  // size and hash -> index in logs
  for (size_t i = 0; i < files.size(); ++i) {
    Look look = LookAt(files[i]);
    if (!look.error.empty()) {
      set.unreadable.push_back(files[i] + ": " + look.error);
      continue;
    }
    if (look.size > 0 && !look.text && files.size() > 1) {
      set.notes.push_back(files[i] + ": left out, it holds no text");
      continue;
    }
    // Two ranks do not print the same bytes at the same times: one file under two names.
    if (look.seekable && look.size > 0 && look.first_ms > 0) {
      const auto [at, fresh] = same.try_emplace({look.size, look.hash}, logs.size());
      if (!fresh) {
        set.notes.push_back(files[i] + ": left out, the same bytes as " + logs[at->second].file);
        logs[at->second].name = {};
        continue;
      }
    }
    JobLog& log = logs.emplace_back();
    log.file = files[i];
    log.name = names[i];
    Contradict(look, log.name);
    if (look.year_known) year = std::max(year, look.year);
    looks.push_back(std::move(look));
  }
  std::map<int32_t, std::vector<size_t>> by_restart;
  std::set<int32_t> ranks;
  for (size_t i = 0; i < logs.size(); ++i) {
    logs[i].year = year;
    by_restart[logs[i].name.restart].push_back(i);
    if (logs[i].name.rank >= 0) ranks.insert(logs[i].name.rank);
  }
  set.ranks = static_cast<int32_t>(ranks.size());
  // Dates without a year were looked at with a wrong one.
  for (size_t i = 0; i < logs.size(); ++i) {
    if (looks[i].first_ms == 0 || looks[i].year_known || looks[i].year == year) continue;
    logs::PrintedClock was(looks[i].year), is(year);
    const int64_t shift = is.Advance("E0101 00:00:00") - was.Advance("E0101 00:00:00");
    looks[i].first_ms += shift;
    looks[i].last_ms += shift;
  }
  for (const auto& [restart, members] : by_restart) CompareTimes(looks, members, logs);
  // Earlier attempts first; the launcher's own text, which tells of all of them, at the end. Of one
  // attempt first what has no time and no rank, then all with times, then the others.
  const auto key = [](const JobLog& log) {
    const int32_t attempt = log.name.restart < 0 ? INT32_MAX : log.name.restart;
    const bool ranked = log.name.rank >= 0 || log.name.local_rank >= 0;
    return std::pair(attempt, log.timed ? 1 : ranked ? 2 : 0);
  };
  std::stable_sort(logs.begin(), logs.end(),
                   [&key](const JobLog& a, const JobLog& b) { return key(a) < key(b); });
  const auto timed =
      std::count_if(logs.begin(), logs.end(), [](const JobLog& log) { return log.timed; });
  if (logs.size() > 1 && timed < static_cast<int64_t>(logs.size())) {
    set.notes.push_back("who was first cannot be told from times for " +
                        std::to_string(static_cast<int64_t>(logs.size()) - timed) + " of " +
                        std::to_string(logs.size()) +
                        " files: their lines print none that compare");
  }
  set.logs = std::move(logs);
  return set;
}

}  // namespace rankscope::replay
