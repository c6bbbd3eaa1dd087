// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What a thread does, or waits for: the values of the signal main_wait_class and the reasons under
// which time off the CPU is counted. Values are part of recordings and never change meaning;
// bpf/events/sched.h repeats them for the kernel's side. Any thread.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace rankscope {

enum class WaitClass : uint8_t {
  kRunning = 0,
  kRunnable = 1,     // wants a CPU and has none
  kFutex = 2,        // a lock or condition of its own process, or shared memory
  kSocket = 3,       // bytes from a pipe, a socket, an event: somebody else's word
  kNetworkFile = 4,  // a file of a network file system
  kBlock = 5,        // a local file or device, or a page of one
  kGpu = 6,          // the GPU's driver
  kSleep = 7,        // for a time it has chosen
  kStopped = 8,      // by SIGSTOP, job control, or a debugger
  kOther = 9,
  kFileLock = 10,  // flock or fcntl, held by somebody else
  kChild = 11,     // the end of a child process
};
inline constexpr int kWaitClasses = 12;

inline constexpr std::array<std::string_view, kWaitClasses> kWaitClassNames = {
    "running", "runnable", "futex",   "socket", "network_file", "block",
    "gpu",     "sleep",    "stopped", "other",  "file_lock",    "child"};

// Any number, as it comes out of a recording.
constexpr WaitClass WaitClassOf(double number) {
  return number >= 0 && number < kWaitClasses ? static_cast<WaitClass>(static_cast<int>(number))
                                              : WaitClass::kOther;
}

constexpr bool IsOnCpu(WaitClass of) {
  return of == WaitClass::kRunning || of == WaitClass::kRunnable;
}

}  // namespace rankscope
