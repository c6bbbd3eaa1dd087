// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Which system call waits for what: the table that the kernel's side reads by number, and the same
// judgement on what /proc shows of a thread. Pure. Any thread.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "bpf/events/sched.h"
#include "detectors/model/wait_class.h"

namespace rankscope::probes {

// enum rs_wait or rs_call, by the number that a system call has on this machine.
std::array<uint8_t, RS_CALLS> WaitCalls();

// "futex", "read"; empty for a call that is not in the table.
std::string_view CallName(int32_t number);

// /proc/PID/task/TID/syscall
struct CallText {
  bool running = false;  // it shows nothing of who is on a CPU
  int32_t number = -1;   // -1: in no system call
  uint64_t first = 0;
  uint64_t second = 0;
};
std::optional<CallText> ParseCall(std::string_view text);

// Whether a call's first argument is a descriptor.
bool IsAboutFile(const CallText& call);

// What kind of file a link of /proc/PID/fd shows: pipe, socket, event, gpu, terminal, device,
// shared_memory, network_file, fuse_file, file. `file_system`: the type of its mount; empty = not
// known.
std::string_view FileKind(std::string_view link, std::string_view file_system);

// The class of a thread by its state in /proc/PID/stat, its call, the kind of that call's file and
// the kernel function that it waits in; each may be missing.
WaitClass ClassOf(char state, const std::optional<CallText>& call, std::string_view file_kind,
                  std::string_view wchan);

// Whether this function of the kernel, or type of file system, is a network file system's.
bool IsNetworkFunction(std::string_view wchan);
bool IsNetworkFileSystem(std::string_view type);

}  // namespace rankscope::probes
