// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/nccl/nccl_dump_reader.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <string_view>
#include <utility>

#include "detectors/reports/digest.h"
#include "exporter/processes/root_process.h"

namespace rankscope::collectors {
namespace {

// 20,000 operations with their frames; PyTorch keeps 2,000 unless told otherwise.
constexpr int64_t kMaxDump = int64_t{48} << 20;
constexpr size_t kMaxInspectorPiece = size_t{4} << 20;  // read at one look
constexpr size_t kMaxInspectorFiles = 256;              // of one folder
// A dump stands in memory while it is read, and a user may have many: so many at once, of all
// users.
constexpr int kMaxLargeAtOnce = 4;
constexpr int64_t kLarge = int64_t{1} << 20;
constexpr size_t kMaxRefused = 64;  // paths of one rank

// Of a running job's Inspector log, which grows all the time, one digest in so many looks.
constexpr int64_t kInspectorLooks = 30;

// Names that PyTorch's releases have given the dump where nothing else is said, before the rank.
constexpr std::string_view kDefaultNames[] = {"nccl_trace_rank_", "comm_lib_trace_rank_"};

std::vector<std::string> FlightPaths(const RankProcess& rank) {
  std::vector<std::string> prefixes;
  for (const std::string_view key :
       {"TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE"}) {
    if (const std::string_view value = rank.Variable(key); !value.empty())
      prefixes.emplace_back(value);
  }
  if (prefixes.empty()) {
    std::string cache(rank.Variable("XDG_CACHE_HOME"));
    if (const std::string_view home = rank.Variable("HOME"); cache.empty() && !home.empty())
      cache = std::string(home) + "/.cache";
    for (const std::string_view name : kDefaultNames) {
      prefixes.push_back("/tmp/" + std::string(name));
      if (!cache.empty()) prefixes.push_back(cache + "/torch/" + std::string(name));
    }
  }
  std::vector<std::string> paths;
  paths.reserve(prefixes.size());
  for (const std::string& prefix : prefixes) paths.push_back(prefix + std::to_string(rank.rank));
  return paths;
}

bool IsSameFile(int a, int b) {
  struct stat one {
  }, other{};
  return fstat(a, &one) == 0 && fstat(b, &other) == 0 && one.st_dev == other.st_dev &&
         one.st_ino == other.st_ino;
}

// One of the places for large dumps, if there is one.
class LargePlace {
 public:
  explicit LargePlace(int64_t size) : wanted_(size > kLarge) {
    if (!wanted_) return;
    had_ = count_.fetch_add(1) < kMaxLargeAtOnce;
    if (!had_) count_.fetch_sub(1);
  }
  ~LargePlace() {
    if (had_) count_.fetch_sub(1);
  }
  LargePlace(const LargePlace&) = delete;
  LargePlace& operator=(const LargePlace&) = delete;
  explicit operator bool() const { return !wanted_ || had_; }

 private:
  static inline std::atomic<int> count_ = 0;
  bool wanted_;
  bool had_ = false;
};

class Looker {
 public:
  Looker(const std::string& proc_root, DumpLook& look, DumpBudget& budget)
      : proc_root_(proc_root),
        look_(look),
        budget_(budget),
        mounts_(proc_root, look.process.tracked.key.pid) {}

  void Run() {
    if (!Begin()) return;
    LookFlight();
    LookInspector();
    ++look_.dumps.looks;
  }

 private:
  // Whether paths of this rank can be walked by its user's rights.
  bool Begin() {
    const ProcessKey& key = look_.process.tracked.key;
    OwnedFd ours(open("/", O_PATH | O_CLOEXEC));
    if (look_.gone) {
      if (!look_.dumps.sees_our_root) return false;
      start_.root = std::move(ours);
    } else {
      look_.other_user = exporter::ReadIdentity(proc_root_, key) != look_.who;
      if (look_.other_user) return false;
      start_.root = exporter::OpenProcessLink(proc_root_, key.pid, "root");
      start_.working_directory = exporter::OpenProcessLink(proc_root_, key.pid, "cwd");
      if (!start_.root) return false;
      look_.dumps.sees_our_root = IsSameFile(start_.root.get(), ours.get());
    }
    if (look_.who.uid != 0) return true;
    if (!look_.dumps.roots_own && !look_.gone) look_.dumps.roots_own = IsRootsOwn(proc_root_, key);
    return look_.dumps.roots_own.value_or(false);
  }

  // Nothing: there is none, or none to read.
  std::optional<DumpFile> Find(const std::string& path) {
    if (!path.starts_with('/') && !start_.working_directory) return std::nullopt;
    auto file = DumpFile::Find(start_, path, look_.who.uid, mounts_);
    if (file) return std::move(file).value();
    if (file.error().empty()) return std::nullopt;
    auto& refused = look_.dumps.refused;
    if (refused.size() < kMaxRefused && refused.insert(path).second) ++look_.lost;
    return std::nullopt;
  }

  void LookFlight() {
    for (const std::string& path : FlightPaths(look_.process)) {
      const auto file = Find(path);
      if (!file) continue;
      const FileStamp& stamp = file->stamp();
      // Of an earlier run, or of this one's earlier attempt.
      if (stamp.changed_ns < look_.process.begin_wall_s * 1'000'000'000) continue;
      RankDumps::Flight& flight = look_.dumps.flights[path];
      const bool settled = look_.gone || stamp == std::exchange(flight.seen, stamp);
      if (!settled || stamp == flight.told || stamp.size == 0) continue;
      if (stamp.size > kMaxDump) {
        flight.told = stamp;
        ++look_.lost;
        continue;
      }
      const LargePlace place(stamp.size);
      // At the next look; of a process that has gone there is none.
      if (!place || stamp.size > budget_.bytes) {
        if (look_.gone) ++look_.lost;
        continue;
      }
      budget_.bytes -= stamp.size;
      flight.told = stamp;
      const auto bytes = file->Read(0, static_cast<size_t>(kMaxDump));
      const auto dump = bytes ? reports::ReadFlightDump(*bytes)
                              : Result<reports::FlightDump>(Error{bytes.error()});
      if (!dump) {
        ++look_.lost;
        continue;
      }
      Take(reports::TellFlightDump(*dump, look_.process.rank, look_.process.tracked.key,
                                   stamp.changed_ns));
    }
  }

  void LookInspector() {
    const RankProcess& process = look_.process;
    if (!look_.gone && look_.dumps.looks % kInspectorLooks != 0) return;
    if (process.Variable("NCCL_INSPECTOR_ENABLE").empty() ||
        process.Variable("NCCL_INSPECTOR_ENABLE") == "0" ||
        process.Variable("NCCL_INSPECTOR_PROM_DUMP") == "1") {
      return;
    }
    std::string folder(process.Variable("NCCL_INSPECTOR_DUMP_DIR"));
    if (folder.empty()) {
      const std::string_view job = process.Variable("SLURM_JOB_ID");
      folder = "nccl-inspector-" + (job.empty() ? "unknown-jobid" : std::string(job));
    }
    if (!folder.starts_with('/') && !start_.working_directory) return;
    // Its files carry the process's own pid in their name; who wrote a record, the record says.
    const std::string own = "pid" + std::to_string(process.tracked.key.pid);
    for (const std::string& name : ListFolder(start_, folder, kMaxInspectorFiles, mounts_)) {
      const size_t at = name.find(own);
      if (at == std::string::npos || name.find(".log") == std::string::npos) continue;
      const char next = at + own.size() < name.size() ? name[at + own.size()] : '.';
      if (next >= '0' && next <= '9') continue;  // a longer number
      ReadLog(folder + '/' + name);
    }
  }

  void ReadLog(const std::string& path) {
    const auto file = Find(path);
    if (!file) return;
    RankDumps::Log& log = look_.dumps.logs[path];
    if (file->stamp() == log.seen || budget_.bytes < static_cast<int64_t>(kMaxInspectorPiece))
      return;
    log.seen = file->stamp();
    // Of a log that has run far ahead the newest part tells; the rest is passed over.
    const int64_t begin =
        std::max(log.told, file->stamp().size - static_cast<int64_t>(kMaxInspectorPiece));
    const auto text = file->Read(begin, kMaxInspectorPiece);
    if (!text) return;
    budget_.bytes -= static_cast<int64_t>(text->size());
    size_t used = 0;
    Take(reports::TellInspectorLines(*text, look_.process.tracked.key, used));
    log.told = begin + static_cast<int64_t>(used);
  }

  void Take(std::vector<Event> events) {
    look_.events.insert(look_.events.end(), std::make_move_iterator(events.begin()),
                        std::make_move_iterator(events.end()));
  }

  const std::string& proc_root_;
  DumpLook& look_;
  DumpBudget& budget_;
  exporter::UserMounts mounts_;
  PathStart start_;
};

}  // namespace

void LookAtDumps(const std::string& proc_root, DumpLook& look, DumpBudget& budget) {
  Looker(proc_root, look, budget).Run();
}

}  // namespace rankscope::collectors
