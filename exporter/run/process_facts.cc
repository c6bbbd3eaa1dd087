// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/run/process_facts.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>

#include "detectors/attribution/cgroup_path.h"
#include "detectors/attribution/environment_keys.h"
#include "detectors/logs/text/redactor.h"
#include "exporter/loop/small_file.h"

namespace rankscope::run {
namespace {

std::string ProcPath(int pid, const char* file) {
  return "/proc/" + std::to_string(pid) + "/" + file;
}

// "NSpid:\t4711\t12" -> {4711, 12}
std::vector<int32_t> ParseNamespacePids(std::string_view status) {
  std::vector<int32_t> pids;
  const size_t at = status.find("\nNSpid:");
  if (at == std::string_view::npos) return pids;
  std::string_view rest = status.substr(at + 7);
  rest = rest.substr(0, rest.find('\n'));
  while (!rest.empty()) {
    const size_t digit = rest.find_first_of("0123456789");
    if (digit == std::string_view::npos) break;
    rest.remove_prefix(digit);
    int32_t pid = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), pid);
    if (error == std::errc()) pids.push_back(pid);
    rest.remove_prefix(static_cast<size_t>(end - rest.data()));
  }
  return pids;
}

std::string BaseName(std::string_view path) {
  return std::string(path.substr(path.rfind('/') + 1));
}

}  // namespace

uint32_t OuterUser(std::string_view map, uint32_t uid) {
  // Lines of three numbers: the first inside, the first outside, how many.
  while (!map.empty()) {
    std::string_view line = map.substr(0, map.find('\n'));
    map.remove_prefix(std::min(line.size() + 1, map.size()));
    std::array<uint64_t, 3> numbers{};
    size_t known = 0;
    for (; known < numbers.size(); ++known) {
      line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
      const auto [end, error] =
          std::from_chars(line.data(), line.data() + line.size(), numbers[known]);
      if (error != std::errc()) break;
      line.remove_prefix(static_cast<size_t>(end - line.data()));
    }
    const auto [inside, outside, count] = numbers;
    if (known == numbers.size() && uid >= inside && uid - inside < count)
      return static_cast<uint32_t>(outside + (uid - inside));
  }
  return uid;
}

uint32_t ReadOuterUser() {
  return OuterUser(ReadSmallFile("/proc/self/uid_map"), getuid());
}

std::string ReadBootId() {
  std::string id = ReadSmallFile("/proc/sys/kernel/random/boot_id");
  while (!id.empty() && id.back() == '\n') id.pop_back();
  return id;
}

std::string ReadHostName() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return {};
  return name.data();
}

int64_t ParseStartTicks(std::string_view stat) {
  const size_t close = stat.rfind(')');
  if (close == std::string_view::npos) return 0;
  std::string_view rest = stat.substr(close + 1);
  // After the name comes field 3; field 22 is the twentieth word.
  for (int field = 3; field < 22; ++field) {
    const size_t space = rest.find(' ', 1);
    if (space == std::string_view::npos) return 0;
    rest.remove_prefix(space);
  }
  rest.remove_prefix(rest.starts_with(' ') ? 1 : 0);
  int64_t ticks = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), ticks);
  return error == std::errc() ? ticks : 0;
}

ProcessKey ReadProcessKey(int pid) {
  return {pid, ParseStartTicks(ReadSmallFile(ProcPath(pid, "stat")))};
}

std::vector<std::string> RedactArguments(char* const* argv) {
  std::vector<std::string> masked;
  for (; *argv != nullptr; ++argv) masked.emplace_back(*argv);
  logs::RedactArguments(masked);
  return masked;
}

std::vector<KeyValue> AllowedEnvironment(char* const* environment) {
  std::vector<KeyValue> allowed;
  for (; *environment != nullptr; ++environment) {
    const std::string_view entry = *environment;
    const size_t equals = entry.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view key = entry.substr(0, equals);
    if (!attribution::IsAllowedEnvironmentKey(key)) continue;
    allowed.push_back({std::string(key), logs::RedactValue(key, entry.substr(equals + 1))});
  }
  return allowed;
}

std::string_view EnvironmentValue(char* const* environment, std::string_view key) {
  for (; *environment != nullptr; ++environment) {
    const std::string_view entry = *environment;
    if (entry.size() > key.size() && entry[key.size()] == '=' && entry.starts_with(key)) {
      return entry.substr(key.size() + 1);
    }
  }
  return {};
}

ProcessStart DescribeChild(const ProcessKey& key, const std::string& job_id, char* const* argv,
                           char* const* environment) {
  ProcessStart start;
  start.key = key;
  start.parent = ReadProcessKey(getpid());
  start.uid = getuid();
  start.comm = BaseName(argv[0]).substr(0, 15);
  start.argv = RedactArguments(argv);
  start.env = AllowedEnvironment(environment);
  start.cgroup = attribution::CarriedCgroup(ReadSmallFile("/proc/self/cgroup"));
  start.ns_pids = ParseNamespacePids(ReadSmallFile(ProcPath(key.pid, "status")));
  start.complete = true;
  start.job_id = job_id;
  return start;
}

}  // namespace rankscope::run
