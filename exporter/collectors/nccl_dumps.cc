// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/collectors/nccl_dumps.h"

#include <dirent.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "exporter/collectors/dump_file.h"
#include "exporter/collectors/nccl_digest.h"
#include "exporter/collectors/rank_roster.h"

namespace rankscope::collectors {
namespace {

constexpr Duration kLookDeadline = Seconds(20);

// 20,000 operations with their frames; PyTorch keeps 2,000 unless told otherwise.
constexpr int64_t kMaxDump = int64_t{48} << 20;
constexpr size_t kMaxInspectorPiece = size_t{4} << 20;  // read at one look
constexpr int kMaxInspectorFiles = 256;                 // of one folder
// 300 bytes each; a job's facts have 8 MiB in its recording.
constexpr int64_t kMaxEventsPerJob = 8192;
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
  for (const std::string& prefix : prefixes) paths.push_back(prefix + std::to_string(rank.rank));
  return paths;
}

}  // namespace

// What the worker keeps from look to look.
struct NcclDumps::Reader {
  explicit Reader(std::string proc_root) : roster(std::move(proc_root)) {}

  struct Flight {
    FileStamp seen, told;
  };
  struct Log {  // of Inspector
    FileStamp seen;
    int64_t told = 0;  // bytes
  };
  struct Rank {
    std::map<std::string, Flight> flights;  // by path
    std::map<std::string, Log> logs;
    int64_t looks = 0;
  };

  Found Run(const std::vector<TrackedProcess>& tracked) {
    Found found;
    roster.Update(tracked);
    for (const auto& [pid, process] : roster.ranks()) {
      Rank& rank = ranks[process.tracked.key];
      LookFlight(process, rank, false, found);
      LookInspector(process, rank, false, found);
      ++rank.looks;
    }
    for (const RankProcess& process : roster.departed()) {
      const auto known = ranks.find(process.tracked.key);
      if (known == ranks.end()) continue;
      LookFlight(process, known->second, true, found);
      LookInspector(process, known->second, true, found);
      ranks.erase(known);
    }
    std::set<std::string> groups;
    for (const auto& [pid, process] : roster.ranks()) groups.insert(process.group);
    std::erase_if(budgets, [&](const auto& entry) { return !groups.contains(entry.first); });
    found.lost = lost;
    return found;
  }

  // The folder that this rank's absolute paths begin at; nothing where it cannot be told any more.
  std::optional<std::string> RootOf(const RankProcess& process, bool gone) const {
    if (process.mount_namespace == roster.own_mount_namespace()) return std::string();
    if (gone || process.mount_namespace == 0) return std::nullopt;
    return roster.proc_root() + '/' + std::to_string(process.tracked.key.pid) + "/root";
  }

  // As DumpFile wants it: a relative path begins at the process's working directory.
  std::optional<std::pair<std::string, std::string>> Place(const RankProcess& process,
                                                           const std::string& path,
                                                           bool gone) const {
    if (!path.empty() && path[0] == '/') {
      const auto root = RootOf(process, gone);
      return root ? std::optional(std::pair(*root, path)) : std::nullopt;
    }
    if (gone) return std::nullopt;
    return std::pair(roster.proc_root() + '/' + std::to_string(process.tracked.key.pid) + "/cwd/",
                     path);
  }

  // Nothing: there is none, or none to read.
  std::optional<DumpFile> Find(const RankProcess& process, const std::string& path, bool gone) {
    const auto place = Place(process, path, gone);
    if (!place) return std::nullopt;
    auto file = DumpFile::Find(place->first, place->second, process.tracked.uid);
    if (file) return std::move(file).value();
    if (!file.error().empty() && refused.size() < kMaxRefused &&
        refused.insert({process.tracked.key, path}).second) {
      ++lost;
    }
    return std::nullopt;
  }

  void LookFlight(const RankProcess& process, Rank& rank, bool gone, Found& found) {
    for (const std::string& path : FlightPaths(process)) {
      const auto file = Find(process, path, gone);
      if (!file) continue;
      const FileStamp& stamp = file->stamp();
      // Of an earlier run, or of this one's earlier attempt.
      if (stamp.changed_ns < process.begin_wall_s * 1'000'000'000) continue;
      Flight& flight = rank.flights[path];
      const bool settled = gone || stamp == std::exchange(flight.seen, stamp);
      if (!settled || stamp == flight.told || stamp.size == 0) continue;
      flight.told = stamp;
      if (stamp.size > kMaxDump) {
        ++lost;
        continue;
      }
      const auto bytes = file->Read(0, static_cast<size_t>(kMaxDump));
      const auto dump = bytes ? reports::ReadFlightDump(*bytes)
                              : Result<reports::FlightDump>(Error{bytes.error()});
      if (!dump) {
        ++lost;
        continue;
      }
      Take(process, TellFlightDump(*dump, process.rank, process.tracked.key, stamp.changed_ns),
           found);
    }
  }

  void LookInspector(const RankProcess& process, Rank& rank, bool gone, Found& found) {
    if (!gone && rank.looks % kInspectorLooks != 0) return;
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
    // Its files carry the process's own pid in their name; who wrote a record, the record says.
    const auto place = Place(process, folder, gone);
    if (!place) return;
    const std::unique_ptr<DIR, int (*)(DIR*)> directory(
        opendir((place->first + place->second).c_str()), closedir);
    if (!directory) return;
    const std::string own = "pid" + std::to_string(process.tracked.key.pid);
    for (int i = 0; i < kMaxInspectorFiles; ++i) {
      const dirent* entry = readdir(directory.get());
      if (entry == nullptr) break;
      const std::string_view name(entry->d_name);
      const size_t at = name.find(own);
      if (at == std::string_view::npos || name.find(".log") == std::string_view::npos) continue;
      const std::string_view rest = name.substr(at + own.size());
      if (!rest.empty() && rest[0] >= '0' && rest[0] <= '9') continue;  // a longer number
      ReadLog(process, rank, folder + '/' + std::string(name), gone, found);
    }
  }

  void ReadLog(const RankProcess& process, Rank& rank, const std::string& path, bool gone,
               Found& found) {
    const auto file = Find(process, path, gone);
    if (!file) return;
    Log& log = rank.logs[path];
    if (file->stamp() == log.seen) return;
    log.seen = file->stamp();
    // Of a log that has run far ahead the newest part tells; the rest is passed over.
    const int64_t begin =
        std::max(log.told, file->stamp().size - static_cast<int64_t>(kMaxInspectorPiece));
    const auto text = file->Read(begin, kMaxInspectorPiece);
    if (!text) return;
    size_t used = 0;
    Take(process, TellInspectorLines(*text, process.tracked.key, used), found);
    log.told = begin + static_cast<int64_t>(used);
  }

  void Take(const RankProcess& process, std::vector<Event> events, Found& found) {
    int64_t& spent = budgets[process.group];
    for (Event& event : events) {
      if (spent >= kMaxEventsPerJob) {
        ++lost;
        continue;
      }
      ++spent;
      found.events.push_back(std::move(event));
    }
  }

  static constexpr size_t kMaxRefused = 1024;
  RankRoster roster;
  std::map<ProcessKey, Rank> ranks;
  std::map<std::string, int64_t> budgets;  // events told, by job
  std::set<std::pair<ProcessKey, std::string>> refused;
  int64_t lost = 0;
};

NcclDumps::NcclDumps(std::shared_ptr<ProcessTable> table, Duration interval, std::string proc_root)
    : table_(std::move(table)), interval_(interval), proc_root_(std::move(proc_root)) {}

NcclDumps::~NcclDumps() {
  Stop();
}

Status NcclDumps::Start(exporter::EventLoop& loop, Sink& sink) {
  loop_ = &loop;
  sink_ = &sink;
  reader_ = std::make_shared<Reader>(proc_root_);
  worker_ = std::make_unique<exporter::Worker>(loop);
  timer_ = loop.Every(interval_, [this] { Look(); });
  return {};
}

void NcclDumps::Stop() {
  if (loop_ == nullptr) return;
  loop_->Cancel(timer_);
  worker_.reset();
  loop_ = nullptr;
}

void NcclDumps::Look() {
  if (worker_->pending() > 0) return;  // the last look is still under way
  std::vector<TrackedProcess> tracked;
  tracked.reserve(table_->processes().size());
  for (const auto& [pid, process] : table_->processes()) tracked.push_back(process);
  const bool submitted = worker_->Submit(
      [this, reader = reader_, tracked = std::move(tracked)]() -> std::function<void()> {
        return [this, found = reader->Run(tracked)]() mutable {
          if (std::exchange(late_, false)) {
            SourceState state;
            state.state = Availability::kUp;
            Tell(std::move(state));
          }
          lost_ = found.lost;
          for (Event& event : found.events) Tell(std::move(event));
        };
      },
      kLookDeadline,
      [this] {
        late_ = true;
        SourceState state;
        state.state = Availability::kDown;
        state.reason =
            "looking for dumps does not return: the file system that a rank names for them hangs";
        Tell(std::move(state));
      });
  if (!submitted) return;  // cannot be: nothing was pending
}

void NcclDumps::Tell(auto kind) {
  Observation observation;
  observation.kind = std::move(kind);
  sink_->Accept(observation);
}

}  // namespace rankscope::collectors
