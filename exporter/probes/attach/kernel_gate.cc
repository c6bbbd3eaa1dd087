// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/probes/attach/kernel_gate.h"

#include <linux/capability.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <charconv>
#include <utility>

#include "exporter/loop/small_file.h"

namespace rankscope::probes {
namespace {

#ifndef CAP_PERFMON
constexpr int CAP_PERFMON = 38;
constexpr int CAP_BPF = 39;
#endif

// The bracketed word of "none [integrity] confidentiality".
std::string Chosen(const std::string& text) {
  const size_t begin = text.find('[');
  const size_t end = text.find(']');
  if (begin == std::string::npos || end == std::string::npos || end < begin) return {};
  return text.substr(begin + 1, end - begin - 1);
}

uint64_t EffectiveCapabilities(const std::string& status) {
  const size_t at = status.find("CapEff:");
  if (at == std::string::npos) return 0;
  return std::strtoull(status.c_str() + at + 7, nullptr, 16);
}

struct Version {
  int major = 0;
  int minor = 0;
  auto operator<=>(const Version&) const = default;
};

Version ParseVersion(std::string_view release) {
  Version version;
  const char* const end = release.data() + release.size();
  const auto [dot, error] = std::from_chars(release.data(), end, version.major);
  if (error == std::errc() && dot != end && *dot == '.') {
    std::from_chars(dot + 1, end, version.minor);
  }
  return version;
}

bool Has(const KernelFacts& facts, int capability) {
  return (facts.capabilities >> capability & 1) != 0;
}

bool MayTrace(const KernelFacts& facts) {
  return Has(facts, CAP_SYS_ADMIN) || (Has(facts, CAP_BPF) && Has(facts, CAP_PERFMON));
}

// Ring buffers and the start of a task in boot time.
constexpr Version kOldest = {5, 8};
constexpr Version kMultiAttach = {6, 6};
// From here on programs may get a private stack per CPU, which a preempted uprobe of another task
// overwrites; reproduced on preemptible kernels.
constexpr Version kPrivateStack = {6, 13};

constexpr std::string_view kSeeTracepoints =
    "not available for the same reason as ebpf.tracepoints";
// Cookies, which tell a program what function it stands on.
constexpr Version kCookies = {5, 15};

Capability Tracepoints(const KernelFacts& facts) {
  Capability row{"ebpf.tracepoints", "no", {}, false};
  if (ParseVersion(facts.release) < kOldest) {
    row.text = "kernel " + facts.release + " has no BPF ring buffers; use kernel 5.8 or later";
  } else if (!facts.btf) {
    row.text =
        "/sys/kernel/btf/vmlinux is missing; mount /sys, or use a kernel with "
        "CONFIG_DEBUG_INFO_BTF";
  } else if (facts.lockdown == "confidentiality") {
    row.text =
        "kernel lockdown is confidentiality: BPF programs cannot read kernel memory; boot "
        "with lockdown=integrity";
  } else if (facts.own_pid_namespace) {
    row.text =
        "this is not the host's pid namespace, but BPF programs report the host's pids; run "
        "rankscope on the host or with hostPID";
  } else if (!MayTrace(facts)) {
    row.text = "needs CAP_BPF and CAP_PERFMON, or root";
    row.denied = true;
  } else {
    row.state = "yes";
    row.text = "processes, exit statuses, senders of fatal signals, out-of-memory kills";
  }
  return row;
}

Capability Uprobes(const KernelFacts& facts, const Capability& tracepoints) {
  Capability row{"ebpf.uprobes", "no", {}, false};
  if (tracepoints.state == "no") {
    row.text = kSeeTracepoints;
    row.denied = tracepoints.denied;
  } else if (ParseVersion(facts.release) < kCookies) {
    row.text =
        "kernel " + facts.release +
        " has no BPF cookies, by which a program knows its function; use kernel 5.15 or later";
  } else if (!facts.uprobes) {
    row.text = "no uprobe event source; needs a kernel with CONFIG_UPROBE_EVENTS";
  } else if (ParseVersion(facts.release) < kMultiAttach && !Has(facts, CAP_SYS_ADMIN)) {
    row.text =
        "kernel " + facts.release +
        " requires CAP_SYS_ADMIN for uprobes; from 6.6 on, CAP_BPF and CAP_PERFMON are enough";
    row.denied = true;
  } else {
    row.state = "yes";
    row.text = "calls into CUDA and NCCL are counted";
    if (ParseVersion(facts.release) >= kPrivateStack) {
      row.text +=
          "; from 6.13 on, a program with 64 bytes of stack or more can crash a preemptible "
          "kernel, but these programs use less";
    }
  }
  return row;
}

std::optional<Capability> ObstacleOf(std::string_view name,
                                     const std::vector<Capability>& capabilities) {
  for (const Capability& row : capabilities) {
    if (row.name != name || row.state != "no") continue;
    if (name == "ebpf.uprobes" && row.text == kSeeTracepoints) {
      return ObstacleOf("ebpf.tracepoints", capabilities);
    }
    return row;
  }
  return std::nullopt;
}

}  // namespace

KernelFacts ReadKernel(const std::string& root) {
  KernelFacts facts;
  utsname name{};
  if (uname(&name) == 0) {
    facts.release = name.release;
    facts.architecture = name.machine;
  }
  const auto readable = [&root](const char* path) {
    return access((root + path).c_str(), R_OK) == 0;
  };
  facts.btf = readable("/sys/kernel/btf/vmlinux");
  facts.lockdown = Chosen(ReadSmallFile(root + "/sys/kernel/security/lockdown"));
  facts.capabilities = EffectiveCapabilities(ReadSmallFile(root + "/proc/self/status"));
  const std::string paranoid = ReadSmallFile(root + "/proc/sys/kernel/perf_event_paranoid");
  if (!paranoid.empty())
    facts.perf_paranoid = static_cast<int>(std::strtol(paranoid.c_str(), nullptr, 10));
  char link[64] = {};
  const ssize_t n = readlink((root + "/proc/self/ns/pid").c_str(), link, sizeof link - 1);
  // The numbers of the first namespaces are fixed in the kernel (PROC_PID_INIT_INO).
  facts.own_pid_namespace = n > 0 && std::string_view(link) != "pid:[4026531836]";
  facts.kprobes = readable("/sys/bus/event_source/devices/kprobe/type");
  facts.uprobes = readable("/sys/bus/event_source/devices/uprobe/type");
  facts.tracefs = readable("/sys/kernel/tracing/events/header_page") ||
                  readable("/sys/kernel/debug/tracing/events/header_page");
  return facts;
}

std::vector<Capability> JudgeKernel(const KernelFacts& facts) {
  std::vector<Capability> rows;
  rows.push_back(Tracepoints(facts));
  rows.push_back(Uprobes(facts, rows.front()));
  const Version version = ParseVersion(facts.release);
  rows.push_back({"ebpf.multi", version < kMultiAttach ? "no" : "yes",
                  version < kMultiAttach ? "kernel " + facts.release +
                                               " detaches probes one by one, which takes long, so "
                                               "fewer are used; from 6.6 on all are used"
                                         : "probes are attached and detached all at once",
                  false});
  rows.push_back(
      {"ebpf.kprobes", facts.kprobes ? "yes" : "no",
       facts.kprobes
           ? "available, but not needed: tracepoints are used"
           : "no kprobe event source (CONFIG_KPROBES), but none is needed: tracepoints are used",
       false});
  rows.push_back({"ebpf.tracefs", facts.tracefs ? "yes" : "no",
                  facts.tracefs
                      ? "mounted; it lists the tracepoints of single system calls"
                      : "not mounted or not readable; as root, rankscope mounts it privately",
                  false});
  std::string text = "kernel.perf_event_paranoid ";
  text += facts.perf_paranoid ? "is " + std::to_string(*facts.perf_paranoid) : "is missing";
  const bool perf = Has(facts, CAP_SYS_ADMIN) || Has(facts, CAP_PERFMON) ||
                    (facts.perf_paranoid && *facts.perf_paranoid < 0);
  rows.push_back(
      {"ebpf.perf_events", perf ? "yes" : "no",
       perf ? text + "; this process may open perf events" : text + "; needs CAP_PERFMON or root",
       !perf});
  if (!facts.lockdown.empty()) {
    rows.push_back({"ebpf.lockdown", facts.lockdown == "confidentiality" ? "no" : "yes",
                    "kernel lockdown is " + facts.lockdown, false});
  }
  return rows;
}

std::vector<Capability> LookAtKernel() {
  return JudgeKernel(ReadKernel());
}

bool HasMultiAttach(const KernelFacts& facts) {
  return ParseVersion(facts.release) >= kMultiAttach;
}

std::optional<Capability> ObstacleForTracepoints(const std::vector<Capability>& capabilities) {
  return ObstacleOf("ebpf.tracepoints", capabilities);
}

std::optional<Capability> ObstacleForUprobes(const std::vector<Capability>& capabilities) {
  return ObstacleOf("ebpf.uprobes", capabilities);
}

}  // namespace rankscope::probes
