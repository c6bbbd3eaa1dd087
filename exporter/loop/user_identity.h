// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// As whom the kernel would let a process touch files: by its word in /proc/PID/status, never by a
// name or by what the process says. Any thread.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "detectors/model/ids.h"

namespace rankscope::exporter {

struct UserIdentity {
  // Of nobody's (the kernel's overflowgid): where only the user is known, only what he owns himself
  // or what everybody may read is his.
  static constexpr uint32_t kNoGroup = 65534;

  uint32_t uid = 0;
  uint32_t gid = kNoGroup;
  std::vector<uint32_t> groups = {};  // supplementary
  auto operator<=>(const UserIdentity&) const = default;
};

// Of the text of /proc/PID/status. Nothing where the real, effective, saved and file-system ids
// differ: a set-user-ID program acts for two users, and no file is read as either. Pure.
std::optional<UserIdentity> ParseIdentity(std::string_view status);

// Of the process that the key names; nothing when it has ended or was replaced, too. Never waits
// for the process.
std::optional<UserIdentity> ReadIdentity(const std::string& proc_root, const ProcessKey& process);

}  // namespace rankscope::exporter
