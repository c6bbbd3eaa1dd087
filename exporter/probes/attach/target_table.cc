// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/probes/attach/target_table.h"

#include <algorithm>
#include <utility>

namespace rankscope::probes {

TargetTable::Target* TargetTable::Find(const FileKey& file) {
  const auto found = targets_.find(file);
  return found == targets_.end() ? nullptr : &found->second;
}

void TargetTable::BeginUsers() {
  for (auto& [key, target] : targets_) target.users.clear();
}

void TargetTable::AddUser(const FileKey& file, uint32_t user) {
  if (Target* const target = Find(file)) target->users.insert(user);
}

std::set<FileKey> TargetTable::Unused(int rounds) {
  std::set<FileKey> unused;
  for (auto& [key, target] : targets_) {
    target.unused = target.users.empty() ? target.unused + 1 : 0;
    if (target.unused > rounds) unused.insert(key);
  }
  return unused;
}

TargetTable::Admission TargetTable::Admit(const FileVersion& version, uint32_t user) {
  Admission admission;
  if (targets_.size() >= kMost) {
    std::optional<FileKey> evicted = LongestUnused();
    if (!evicted) evicted = OfTheRichest(user);
    if (!evicted) return admission;
    admission.evicted = {*evicted, targets_.at(*evicted).owner};
    targets_.erase(*evicted);
  }
  Target target;
  target.version = version;
  target.owner = user;
  target.number = next_number_++;
  target.users.insert(user);
  targets_.emplace(KeyOf(version), std::move(target));
  admission.admitted = true;
  return admission;
}

std::optional<FileKey> TargetTable::LongestUnused() const {
  const auto longest = std::max_element(
      targets_.begin(), targets_.end(),
      [](const auto& one, const auto& other) { return one.second.unused < other.second.unused; });
  if (longest == targets_.end() || longest->second.unused == 0) return std::nullopt;
  return longest->first;
}

// A file of which each user keeps no fewer than the newcomer gets; of the richest the last.
std::optional<FileKey> TargetTable::OfTheRichest(uint32_t newcomer) const {
  std::map<uint32_t, size_t> files;
  for (const auto& [key, target] : targets_) {
    for (const uint32_t user : target.users) ++files[user];
  }
  const size_t own = files[newcomer];
  std::optional<FileKey> chosen;
  std::pair<size_t, int64_t> best;
  for (const auto& [key, target] : targets_) {
    size_t poorest = kMost;
    for (const uint32_t user : target.users) poorest = std::min(poorest, files[user]);
    const std::pair rank(poorest, target.number);
    if (poorest < own + 2 || (chosen && rank < best)) continue;
    chosen = key;
    best = rank;
  }
  return chosen;
}

}  // namespace rankscope::probes
