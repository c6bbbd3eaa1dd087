// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/probes/attach/function_finder.h"

#include <bpf/btf.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <string_view>

#include "exporter/loop/owned_fd.h"
#include "exporter/probes/attach/elf_symbols.h"

namespace rankscope::probes {
namespace {

struct BtfFree {
  void operator()(btf* types) const { btf__free(types); }
};

// union bpf_attr as BPF_LINK_CREATE reads it, include/uapi/linux/bpf.h of 6.6.
struct MultiLinkAttributes {
  uint32_t program;
  uint32_t target;
  uint32_t type;
  uint32_t flags;
  uint64_t path;
  uint64_t offsets;
  uint64_t reference_counters;
  uint64_t cookies;
  uint32_t count;
  uint32_t multi_flags;
  uint32_t pid;
  uint32_t pad;
};
constexpr int kLinkCreate = 28;
constexpr uint32_t kAtReturn = 1;

Result<int> AttachMultiLink(int program, const std::string& path, uint64_t offset, bool at_return) {
  MultiLinkAttributes attributes{};
  attributes.program = static_cast<uint32_t>(program);
  attributes.type = kMultiLinkType;
  attributes.path = reinterpret_cast<uint64_t>(path.c_str());
  attributes.offsets = reinterpret_cast<uint64_t>(&offset);
  attributes.count = 1;
  attributes.multi_flags = at_return ? kAtReturn : 0;
  const auto link = syscall(SYS_bpf, kLinkCreate, &attributes, sizeof attributes);
  if (link < 0) return Error{path + ": " + std::strerror(errno)};
  return static_cast<int>(link);
}

// The first number in a file of the uprobe event source; -1 = it cannot be read.
int EventSourceNumber(const char* name) {
  std::ifstream file(std::string("/sys/bus/event_source/devices/uprobe/") + name);
  std::string text;
  std::getline(file, text);
  const size_t digit = text.find_first_of("0123456789");
  return digit == std::string::npos ? -1 : std::atoi(text.c_str() + digit);
}

Result<int> AttachPerfEvent(int program, const std::string& path, uint64_t offset, bool at_return) {
  const int type = EventSourceNumber("type");
  const int return_bit = EventSourceNumber("format/retprobe");
  if (type < 0 || (at_return && return_bit < 0))
    return Error{"this kernel has no uprobe event source (CONFIG_UPROBE_EVENTS)"};
  perf_event_attr attributes{};
  attributes.size = sizeof attributes;
  attributes.type = static_cast<uint32_t>(type);
  attributes.config = at_return ? 1ull << return_bit : 0;
  attributes.uprobe_path = reinterpret_cast<uint64_t>(path.c_str());
  attributes.probe_offset = offset;
  const int event =
      static_cast<int>(syscall(SYS_perf_event_open, &attributes, -1, 0, -1, PERF_FLAG_FD_CLOEXEC));
  if (event < 0) return Error{path + ": " + std::strerror(errno)};
  if (ioctl(event, PERF_EVENT_IOC_SET_BPF, program) != 0 ||
      ioctl(event, PERF_EVENT_IOC_ENABLE, 0) != 0) {
    const int error = errno;
    close(event);
    return Error{path + ": " + std::strerror(error)};
  }
  return event;
}

}  // namespace

Result<uint64_t> FindFunction(const std::string& path, const char* name) {
  const OwnedFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return Error{path + ": " + std::strerror(errno)};
  const auto elf = ReadElf(ReaderOf(file.get()), {name});
  if (!elf) return Error{path + ": " + elf.error()};
  if (elf->functions.empty()) return Error{path + ": no function " + name};
  return elf->functions.front().offset;
}

bool HasMultiLink() {
  static const bool has = [] {
    const std::unique_ptr<btf, BtfFree> types(btf__load_vmlinux_btf());
    if (!types) return false;
    const int id = btf__find_by_name_kind(types.get(), "bpf_attach_type", BTF_KIND_ENUM);
    const btf_type* const type = id < 0 ? nullptr : btf__type_by_id(types.get(), id);
    if (type == nullptr) return false;
    const struct btf_enum* const values = ::btf_enum(type);
    for (int i = 0; i < btf_vlen(type); ++i) {
      const char* const name = btf__name_by_offset(types.get(), values[i].name_off);
      if (name != nullptr && std::string_view(name) == "BPF_TRACE_UPROBE_MULTI") return true;
    }
    return false;
  }();
  return has;
}

Result<int> AttachProbe(int program, const std::string& path, uint64_t offset, bool at_return,
                        bool multi) {
  return multi ? AttachMultiLink(program, path, offset, at_return)
               : AttachPerfEvent(program, path, offset, at_return);
}

}  // namespace rankscope::probes
