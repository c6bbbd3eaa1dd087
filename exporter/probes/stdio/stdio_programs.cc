// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/probes/stdio/stdio_programs.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <random>
#include <utility>
#include <vector>

#include "exporter/probes/attach/kernel_object.h"
#include "exporter/probes/attach/map_reader.h"
#include "exporter/probes/attach/places.h"
#include "exporter/probes/attach/program_table.h"
#include "exporter/probes/attach/syscall_tracepoints.h"
#include "stdio.skel.h"

namespace rankscope::probes {
namespace {

constexpr std::array kPrograms = {
    ProgramRow{"stdio_write_fexit", "fexit of write, writev, sendfile, splice, copy_file_range",
               "what was written to a standard stream",
               "on kernels with function tracing for BPF; each of these calls: one map lookup"},
    ProgramRow{"stdio_write_trace",
               "tracepoint/syscalls/sys_exit_{write,writev,sendfile64,splice,copy_file_range}",
               "what was written to a standard stream",
               "if tracefs can be read; every system call: 20 to 35 ns; each of these calls: 150 "
               "ns, of a tracked process 450 ns"},
    ProgramRow{"stdio_any_syscall", "tp_btf/sys_exit", "what was written to a standard stream",
               "if neither is possible; every system call: 80 ns"},
    ProgramRow{"stdio_exec", "tp_btf/sched_process_exec", "standard files of the process",
               "every exec: 0.5 us"},
    ProgramRow{"stdio_fork", "tp_btf/sched_process_fork", "standard files of the process",
               "every fork: one map lookup"},
    ProgramRow{"stdio_exit", "tp_btf/sched_process_exit",
               "nothing; keeps the standard files of the process for a moment",
               "every exit of a thread: one comparison; of a process: one map lookup"},
};

// Ways of meeting a write, cheapest first: the end of the names of their programs.
struct Way {
  std::string_view name;
  std::string_view suffix;
};
constexpr std::string_view kFunctions = "_fexit";
constexpr std::string_view kTracepoints = "_trace";
constexpr std::array kWays = {Way{"fexit", kFunctions}, Way{"tracepoint", kTracepoints},
                              Way{"raw", "_any_syscall"}};

using Skeleton = std::unique_ptr<stdio_bpf, DestroyBy<stdio_bpf__destroy>>;

constexpr char kSource[] = "stdio";

struct Loaded {
  Skeleton skeleton;
  Places places;
};

// Whether programs may stand behind functions of the kernel: one that stands behind none is refused
// for that, unless all are. A try of ours takes as long as all the rest of loading.
bool MayFollowFunctions() {
  if (access("/proc/sys/kernel/ftrace_enabled", F_OK) != 0) return false;
  constexpr uint32_t kNoFunction = 1;  // the number of a plain type
  std::array<bpf_insn, 2> program{};
  program[0].code = BPF_ALU64 | BPF_MOV | BPF_K;  // r0 = 0
  program[1].code = BPF_JMP | BPF_EXIT;
  LIBBPF_OPTS(bpf_prog_load_opts, options, .expected_attach_type = BPF_TRACE_FEXIT,
              .attach_btf_id = kNoFunction);
  const OwnedFd loaded(bpf_prog_load(BPF_PROG_TYPE_TRACING, "rs_nowhere", "Dual BSD/GPL",
                                     program.data(), program.size(), &options));
  return loaded || errno != EPERM;
}

// What can be known of a way without a try.
bool IsOffered(const Way& way) {
  if (way.suffix == kTracepoints) return SyscallTracepoints().contains("sys_exit_write");
  return way.suffix != kFunctions || MayFollowFunctions();
}

// "tracepoint/syscalls/sys_exit_write" -> "sys_exit_write"
std::string_view TracepointOf(const bpf_program* program) {
  const std::string_view section = bpf_program__section_name(program);
  return section.substr(section.rfind('/') + 1);
}

void Prepare(stdio_bpf& object, const Way& way, const SpeechBudget& budget) {
  object.rodata->rs_bytes_per_second = static_cast<uint64_t>(budget.bytes_per_second);
  object.rodata->rs_burst_bytes = static_cast<uint64_t>(budget.burst_bytes);
  object.rodata->rs_share_seed = std::random_device()();
  bpf_program* program = nullptr;
  bpf_object__for_each_program(program, object.obj) {
    const std::string_view name = bpf_program__name(program);
    bool other_way = false;
    for (const Way& other : kWays) {
      other_way = other_way || (other.name != way.name && name.ends_with(other.suffix));
    }
    bpf_program__set_autoload(program, !other_way);
    bpf_program__set_autoattach(program, !name.ends_with(kTracepoints));
  }
}

Result<Loaded> LoadBy(const Way& way, int tracked, const SpeechBudget& budget) {
  Loaded loaded;
  Skeleton& skeleton = loaded.skeleton;
  const auto prepare = [&way, &budget](stdio_bpf& object) { Prepare(object, way, budget); };
  if (const Status taken =
          LoadObject<stdio_bpf__open, stdio_bpf__load>(kSource, skeleton, tracked, prepare);
      !taken)
    return Error{taken.error()};
  if (const int error = stdio_bpf__attach(skeleton.get()); error != 0)
    return KernelRefusal(kSource, "cannot attach the BPF programs", -error);
  if (way.suffix != kTracepoints) return loaded;
  bpf_program* program = nullptr;
  bpf_object__for_each_program(program, skeleton->obj) {
    if (!std::string_view(bpf_program__name(program)).ends_with(kTracepoints)) continue;
    auto place = AttachToSyscall(bpf_program__fd(program), TracepointOf(program));
    if (!place) return Error{"stdio: " + place.error()};
    loaded.places.Add(std::move(*place));
  }
  return loaded;
}

}  // namespace

std::span<const ProgramRow> StdioProgramTable() {
  return kPrograms;
}

struct StdioPrograms::Impl {
  OnSaid on_said;
  int taken = 0;
  int64_t malformed = 0;
  std::string_view attached_by;
  Skeleton skeleton;
  Places places;
  RingHandle ring;  // goes first: it maps the skeleton's ring

  static int Take(void* context, void* data, size_t size) {
    auto* self = static_cast<Impl*>(context);
    const auto* said = static_cast<const rs_said*>(data);
    if (size < sizeof(rs_said) || said->bytes > size - sizeof(rs_said)) {
      ++self->malformed;
    } else {
      self->on_said(*said, {reinterpret_cast<const char*>(said + 1), said->bytes}, size);
    }
    return ++self->taken < kRecordsPerWake ? 0 : -EAGAIN;
  }
};

StdioPrograms::StdioPrograms(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

StdioPrograms::~StdioPrograms() = default;

Result<std::unique_ptr<StdioPrograms>> StdioPrograms::Load(int tracked, const SpeechBudget& budget,
                                                           OnSaid on_said) {
  auto impl = std::make_unique<Impl>();
  impl->on_said = std::move(on_said);
  std::string why;
  for (const Way& way : kWays) {
    if (!IsOffered(way)) continue;
    auto loaded = LoadBy(way, tracked, budget);
    if (loaded) {
      impl->skeleton = std::move(loaded->skeleton);
      impl->places = std::move(loaded->places);
      impl->attached_by = way.name;
      break;
    }
    why = loaded.error();
  }
  if (!impl->skeleton) return Error{why};
  if (const Status opened =
          OpenRing(kSource, impl->ring, impl->skeleton->maps.rs_ring, &Impl::Take, impl.get());
      !opened)
    return Error{opened.error()};
  return std::unique_ptr<StdioPrograms>(new StdioPrograms(std::move(impl)));
}

std::string_view StdioPrograms::attached_by() const {
  return impl_->attached_by;
}

int StdioPrograms::fd() const {
  return ring_buffer__epoll_fd(impl_->ring.get());
}

bool StdioPrograms::Consume() {
  impl_->taken = 0;
  ring_buffer__consume(impl_->ring.get());
  return impl_->taken < kRecordsPerWake;
}

void StdioPrograms::WorkedOff(uint32_t share, size_t room) {
  auto* const memory = impl_->skeleton->bss;  // the kernel's own, where it adds
  __atomic_fetch_sub(&memory->rs_waiting[share % RS_SHARES], room, __ATOMIC_RELAXED);
  __atomic_fetch_sub(&memory->rs_waiting_all, room, __ATOMIC_RELAXED);
}

std::optional<rs_standard> StdioPrograms::StartedWith(uint32_t pid) const {
  for (const bpf_map* map :
       {impl_->skeleton->maps.rs_started_with, impl_->skeleton->maps.rs_ended_with}) {
    rs_standard standard{};
    if (bpf_map_lookup_elem(bpf_map__fd(map), &pid, &standard) == 0) return standard;
  }
  return std::nullopt;
}

std::optional<rs_stream> StdioPrograms::Counts(uint32_t pid, uint32_t stream) const {
  const rs_stream_key key{pid, stream};
  rs_stream counts{};
  const int map = bpf_map__fd(impl_->skeleton->maps.rs_streams);
  if (bpf_map_lookup_elem(map, &key, &counts) != 0) return std::nullopt;
  return counts;
}

void StdioPrograms::Ignore(uint32_t pid, uint32_t stream, const rs_file& file) {
  const rs_stream_key key{pid, stream};
  bpf_map_update_elem(bpf_map__fd(impl_->skeleton->maps.rs_unwanted), &key, &file, BPF_ANY);
}

void StdioPrograms::Forget(uint32_t pid, uint64_t start_ns) {
  for (const uint32_t stream : {1u, 2u}) {
    const rs_stream_key key{pid, stream};
    const auto counts = Counts(pid, stream);
    if (counts && counts->start_ns != start_ns) continue;
    bpf_map_delete_elem(bpf_map__fd(impl_->skeleton->maps.rs_streams), &key);
    bpf_map_delete_elem(bpf_map__fd(impl_->skeleton->maps.rs_unwanted), &key);
  }
}

void StdioPrograms::Sweep(const std::function<bool(const rs_stream_key&, const rs_stream&)>& gone) {
  const int map = bpf_map__fd(impl_->skeleton->maps.rs_streams);
  std::vector<rs_stream_key> found;
  rs_stream_key key{};
  for (bool more = bpf_map_get_next_key(map, nullptr, &key) == 0;
       more && found.size() < RS_STREAMS_MAX; more = bpf_map_get_next_key(map, &key, &key) == 0) {
    found.push_back(key);
  }
  for (const rs_stream_key& each : found) {
    const auto counts = Counts(each.pid, each.stream);
    if (!counts || !gone(each, *counts)) continue;
    bpf_map_delete_elem(map, &each);
    bpf_map_delete_elem(bpf_map__fd(impl_->skeleton->maps.rs_unwanted), &each);
  }
}

int64_t StdioPrograms::no_room() const {
  return ReadCounter(bpf_map__fd(impl_->skeleton->maps.rs_no_room), 0);
}

int64_t StdioPrograms::malformed() const {
  return impl_->malformed;
}

}  // namespace rankscope::probes
