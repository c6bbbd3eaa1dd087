// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/probes/network/network_programs.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "exporter/probes/attach/function_finder.h"
#include "exporter/probes/attach/kernel_object.h"
#include "exporter/probes/attach/map_reader.h"
#include "exporter/probes/attach/program_table.h"
#include "exporter/probes/attach/syscall_tracepoints.h"
#include "net.skel.h"

namespace rankscope::probes {
namespace {

constexpr std::array kPrograms = {
    ProgramRow{"net_state", "tp_btf/inet_sock_set_state",
               "outcome of each connection attempt; listeners",
               "every TCP connection: three comparisons; of a tracked process: two map updates"},
    ProgramRow{"net_retransmit", "tp_btf/tcp_retransmit_skb", "number per process",
               "every retransmitted segment: one map lookup"},
    ProgramRow{"net_reset", "tp_btf/tcp_receive_reset", "number per process; the peer",
               "every reset: two map lookups"},
    ProgramRow{"net_gone", "tp_btf/tcp_destroy_sock", "nothing; forgets the socket's owner",
               "every end of a TCP socket: one map lookup"},
    ProgramRow{"net_sent", "tp_btf/sock_send_length", "bytes per process; on kernels from 6.3 on",
               "every message sent on a socket: one map lookup; of a tracked process: two more"},
    ProgramRow{
        "net_received", "tp_btf/sock_recv_length", "bytes per process; on kernels from 6.3 on",
        "every message received on a socket: one map lookup; of a tracked process: two more"},
    ProgramRow{"net_enter_connect", "tracepoint/syscalls/sys_enter_connect",
               "nothing; keeps the address",
               "every connect(): one map lookup; as with all tracepoints of system calls, every "
               "system call of the host takes the kernel's slow path"},
    ProgramRow{"net_exit_connect", "tracepoint/syscalls/sys_exit_connect",
               "failures before a packet is sent", "every connect(): one map lookup"},
    ProgramRow{"net_enter_bind", "tracepoint/syscalls/sys_enter_bind", "nothing; keeps the address",
               "every bind(): one map lookup"},
    ProgramRow{"net_exit_bind", "tracepoint/syscalls/sys_exit_bind", "ports in use",
               "every bind(): one map lookup"},
    ProgramRow{"net_enter_lookup", "uprobe/libc:getaddrinfo", "nothing; keeps the name",
               "every name lookup: a trap and one map lookup"},
    ProgramRow{"net_exit_lookup", "uretprobe/libc:getaddrinfo",
               "names that did not resolve or took longer than a second",
               "every name lookup: a trap and one map lookup"},
};

using Skeleton = std::unique_ptr<net_bpf, DestroyBy<net_bpf__destroy>>;

constexpr char kSource[] = "network";

// Programs at tracepoints that this kernel does not have are not loaded; the names of those.
std::string LeaveOut(net_bpf& skeleton) {
  struct Hook {
    bpf_program* program;
    const char* type;  // as BTF names the tracepoint's arguments
  };
  const Hook hooks[] = {
      {skeleton.progs.net_sent, "btf_trace_sock_send_length"},
      {skeleton.progs.net_received, "btf_trace_sock_recv_length"},
      {skeleton.progs.net_retransmit, "btf_trace_tcp_retransmit_skb"},
      {skeleton.progs.net_reset, "btf_trace_tcp_receive_reset"},
      {skeleton.progs.net_gone, "btf_trace_tcp_destroy_sock"},
  };
  const std::unique_ptr<btf, DestroyBy<btf__free>> types(btf__load_vmlinux_btf());
  std::string missing;
  for (const Hook& hook : hooks) {
    if (types && btf__find_by_name_kind(types.get(), hook.type, BTF_KIND_TYPEDEF) > 0) continue;
    bpf_program__set_autoload(hook.program, false);
    missing += (missing.empty() ? "" : ", ") + std::string(bpf_program__name(hook.program));
  }
  return missing;
}

}  // namespace

std::span<const ProgramRow> NetworkProgramTable() {
  return kPrograms;
}

struct NetworkPrograms::Impl {
  OnLookup on_lookup;
  std::string missing;
  Skeleton skeleton;
  RingHandle ring;  // goes first: it maps the skeleton's ring
  std::vector<std::shared_ptr<Places>> links;

  // A storm takes no more than the ring holds.
  static int Take(void* context, void* data, size_t size) {
    auto* self = static_cast<Impl*>(context);
    if (size >= sizeof(rs_net_lookup)) self->on_lookup(*static_cast<const rs_net_lookup*>(data));
    return 0;
  }

  // Each by itself: without tracefs those at system calls are missing, and the rest serves.
  int AttachAll() {
    bpf_program* program = nullptr;
    int attached = 0;
    bpf_object__for_each_program(program, skeleton->obj) {
      if (!bpf_program__autoload(program)) continue;
      if (program == skeleton->progs.net_enter_lookup || program == skeleton->progs.net_exit_lookup)
        continue;
      if (!AttachOne(program)) {
        if (program == skeleton->progs.net_state) return -errno;
        missing += (missing.empty() ? "" : ", ") + std::string(bpf_program__name(program));
        continue;
      }
      ++attached;
    }
    return attached;
  }

  bool AttachOne(bpf_program* program) {
    constexpr std::string_view kSyscalls = "tracepoint/syscalls/";
    const std::string_view section = bpf_program__section_name(program);
    if (section.starts_with(kSyscalls)) {
      Result<OwnedFd> event =
          AttachToSyscall(bpf_program__fd(program), section.substr(kSyscalls.size()));
      if (event) at_syscalls.Add(std::move(*event));
      return static_cast<bool>(event);
    }
    LinkHandle link(bpf_program__attach(program));
    if (!link) return false;
    owned.push_back(std::move(link));
    return true;
  }

  Places at_syscalls;
  std::vector<LinkHandle> owned;  // goes before the skeleton
};

NetworkPrograms::NetworkPrograms(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

NetworkPrograms::~NetworkPrograms() = default;

Result<std::unique_ptr<NetworkPrograms>> NetworkPrograms::Load(int tracked, OnLookup on_lookup) {
  auto impl = std::make_unique<Impl>();
  impl->on_lookup = std::move(on_lookup);
  const auto prepare = [&impl](net_bpf& skeleton) {
    impl->missing = LeaveOut(skeleton);
    if (!HasMultiLink()) return;
    for (bpf_program* program : {skeleton.progs.net_enter_lookup, skeleton.progs.net_exit_lookup}) {
      bpf_program__set_expected_attach_type(program, static_cast<bpf_attach_type>(kMultiLinkType));
    }
  };
  if (const Status loaded =
          LoadObject<net_bpf__open, net_bpf__load>(kSource, impl->skeleton, tracked, prepare);
      !loaded)
    return Error{loaded.error()};
  if (const Status opened = OpenRing(kSource, impl->ring, impl->skeleton->maps.rs_net_events,
                                     &Impl::Take, impl.get());
      !opened)
    return Error{opened.error()};
  if (const int attached = impl->AttachAll(); attached <= 0)
    return KernelRefusal(kSource, "cannot attach the BPF programs", -attached);
  return std::unique_ptr<NetworkPrograms>(new NetworkPrograms(std::move(impl)));
}

int NetworkPrograms::fd() const {
  return ring_buffer__epoll_fd(impl_->ring.get());
}

void NetworkPrograms::Consume() {
  ring_buffer__consume(impl_->ring.get());
}

NetworkCounts NetworkPrograms::Read() const {
  const auto& maps = impl_->skeleton->maps;
  NetworkCounts counts;
  counts.facts = ReadMap<rs_net_key, rs_net_fact>(bpf_map__fd(maps.rs_net_facts), RS_NET_FACTS);
  counts.processes =
      ReadMap<uint32_t, rs_net_process>(bpf_map__fd(maps.rs_net_processes), RS_NET_PROCESSES);
  for (auto& [socket, pending] :
       ReadMap<uint64_t, rs_net_pending>(bpf_map__fd(maps.rs_net_pending), RS_NET_PENDING)) {
    counts.pending.push_back(pending);
  }
  for (auto& [thread, lookup] :
       ReadMap<uint64_t, rs_net_lookup>(bpf_map__fd(maps.rs_net_lookups), RS_NET_CALLS)) {
    counts.lookups.push_back(lookup);
  }
  return counts;
}

void NetworkPrograms::Forget(const rs_net_key& key) {
  bpf_map_delete_elem(bpf_map__fd(impl_->skeleton->maps.rs_net_facts), &key);
}

void NetworkPrograms::ForgetProcess(uint32_t pid) {
  bpf_map_delete_elem(bpf_map__fd(impl_->skeleton->maps.rs_net_processes), &pid);
}

LookupProbe NetworkPrograms::lookup_probe() const {
  return {bpf_program__fd(impl_->skeleton->progs.net_enter_lookup),
          bpf_program__fd(impl_->skeleton->progs.net_exit_lookup), HasMultiLink()};
}

void NetworkPrograms::Add(std::shared_ptr<Places> links) {
  impl_->links.push_back(std::move(links));
}

int64_t NetworkPrograms::lost() const {
  return SumCounters(bpf_map__fd(impl_->skeleton->maps.rs_net_lost), RS_NET_LOST_KINDS);
}

const std::string& NetworkPrograms::missing() const {
  return impl_->missing;
}

Result<std::shared_ptr<Places>> Attach(const LookupProbe& probe, const std::string& library) {
  const Result<uint64_t> offset = FindFunction(library, "getaddrinfo");
  if (!offset) return Error{offset.error()};
  auto links = std::make_shared<Places>();
  for (const bool at_return : {false, true}) {
    const Result<int> link = AttachProbe(at_return ? probe.leave : probe.enter, library, *offset,
                                         at_return, probe.multi);
    if (!link) return Error{link.error()};
    links->Add(OwnedFd(*link));
  }
  return links;
}

}  // namespace rankscope::probes
