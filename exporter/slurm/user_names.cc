// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/slurm/user_names.h"

#include <pwd.h>

#include <cstddef>
#include <limits>
#include <map>

#include "exporter/loop/user_directory.h"
#include "exporter/slurm/values.h"

namespace rankscope::exporter::slurm {
namespace {

constexpr size_t kBuffer = size_t{16} << 10;

}  // namespace

std::optional<uint32_t> UidOf(const std::string& name) {
  if (name.empty()) return std::nullopt;
  passwd entry{};
  passwd* found = nullptr;
  std::vector<char> buffer(kBuffer);
  if (getpwnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found) != 0 ||
      found == nullptr)
    return std::nullopt;
  return entry.pw_uid;
}

void NameCancellers(std::vector<SlurmJob>& jobs) {
  std::map<int64_t, std::string> names;
  for (SlurmJob& job : jobs) {
    const std::optional<int64_t> uid = ReadInteger(job.state_by);
    if (!uid || *uid < 0 || *uid >= std::numeric_limits<uint32_t>::max()) continue;
    const auto [known, fresh] = names.try_emplace(*uid);
    if (fresh) known->second = NameInDatabase(static_cast<uint32_t>(*uid));
    if (!known->second.empty()) job.state_by = known->second + "(" + job.state_by + ")";
  }
}

}  // namespace rankscope::exporter::slurm
