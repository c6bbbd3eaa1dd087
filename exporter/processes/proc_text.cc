// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/processes/proc_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include "detectors/attribution/cgroup_path.h"

namespace rankscope::collectors {
namespace {

bool IsDigits(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

template <typename T>
std::optional<T> ParseNumber(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string_view Trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\n");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\n") - begin + 1);
}

// Takes the text up to `separator` off the front.
std::string_view TakeUntil(std::string_view& rest, char separator) {
  const size_t at = rest.find(separator);
  const std::string_view taken = rest.substr(0, at);
  rest = at == std::string_view::npos ? std::string_view() : rest.substr(at + 1);
  return taken;
}

std::optional<std::string_view> FindValue(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const std::string_view line = TakeUntil(text, '\n');
    if (line.substr(0, key.size()) != key || line.size() == key.size()) continue;
    const char next = line[key.size()];
    if (next == ' ' || next == ':' || next == '\t') return Trim(line.substr(key.size() + 1));
  }
  return std::nullopt;
}

// Set by who starts a rank: torchrun and friends, Open MPI, PMIx, Slurm.
constexpr std::array<std::string_view, 6> kRankKeys = {
    "RANK",      "WORLD_SIZE",          "SLURM_JOB_ID", "OMPI_COMM_WORLD_RANK",
    "PMIX_RANK", "TORCHELASTIC_RUN_ID",
};

constexpr size_t kMaxIdDigits = 10;  // Slurm's ids have 32 bits

}  // namespace

std::optional<StatLine> ParseStat(std::string_view text) {
  // "PID (COMM) S PPID ...": the name may hold spaces, parentheses and newlines, so it ends at the
  // *last* ')'.
  const size_t open = text.find('(');
  const size_t close = text.rfind(')');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) {
    return std::nullopt;
  }
  const auto pid = ParseNumber<int32_t>(Trim(text.substr(0, open)));
  if (!pid || *pid <= 0) return std::nullopt;

  // Fields 3 (state) to 52 (exit_code), by their number in proc(5).
  std::array<std::string_view, 53> field{};
  std::string_view rest = Trim(text.substr(close + 1));
  size_t count = 3;
  for (; count < field.size() && !rest.empty(); ++count) field[count] = TakeUntil(rest, ' ');
  if (count <= 24 || field[3].size() != 1) return std::nullopt;

  const auto parent = ParseNumber<int32_t>(field[4]);
  const auto user = ParseNumber<int64_t>(field[14]);
  const auto system = ParseNumber<int64_t>(field[15]);
  const auto threads = ParseNumber<int64_t>(field[20]);
  const auto start = ParseNumber<int64_t>(field[22]);
  const auto resident = ParseNumber<int64_t>(field[24]);
  if (!parent || !user || !system || !threads || !start || !resident) return std::nullopt;
  StatLine stat;
  stat.pid = *pid;
  stat.comm = text.substr(open + 1, close - open - 1);
  stat.state = field[3][0];
  stat.parent = *parent;
  stat.cpu_ticks = *user + *system;
  stat.threads = *threads;
  stat.start_ticks = *start;
  stat.resident_pages = *resident;
  stat.exit_code = ParseNumber<int32_t>(field[52]).value_or(0);
  return stat;
}

std::vector<std::string> ParseArguments(std::string_view bytes) {
  std::vector<std::string> arguments;
  if (!bytes.empty() && bytes.back() == '\0') bytes.remove_suffix(1);
  while (!bytes.empty() && arguments.size() < kMaxArguments) {
    arguments.emplace_back(TakeUntil(bytes, '\0').substr(0, kMaxArgumentBytes));
  }
  return arguments;
}

Environment ParseEnvironment(std::string_view bytes, KeepKey keep) {
  Environment environment;
  while (!bytes.empty()) {
    std::string_view entry = TakeUntil(bytes, '\0');
    const size_t equals = entry.find('=');
    if (equals == std::string_view::npos || equals == 0) continue;
    const std::string_view key = entry.substr(0, equals);
    const std::string_view value = entry.substr(equals + 1);
    if (std::find(kRankKeys.begin(), kRankKeys.end(), key) != kRankKeys.end() && !value.empty()) {
      environment.ranked = true;
    }
    if (key == "TORCHELASTIC_RUN_ID" || key == "OMPI_COMM_WORLD_RANK") {
      environment.from_launcher = true;
    }
    // Slurm 22.05 leaves this one in the environment of every task that had a TaskProlog.
    if (key == "SLURM_SCRIPT_CONTEXT" && value != "prolog_task") environment.slurm_script = true;
    if (key == "SLURM_JOB_ID" && IsDigits(value) && value.size() <= kMaxIdDigits &&
        environment.slurm_job_id.empty()) {
      environment.slurm_job_id = value;
    }
    if (environment.kept.size() < kMaxKept && keep(key)) {
      environment.kept.push_back({std::string(key), std::string(value.substr(0, kMaxValueBytes))});
    }
  }
  return environment;
}

std::optional<StatusFacts> ParseStatus(std::string_view text) {
  const auto uids = FindValue(text, "Uid");
  if (!uids) return std::nullopt;
  const auto uid = ParseNumber<uint32_t>(uids->substr(0, uids->find_first_of("\t ")));
  if (!uid) return std::nullopt;
  StatusFacts facts;
  facts.uid = *uid;
  if (auto ns_pids = FindValue(text, "NSpid")) {
    while (!ns_pids->empty()) {
      if (const auto pid = ParseNumber<int32_t>(Trim(TakeUntil(*ns_pids, '\t')))) {
        facts.ns_pids.push_back(*pid);
      }
    }
  }
  return facts;
}

std::optional<IoCounters> ParseIo(std::string_view text) {
  const auto read = FindNumber(text, "read_bytes");
  const auto written = FindNumber(text, "write_bytes");
  if (!read || !written) return std::nullopt;
  return IoCounters{*read, *written};
}

CgroupPaths ParseCgroup(std::string_view text) {
  CgroupPaths paths;
  while (!text.empty()) {
    std::string_view path = TakeUntil(text, '\n');
    const std::string_view hierarchy = TakeUntil(path, ':');
    std::string_view controllers = TakeUntil(path, ':');
    if (path.empty() || path[0] != '/') continue;
    if (hierarchy == "0" && controllers.empty()) paths.unified = path;
    while (!controllers.empty()) {
      const std::string_view controller = TakeUntil(controllers, ',');
      if (controller == "memory") paths.memory = path;
      if (controller == "devices") paths.devices = path;
      if (controller == "freezer") paths.freezer = path;
      if (controller == "cpu") paths.cpu = path;
    }
  }
  return paths;
}

// FREEZING: some of it still moves.
std::optional<bool> ParseFrozen(std::string_view text, bool v1) {
  if (v1) {
    const std::string_view state = TakeUntil(text, '\n');
    if (state != "FROZEN" && state != "FREEZING" && state != "THAWED") return std::nullopt;
    return state == "FROZEN";
  }
  const auto frozen = FindNumber(text, "frozen");
  return frozen ? std::optional<bool>(*frozen == 1) : std::nullopt;
}

std::optional<double> ParseCpuQuota(std::string_view text) {
  std::string_view period = Trim(text);
  const auto quota = ParseNumber<int64_t>(Trim(TakeUntil(period, ' ')));  // "max", -1: no limit
  const auto length = ParseNumber<int64_t>(Trim(period));
  if (!quota || !length || *quota <= 0 || *length <= 0) return std::nullopt;
  return static_cast<double>(*quota) / static_cast<double>(*length);
}

// "c 195:0 rwm"; Documentation/admin-guide/cgroup-v1/devices.rst. 195 is the driver's major number,
// its control nodes have the highest minor ones (nvidia-modeset 254, nvidiactl 255).
std::vector<int32_t> ParseGpuDevices(std::string_view text) {
  constexpr int32_t kFirstControl = 248;
  constexpr size_t kMost = 64;
  std::vector<int32_t> minors;
  while (!text.empty()) {
    std::string_view device = TakeUntil(text, '\n');
    const std::string_view type = TakeUntil(device, ' ');
    const std::string_view major = TakeUntil(device, ':');
    const std::string_view minor = TakeUntil(device, ' ');
    const bool opens = device.find_first_of("rw") != std::string_view::npos;  // "m": only makes it
    if ((type != "a" && type != "c") || !opens) continue;
    if (type == "a" || major == "*") return {};
    if (major != "195") continue;
    if (minor == "*") return {};
    int32_t number = 0;
    const auto [end, error] = std::from_chars(minor.data(), minor.data() + minor.size(), number);
    if (error != std::errc() || end != minor.data() + minor.size() || number < 0) continue;
    if (number < kFirstControl && minors.size() < kMost) minors.push_back(number);
  }
  std::sort(minors.begin(), minors.end());
  minors.erase(std::unique(minors.begin(), minors.end()), minors.end());
  return minors;
}

std::string_view JobCgroup(std::string_view path) {
  for (size_t at = path.find("/job_"); at != std::string_view::npos;
       at = path.find("/job_", at + 1)) {
    const size_t end = std::min(path.find('/', at + 1), path.size());
    if (IsDigits(path.substr(at + 5, end - at - 5))) return path.substr(0, end);
  }
  const std::string_view by_sluid = attribution::SluidDirectory(path);
  return by_sluid.empty() ? path : by_sluid;
}

std::optional<int64_t> FindNumber(std::string_view text, std::string_view key) {
  auto value = FindValue(text, key);
  if (!value) return std::nullopt;
  const auto number = ParseNumber<int64_t>(TakeUntil(*value, ' '));
  if (!number) return std::nullopt;
  if (*value != "kB") return number;
  return *number > std::numeric_limits<int64_t>::max() / 1024 ? std::nullopt
                                                              : std::optional(*number * 1024);
}

std::optional<int64_t> ParseLimit(std::string_view text) {
  const auto limit = ParseNumber<int64_t>(Trim(text));
  constexpr int64_t kNoLimit = int64_t{1} << 62;
  if (!limit || *limit >= kNoLimit) return std::nullopt;
  return limit;
}

bool IsGpuDevice(std::string_view link) {
  constexpr std::string_view kPrefix = "/dev/nvidia";
  return link.substr(0, kPrefix.size()) == kPrefix && IsDigits(link.substr(kPrefix.size()));
}

}  // namespace rankscope::collectors
