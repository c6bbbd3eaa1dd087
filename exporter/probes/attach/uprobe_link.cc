// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/probes/attach/uprobe_link.h"

#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>

namespace rankscope::probes {
namespace {

// linux/bpf.h of kernel 6.6; Debian 12's headers are older than it.
constexpr uint32_t kTraceUprobeMulti = 48;
constexpr uint32_t kMultiReturn = 1;

// union bpf_attr as BPF_LINK_CREATE reads it.
struct LinkCreate {
  uint32_t program = 0;
  uint32_t target = 0;
  uint32_t attach_type = 0;
  uint32_t flags = 0;
  union {
    struct {
      uint64_t path;
      uint64_t offsets;
      uint64_t reference_counters;
      uint64_t cookies;
      uint32_t count;
      uint32_t flags;
      uint32_t pid;
      uint32_t pad;
    } multi;
    struct {
      uint64_t cookie;
    } perf;
  };
};

uint64_t Address(const void* pointer) {
  return reinterpret_cast<uint64_t>(pointer);
}

int CreateLink(const LinkCreate& link) {
  return static_cast<int>(syscall(SYS_bpf, BPF_LINK_CREATE, &link, sizeof link));
}

int AttachMulti(int program, const char* path, std::span<const ProbePoint> points, bool at_return) {
  std::vector<uint64_t> offsets;
  std::vector<uint64_t> cookies;
  for (const ProbePoint& point : points) {
    offsets.push_back(point.offset);
    cookies.push_back(point.cookie);
  }
  LinkCreate link;
  link.program = static_cast<uint32_t>(program);
  link.attach_type = kTraceUprobeMulti;
  link.multi = {Address(path),
                Address(offsets.data()),
                0,
                Address(cookies.data()),
                static_cast<uint32_t>(points.size()),
                at_return ? kMultiReturn : 0,
                0,
                0};
  return CreateLink(link);
}

// The kernel numbers its event sources anew at each boot.
std::optional<int> ReadNumber(const char* path, const char* format) {
  std::FILE* const file = std::fopen(path, "re");
  if (file == nullptr) return std::nullopt;
  int number = 0;
  const bool read = std::fscanf(file, format, &number) == 1;
  std::fclose(file);
  return read ? std::optional(number) : std::nullopt;
}

int OpenPerf(const char* path, uint64_t offset, bool at_return) {
  const auto type = ReadNumber("/sys/bus/event_source/devices/uprobe/type", "%d");
  const auto bit = ReadNumber("/sys/bus/event_source/devices/uprobe/format/retprobe", "config:%d");
  if (!type || !bit) {
    errno = EOPNOTSUPP;
    return -1;
  }
  perf_event_attr attr{};
  attr.size = sizeof attr;
  attr.type = static_cast<uint32_t>(*type);
  attr.config = at_return ? uint64_t{1} << *bit : 0;
  attr.config1 = Address(path);
  attr.config2 = offset;
  return static_cast<int>(syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC));
}

void AttachPerf(int program, const std::string& path, const ProbePoint& point, bool at_return,
                Attached& attached) {
  OwnedFd event(OpenPerf(path.c_str(), point.offset, at_return));
  int made = -1;
  if (event) {
    LinkCreate link;
    link.program = static_cast<uint32_t>(program);
    link.target = static_cast<uint32_t>(event.get());
    link.attach_type = BPF_PERF_EVENT;
    link.multi = {};
    link.perf.cookie = point.cookie;
    made = CreateLink(link);
  }
  if (made < 0) {
    ++attached.refused;
    attached.reason = std::strerror(errno);
    return;
  }
  attached.places.Add(OwnedFd(made));
  attached.places.Add(std::move(event));
  ++attached.points;
}

}  // namespace

uint32_t ExpectedAttachType(AttachVia via) {
  return via == AttachVia::kMulti ? kTraceUprobeMulti : 0;
}

AttachVia BestAttach() {
  const bpf_insn nothing[] = {
      {BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 0},
      {BPF_JMP | BPF_EXIT, 0, 0, 0, 0},
  };
  bpf_attr attr{};
  attr.prog_type = BPF_PROG_TYPE_KPROBE;
  attr.expected_attach_type = kTraceUprobeMulti;
  attr.insns = Address(nothing);
  attr.insn_cnt = 2;
  attr.license = Address("GPL");
  const OwnedFd program(static_cast<int>(syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof attr)));
  if (!program) return AttachVia::kPerf;
  // A directory cannot be probed: who knows such links says EBADF, who does not says EINVAL.
  const ProbePoint point{0, 0};
  const OwnedFd link(AttachMulti(program.get(), "/", std::span(&point, 1), false));
  return !link && errno == EBADF ? AttachVia::kMulti : AttachVia::kPerf;
}

Attached AttachProbes(AttachVia via, int program, const std::string& path,
                      std::span<const ProbePoint> points, bool at_return) {
  Attached attached;
  if (points.empty()) return attached;
  if (via == AttachVia::kPerf) {
    for (const ProbePoint& point : points) AttachPerf(program, path, point, at_return, attached);
    return attached;
  }
  if (const int link = AttachMulti(program, path.c_str(), points, at_return); link >= 0) {
    attached.places.Add(OwnedFd(link));
    attached.points = static_cast<int>(points.size());
    return attached;
  }
  // One point that the kernel does not take spoils all of a link: it is left out.
  for (const ProbePoint& point : points) {
    const int link = AttachMulti(program, path.c_str(), std::span(&point, 1), at_return);
    if (link >= 0) {
      attached.places.Add(OwnedFd(link));
      ++attached.points;
    } else {
      ++attached.refused;
      attached.reason = std::strerror(errno);
    }
  }
  return attached;
}

}  // namespace rankscope::probes
