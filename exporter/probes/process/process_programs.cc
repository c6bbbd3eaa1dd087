// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/probes/process/process_programs.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "bpf/events/process.h"
#include "exporter/probes/attach/kernel_object.h"
#include "exporter/probes/attach/map_reader.h"
#include "exporter/probes/attach/program_table.h"
#include "process.skel.h"

namespace rankscope::probes {
namespace {

constexpr std::array kPrograms = {
    ProgramRow{"process_fork", "tp_btf/sched_process_fork", "child and parent",
               "every fork: one map lookup; of a tracked process: 80 bytes, 2 us"},
    ProgramRow{"process_exec", "tp_btf/sched_process_exec", "arguments, environment, cgroup",
               "every exec: 1 KiB and a copy of its arguments and environment; 7 us"},
    ProgramRow{"process_exit", "tp_btf/sched_process_exit", "wait status",
               "every exit of a thread: one comparison; of a process: one map lookup; of a tracked "
               "process: 32 bytes, 1.5 us"},
    ProgramRow{"process_signal", "tp_btf/signal_generate",
               "sender and its cgroup, or the memory limit that was reached",
               "every signal: one comparison; a fatal one to a tracked process: 1 KiB"},
    ProgramRow{"process_oom", "raw_tp/mark_victim", "victim", "every out-of-memory kill"},
};

using Skeleton = std::unique_ptr<process_bpf, DestroyBy<process_bpf__destroy>>;

constexpr char kSource[] = "process";

}  // namespace

std::span<const ProgramRow> ProcessProgramTable() {
  return kPrograms;
}

struct ProcessPrograms::Impl {
  OnEvent on_event;
  int taken = 0;
  Skeleton skeleton;
  RingHandle ring;  // goes first: it maps the skeleton's ring

  static int Take(void* context, void* data, size_t size) {
    auto* self = static_cast<Impl*>(context);
    self->on_event({static_cast<const std::byte*>(data), size});
    return ++self->taken < kEventsPerWake ? 0 : -EAGAIN;
  }
};

ProcessPrograms::ProcessPrograms(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

ProcessPrograms::~ProcessPrograms() = default;

Result<std::unique_ptr<ProcessPrograms>> ProcessPrograms::Load(int tracked, OnEvent on_event) {
  auto impl = std::make_unique<Impl>();
  impl->on_event = std::move(on_event);
  if (const Status loaded =
          LoadObject<process_bpf__open, process_bpf__load>(kSource, impl->skeleton, tracked);
      !loaded)
    return Error{loaded.error()};
  if (const Status opened =
          OpenRing(kSource, impl->ring, impl->skeleton->maps.rs_events, &Impl::Take, impl.get());
      !opened)
    return Error{opened.error()};
  if (const int error = process_bpf__attach(impl->skeleton.get()); error != 0)
    return KernelRefusal(kSource, "cannot attach the BPF programs", -error);
  return std::unique_ptr<ProcessPrograms>(new ProcessPrograms(std::move(impl)));
}

int ProcessPrograms::fd() const {
  return ring_buffer__epoll_fd(impl_->ring.get());
}

void ProcessPrograms::Consume() {
  impl_->taken = 0;
  ring_buffer__consume(impl_->ring.get());
}

Losses ProcessPrograms::losses() const {
  const int map = bpf_map__fd(impl_->skeleton->maps.rs_lost);
  return {ReadCounter(map, RS_LOST_EVENT), ReadCounter(map, RS_LOST_PROCESS)};
}

}  // namespace rankscope::probes
