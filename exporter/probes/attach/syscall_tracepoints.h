// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Tracepoints of single system calls: the others of the machine pay the kernel's slow path for each
// call, some tens of nanoseconds, where a program at all of them would cost twice that. Their
// numbers stand in tracefs only. Where that is not mounted it is opened through a mount that nobody
// else sees, which takes CAP_SYS_ADMIN: so `serve` asks once before it gives up its rights. Any
// thread.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "detectors/model/result.h"
#include "exporter/loop/owned_fd.h"

namespace rankscope::probes {

// "sys_enter_connect" -> the number that perf events know it by; empty where tracefs cannot be
// read. Looked up at the first call: they hold until the machine boots again.
const std::map<std::string, int, std::less<>>& SyscallTracepoints();

// The program's place there: closing it takes the program away.
Result<OwnedFd> AttachToSyscall(int program, std::string_view tracepoint);

}  // namespace rankscope::probes
