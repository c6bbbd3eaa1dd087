// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/probes/attach/syscall_tracepoints.h"

#include <fcntl.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>

namespace rankscope::probes {
namespace {

// Those that programs of bpf/ stand at, some day or now; a name that the kernel does not have costs
// one failed open.
constexpr std::array kCalls = {
    "connect",   "bind",       "openat",          "openat2",         "open",      "creat",
    "close",     "read",       "pread64",         "readv",           "preadv",    "preadv2",
    "write",     "pwrite64",   "writev",          "pwritev",         "pwritev2",  "fsync",
    "fdatasync", "msync",      "sync_file_range", "ftruncate",       "fallocate", "rename",
    "renameat",  "renameat2",  "sendfile64",      "copy_file_range", "mmap",      "dup2",
    "dup3",      "newfstatat", "splice",
};

// The directory of system calls in tracefs as mounted, else in a mount of our own.
int OpenSyscalls() {
  for (const char* root : {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"}) {
    const std::string path = std::string(root) + "/events/syscalls";
    if (const int fd = open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC); fd >= 0) return fd;
  }
  // By number: glibc has had functions for these since 2.36 only.
  const OwnedFd context(static_cast<int>(syscall(SYS_fsopen, "tracefs", FSOPEN_CLOEXEC)));
  if (!context) return -1;
  if (syscall(SYS_fsconfig, context.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) != 0)
    return -1;
  const OwnedFd mounted(static_cast<int>(syscall(SYS_fsmount, context.get(), FSMOUNT_CLOEXEC, 0)));
  if (!mounted) return -1;
  return openat(mounted.get(), "events/syscalls", O_PATH | O_DIRECTORY | O_CLOEXEC);
}

int ReadNumber(int directory, const std::string& path) {
  const OwnedFd file(openat(directory, path.c_str(), O_RDONLY | O_CLOEXEC));
  char text[16];
  const ssize_t bytes = file ? read(file.get(), text, sizeof text) : 0;
  int number = -1;
  if (bytes > 0) std::from_chars(text, text + bytes, number);
  return number;
}

}  // namespace

const std::map<std::string, int, std::less<>>& SyscallTracepoints() {
  static const std::map<std::string, int, std::less<>> numbers = [] {
    std::map<std::string, int, std::less<>> found;
    const OwnedFd directory(OpenSyscalls());
    if (!directory) return found;
    for (const char* const call : kCalls) {
      for (const char* const side : {"sys_enter_", "sys_exit_"}) {
        const std::string name = std::string(side) + call;
        const int number = ReadNumber(directory.get(), name + "/id");
        if (number >= 0) found.emplace(name, number);
      }
    }
    return found;
  }();
  return numbers;
}

Result<OwnedFd> AttachToSyscall(int program, std::string_view tracepoint) {
  const auto failed = [tracepoint] {
    return Error{std::string(tracepoint) + ": " + std::strerror(errno)};
  };
  const auto number = SyscallTracepoints().find(tracepoint);
  if (number == SyscallTracepoints().end())
    return Error{std::string(tracepoint) + ": no such tracepoint, or tracefs cannot be read"};
  perf_event_attr attributes{};
  attributes.size = sizeof attributes;
  attributes.type = PERF_TYPE_TRACEPOINT;
  attributes.config = static_cast<uint64_t>(number->second);
  // The program belongs to the tracepoint; the event's CPU does not limit it.
  OwnedFd event(
      static_cast<int>(syscall(SYS_perf_event_open, &attributes, -1, 0, -1, PERF_FLAG_FD_CLOEXEC)));
  if (!event) return failed();
  if (ioctl(event.get(), PERF_EVENT_IOC_SET_BPF, program) != 0 ||
      ioctl(event.get(), PERF_EVENT_IOC_ENABLE, 0) != 0) {
    return failed();
  }
  return event;
}

}  // namespace rankscope::probes
