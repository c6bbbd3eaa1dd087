// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What this kernel, and the rights of this process, allow of eBPF: one row per capability with the
// reason and the remedy. Looking is cheap and changes nothing; deciding is a pure function of what
// was seen. Any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rankscope::probes {

// What was seen.
struct KernelFacts {
  std::string release;       // uname -r
  std::string architecture;  // uname -m
  bool btf = false;
  std::string lockdown;              // none | integrity | confidentiality; empty = not built in
  uint64_t capabilities = 0;         // effective
  std::optional<int> perf_paranoid;  // kernel.perf_event_paranoid
  bool own_pid_namespace = false;    // true: not the machine's
  bool kprobes = false;              // the perf event source exists
  bool uprobes = false;              // the perf event source exists
  bool tracefs = false;              // mounted and readable
};
KernelFacts ReadKernel(const std::string& root = "");

struct Capability {
  std::string name;   // "ebpf.tracepoints"
  std::string state;  // yes | partly | no
  std::string text;
  bool denied = false;  // the kernel would, this process may not
};
std::vector<Capability> JudgeKernel(const KernelFacts& facts);
std::vector<Capability> LookAtKernel();

// Many probes by one link (6.6); else each is a perf event, which takes CAP_SYS_ADMIN.
bool HasMultiAttach(const KernelFacts& facts);

// Why programs at tracepoints cannot run here; nullopt: they can.
std::optional<Capability> ObstacleForTracepoints(const std::vector<Capability>& capabilities);

// The same of programs at calls into libraries.
std::optional<Capability> ObstacleForUprobes(const std::vector<Capability>& capabilities);

}  // namespace rankscope::probes
