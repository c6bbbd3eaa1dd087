// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Reads what /proc shows of a process's threads, below a given root. A read may wait for a process
// that is stuck in the kernel, so calls belong on a Worker. Immutable after construction; any
// thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "detectors/model/time.h"
#include "exporter/probes/wait/wait_calls.h"

namespace rankscope::probes {

// One thread at one moment.
struct ThreadLook {
  int32_t tid = 0;
  char state = '?';
  std::optional<CallText> call;
  std::string wchan;      // read where the class depends on it: uninterruptible threads
  std::string file_kind;  // of a call about a file
  // Since its start; negative = the kernel does not count it.
  Duration ran{-1};
  Duration runnable{-1};

  WaitClass wait_class() const { return ClassOf(state, call, file_kind, wchan); }
};

class ThreadReader {
 public:
  explicit ThreadReader(std::string proc_root = "/proc") : proc_(std::move(proc_root)) {}

  const std::string& root() const { return proc_; }

  // At most `most`, the main thread first, then the oldest.
  std::vector<int32_t> Threads(int32_t pid, size_t most) const;
  std::optional<ThreadLook> Look(int32_t pid, int32_t tid) const;
  std::string WaitChannel(int32_t pid, int32_t tid) const;
  // Functions of the kernel, innermost first; empty where this process may not see them.
  std::vector<std::string> KernelStack(int32_t pid, int32_t tid, size_t most) const;
  // "pipe", "network_file" ...; see FileKind. Never touches the file itself.
  std::string KindOfFile(int32_t pid, uint64_t fd) const;
  // Who traces the process: "gdb (pid 12)"; empty = nobody.
  std::string Tracer(int32_t pid) const;
  // Who holds the file lock that the process waits for: "python3 (pid 12)"; empty = not known.
  std::string LockHolder(int32_t pid) const;
  std::string Name(int32_t pid) const;

 private:
  std::string ReadFile(const std::string& path, size_t limit) const;
  std::string OfThread(int32_t pid, int32_t tid, const char* name) const;

  std::string proc_;
};

// The holder's pid in the text of /proc/locks for the lock that `pid` waits for; 0 = none.
int32_t FindLockHolder(std::string_view locks, int32_t pid);

}  // namespace rankscope::probes
