// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/loop/user_identity.h"

#include <algorithm>
#include <charconv>

#include "exporter/loop/small_file.h"

namespace rankscope::exporter {
namespace {

// NGROUPS_MAX (65,536) groups of ten digits would be 700 kB; nobody is in more than some hundred.
constexpr size_t kIds = 4;  // real, effective, saved, file system
constexpr int kStartField = 22;

std::string_view LineOf(std::string_view status, std::string_view key) {
  // The process's name comes first, and its newlines are escaped (fs/proc/array.c).
  const size_t at = status.find(key);
  if (at == std::string_view::npos) return {};
  status.remove_prefix(at + key.size());
  return status.substr(0, status.find('\n'));
}

// Nothing where one of them is no number.
std::optional<std::vector<uint32_t>> Numbers(std::string_view line) {
  std::vector<uint32_t> numbers;
  for (;;) {
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    if (line.empty()) return numbers;
    const std::string_view word = line.substr(0, line.find_first_of(" \t"));
    uint32_t number = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
    numbers.push_back(number);
    line.remove_prefix(word.size());
  }
}

std::optional<uint32_t> OneId(std::string_view line) {
  const auto ids = Numbers(line);
  if (!ids || ids->size() != kIds) return std::nullopt;
  const bool same =
      std::all_of(ids->begin(), ids->end(), [&](uint32_t id) { return id == (*ids)[0]; });
  return same ? std::optional((*ids)[0]) : std::nullopt;
}

int64_t StartTicks(std::string_view stat) {
  // The name stands in parentheses and may hold anything; what follows the last one is numbers.
  stat.remove_prefix(std::min(stat.rfind(')'), stat.size()));
  for (int field = 2; field < kStartField; ++field) {
    const size_t space = stat.find(' ');
    if (space == std::string_view::npos) return -1;
    stat.remove_prefix(space + 1);
  }
  int64_t ticks = -1;
  std::from_chars(stat.data(), stat.data() + stat.size(), ticks);
  return ticks;
}

}  // namespace

std::optional<UserIdentity> ParseIdentity(std::string_view status) {
  const auto uid = OneId(LineOf(status, "\nUid:"));
  const auto gid = OneId(LineOf(status, "\nGid:"));
  const size_t has_groups = status.find("\nGroups:");
  auto groups = Numbers(LineOf(status, "\nGroups:"));
  if (!uid || !gid || has_groups == std::string_view::npos || !groups) return std::nullopt;
  std::sort(groups->begin(), groups->end());
  return UserIdentity{*uid, *gid, std::move(*groups)};
}

std::optional<UserIdentity> ReadIdentity(const std::string& proc_root, const ProcessKey& process) {
  const std::string folder = proc_root + '/' + std::to_string(process.pid);
  auto identity = ParseIdentity(ReadSmallFile(folder + "/status"));
  if (StartTicks(ReadSmallFile(folder + "/stat")) != process.start_ticks) return std::nullopt;
  return identity;
}

}  // namespace rankscope::exporter
