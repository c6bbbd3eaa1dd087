// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Whether a process of root is root's own doing. A user can make one that carries his variables (a
// set-user-ID program does), and what it writes to a file of root's may be a secret to him.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "detectors/model/ids.h"

namespace rankscope::collectors {

// What the kernel has noted at the process's last execve() (/proc/PID/auxv): who ran the program,
// and whether it took on another's rights with it. Nothing of what is no such note. Pure.
struct ExecFacts {
  uint64_t uid = 0;
  bool secure = false;  // AT_SECURE
};
std::optional<ExecFacts> ParseAuxiliaryVector(std::string_view bytes);

// Whether the text of /proc/PID/cgroup names another user than root: the slice of his logins, or
// Slurm's directory of his jobs. Pure.
bool NamesAnotherUser(std::string_view cgroup);

// It and all above it are root's, none by a set-user-ID program, and no login of another user
// stands behind it. A process whose parent has gone can hide that it came by such a program and a
// second one. For root's own thread (see UserWorkers).
bool IsRootsOwn(const std::string& proc_root, const ProcessKey& process);

}  // namespace rankscope::collectors
