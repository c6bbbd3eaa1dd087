// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/probes/io/io_programs.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "exporter/probes/attach/kernel_object.h"
#include "exporter/probes/attach/map_reader.h"
#include "exporter/probes/attach/places.h"
#include "exporter/probes/attach/program_table.h"
#include "exporter/probes/attach/syscall_tracepoints.h"
#include "io.skel.h"

namespace rankscope::probes {
namespace {

constexpr std::array kPrograms = {
    ProgramRow{"io_opened", "tracepoint/syscalls/sys_exit_openat",
               "checkpoints opened for writing, or looked for and not found",
               "every openat(): one map lookup; of a tracked process: the names of the files that "
               "it opens"},
    ProgramRow{"io_looked", "tracepoint/syscalls/sys_exit_newfstatat",
               "checkpoints looked for and not found",
               "every stat() of a path: one comparison; of a missing file: one map lookup"},
    ProgramRow{"io_failed",
               "tracepoint/syscalls/sys_exit_{write,pwrite64,writev,pwritev2,ftruncate,fallocate,"
               "fsync,fdatasync,close,sendfile64}",
               "the file and the error", "every such call: one comparison"},
    ProgramRow{"io_closing", "tracepoint/syscalls/sys_enter_close",
               "bytes and time of checkpoints and data files",
               "every close(): one map lookup; of a checkpoint or data file: 200 bytes"},
    ProgramRow{"io_sync_begins", "tracepoint/syscalls/sys_enter_{fsync,fdatasync}",
               "nothing; keeps the time", "every such call: one map lookup"},
    ProgramRow{"io_sync_ends", "tracepoint/syscalls/sys_exit_{fsync,fdatasync}", "time per process",
               "every such call: one map lookup"},
    ProgramRow{"io_bus_error", "tp_btf/signal_generate", "free space of the shared memory",
               "every signal: one comparison"},
};

using Skeleton = std::unique_ptr<io_bpf, DestroyBy<io_bpf__destroy>>;

constexpr char kSource[] = "io";

}  // namespace

std::span<const ProgramRow> IoProgramTable() {
  return kPrograms;
}

struct IoPrograms::Impl {
  OnEvent on_event;
  std::string missing;
  Skeleton skeleton;
  RingHandle ring;  // goes first: it maps the skeleton's ring
  LinkHandle bus_error;
  Places places;

  static int Take(void* context, void* data, size_t size) {
    auto* self = static_cast<Impl*>(context);
    if (size >= sizeof(rs_io_event)) self->on_event(*static_cast<const rs_io_event*>(data));
    return 0;
  }

  // A call that this kernel or architecture does not have is only said.
  void AttachAll() {
    const auto& programs = skeleton->progs;
    const auto attach = [this](bpf_program* program, std::string_view side, auto... calls) {
      for (const std::string_view call : {calls...}) {
        const std::string name = std::string(side) + std::string(call);
        Result<OwnedFd> place = AttachToSyscall(bpf_program__fd(program), name);
        if (place) {
          places.Add(std::move(*place));
        } else {
          missing += (missing.empty() ? "" : ", ") + name;
        }
      }
    };
    attach(programs.io_opened, "sys_exit_", "openat");
    attach(programs.io_looked, "sys_exit_", "newfstatat");
    attach(programs.io_failed, "sys_exit_", "write", "pwrite64", "writev", "pwritev2", "ftruncate",
           "fallocate", "fsync", "fdatasync", "close", "sendfile64");
    attach(programs.io_closing, "sys_enter_", "close");
    attach(programs.io_sync_begins, "sys_enter_", "fsync", "fdatasync");
    attach(programs.io_sync_ends, "sys_exit_", "fsync", "fdatasync");
    bus_error.reset(bpf_program__attach(programs.io_bus_error));
  }
};

IoPrograms::IoPrograms(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

IoPrograms::~IoPrograms() = default;

Result<std::unique_ptr<IoPrograms>> IoPrograms::Load(int tracked, OnEvent on_event) {
  auto impl = std::make_unique<Impl>();
  impl->on_event = std::move(on_event);
  if (const Status loaded =
          LoadObject<io_bpf__open, io_bpf__load>(kSource, impl->skeleton, tracked);
      !loaded)
    return Error{loaded.error()};
  if (const Status opened =
          OpenRing(kSource, impl->ring, impl->skeleton->maps.rs_io_events, &Impl::Take, impl.get());
      !opened)
    return Error{opened.error()};
  impl->AttachAll();
  if (impl->places.empty()) {
    return Error{
        "io: the tracepoints of system calls are not readable; mount tracefs at "
        "/sys/kernel/tracing"};
  }
  return std::unique_ptr<IoPrograms>(new IoPrograms(std::move(impl)));
}

int IoPrograms::fd() const {
  return ring_buffer__epoll_fd(impl_->ring.get());
}

void IoPrograms::Consume() {
  ring_buffer__consume(impl_->ring.get());
}

std::vector<std::pair<rs_io_failure_key, rs_io_failure>> IoPrograms::Failures() const {
  return ReadMap<rs_io_failure_key, rs_io_failure>(
      bpf_map__fd(impl_->skeleton->maps.rs_io_failures), RS_IO_FAILURES);
}

std::vector<std::pair<uint32_t, rs_io_process>> IoPrograms::Processes() const {
  return ReadMap<uint32_t, rs_io_process>(bpf_map__fd(impl_->skeleton->maps.rs_io_processes),
                                          RS_IO_PROCESSES);
}

std::vector<std::pair<rs_io_key, rs_io_file>> IoPrograms::Files() const {
  return ReadMap<rs_io_key, rs_io_file>(bpf_map__fd(impl_->skeleton->maps.rs_io_files),
                                        RS_IO_FILES);
}

std::vector<std::pair<uint64_t, uint64_t>> IoPrograms::Syncs() const {
  return ReadMap<uint64_t, uint64_t>(bpf_map__fd(impl_->skeleton->maps.rs_io_syncs), RS_IO_SYNCS);
}

void IoPrograms::Forget(const rs_io_failure_key& key) {
  bpf_map_delete_elem(bpf_map__fd(impl_->skeleton->maps.rs_io_failures), &key);
}

void IoPrograms::Forget(const rs_io_key& key) {
  bpf_map_delete_elem(bpf_map__fd(impl_->skeleton->maps.rs_io_files), &key);
}

void IoPrograms::ForgetProcess(uint32_t pid) {
  bpf_map_delete_elem(bpf_map__fd(impl_->skeleton->maps.rs_io_processes), &pid);
}

int64_t IoPrograms::lost() const {
  return SumCounters(bpf_map__fd(impl_->skeleton->maps.rs_io_lost), RS_IO_LOST_KINDS);
}

const std::string& IoPrograms::missing() const {
  return impl_->missing;
}

}  // namespace rankscope::probes
