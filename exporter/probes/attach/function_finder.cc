// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/probes/attach/function_finder.h"

#include <bpf/btf.h>
#include <fcntl.h>
#include <gelf.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <optional>
#include <string_view>

namespace rankscope::probes {
namespace {

struct ElfEnd {
  void operator()(Elf* elf) const { elf_end(elf); }
};
struct FdCloser {
  int fd;
  ~FdCloser() { close(fd); }
};
struct BtfFree {
  void operator()(btf* types) const { btf__free(types); }
};

// The address of the function, by the dynamic symbols.
std::optional<uint64_t> FindAddress(Elf* elf, const char* name) {
  for (Elf_Scn* section = elf_nextscn(elf, nullptr); section != nullptr;
       section = elf_nextscn(elf, section)) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr || header.sh_type != SHT_DYNSYM) continue;
    Elf_Data* const data = elf_getdata(section, nullptr);
    if (data == nullptr || header.sh_entsize == 0) continue;
    const auto symbols = static_cast<int>(header.sh_size / header.sh_entsize);
    for (int i = 0; i < symbols; ++i) {
      GElf_Sym symbol;
      if (gelf_getsym(data, i, &symbol) == nullptr || symbol.st_value == 0) continue;
      if (GELF_ST_TYPE(symbol.st_info) != STT_FUNC) continue;
      const char* const text = elf_strptr(elf, header.sh_link, symbol.st_name);
      if (text != nullptr && std::strcmp(text, name) == 0) return symbol.st_value;
    }
  }
  return std::nullopt;
}

// Where an address of the loaded file lies in the file.
std::optional<uint64_t> FileOffset(Elf* elf, uint64_t address) {
  size_t segments = 0;
  if (elf_getphdrnum(elf, &segments) != 0) return std::nullopt;
  for (size_t i = 0; i < segments; ++i) {
    GElf_Phdr segment;
    if (gelf_getphdr(elf, static_cast<int>(i), &segment) == nullptr) continue;
    if (segment.p_type != PT_LOAD || address < segment.p_vaddr) continue;
    if (address - segment.p_vaddr < segment.p_filesz)
      return address - segment.p_vaddr + segment.p_offset;
  }
  return std::nullopt;
}

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
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return Error{path + ": " + std::strerror(errno)};
  const FdCloser closer{fd};
  elf_version(EV_CURRENT);
  const std::unique_ptr<Elf, ElfEnd> elf(elf_begin(fd, ELF_C_READ, nullptr));
  if (!elf || elf_kind(elf.get()) != ELF_K_ELF) return Error{path + ": not an ELF file"};
  const auto address = FindAddress(elf.get(), name);
  if (!address) return Error{path + ": no function " + name};
  const auto offset = FileOffset(elf.get(), *address);
  if (!offset) return Error{path + ": " + name + " is in no segment"};
  return *offset;
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
