// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/probes/calls/call_object.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "cuda.skel.h"
#include "exporter/probes/attach/kernel_object.h"
#include "exporter/probes/attach/map_reader.h"
#include "exporter/probes/attach/program_table.h"
#include "nccl.skel.h"

namespace rankscope::probes {
namespace {

constexpr std::array kPrograms = {
    ProgramRow{"cuda_launch", "uprobe: launches of kernels and graphs, runtime and driver",
               "number of launches, gaps between launches by length",
               "every launch: 0.7 us if the kernel can emulate the probed instruction; within "
               "`ebpf.budget`"},
    ProgramRow{"cuda_launch_end", "uretprobe: the same functions, in short windows",
               "duration of launches", "every launch in the window: 0.4 us more"},
    ProgramRow{"cuda_begin", "uprobe: synchronizations, copies, allocations",
               "arguments of the call", "every such call: 0.7 us"},
    ProgramRow{"cuda_end", "uretprobe: the same", "duration, bytes, results",
               "every such call: 0.4 us more; a failed one: 72 bytes"},
    ProgramRow{"nccl_begin",
               "uprobe: collectives, groups, communicators; event queries of the watchdog",
               "number of calls, bytes", "every such call: 0.8 us"},
    ProgramRow{"nccl_end", "uretprobe: the same", "duration, results, new communicators",
               "every such call: 0.5 us more; of a communicator: 72 bytes"},
};

// As calls.h counts what it could not keep.
constexpr uint32_t kLostKinds = 2;
constexpr int kCallsPerWake = 1024;

constexpr char kSource[] = "calls";

// As bpf_ktime_get_ns() counts.
uint64_t KernelNow() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

int FdOf(const bpf_object* object, const char* program) {
  const bpf_program* const found = bpf_object__find_program_by_name(object, program);
  return found != nullptr ? bpf_program__fd(found) : -1;
}

}  // namespace

std::span<const ProgramRow> CallProgramTable() {
  return kPrograms;
}

struct CallObject::Impl {
  OnCall on_call;
  int taken = 0;
  std::unique_ptr<cuda_bpf, DestroyBy<cuda_bpf__destroy>> cuda;
  std::unique_ptr<nccl_bpf, DestroyBy<nccl_bpf__destroy>> nccl;
  bpf_object* object = nullptr;
  RingHandle ring;  // goes first: it maps the object's ring

  int MapFd(const char* name) const { return bpf_object__find_map_fd_by_name(object, name); }

  static int Take(void* context, void* data, size_t size) {
    auto* self = static_cast<Impl*>(context);
    if (size >= sizeof(rs_call)) self->on_call(*static_cast<const rs_call*>(data));
    return ++self->taken < kCallsPerWake ? 0 : -EAGAIN;
  }
};

CallObject::CallObject(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

CallObject::~CallObject() = default;

Result<std::shared_ptr<CallObject>> CallObject::Load(CallObjectKind kind, int tracked,
                                                     AttachVia via, OnCall on_call) {
  auto impl = std::make_unique<Impl>();
  impl->on_call = std::move(on_call);
  const auto prepare = [&impl, via](auto& skeleton) {
    impl->object = skeleton.obj;
    bpf_program* program = nullptr;
    bpf_object__for_each_program(program, skeleton.obj) {
      bpf_program__set_expected_attach_type(program,
                                            static_cast<bpf_attach_type>(ExpectedAttachType(via)));
    }
  };
  const Status loaded =
      kind == CallObjectKind::kCuda
          ? LoadObject<cuda_bpf__open, cuda_bpf__load>(kSource, impl->cuda, tracked, prepare)
          : LoadObject<nccl_bpf__open, nccl_bpf__load>(kSource, impl->nccl, tracked, prepare);
  if (!loaded) return Error{loaded.error()};
  const bpf_map* const events = bpf_object__find_map_by_name(impl->object, "rs_events");
  if (const Status opened = OpenRing(kSource, impl->ring, events, &Impl::Take, impl.get()); !opened)
    return Error{opened.error()};
  return std::shared_ptr<CallObject>(new CallObject(std::move(impl)));
}

// Whoever has counts is counted.
void CallObject::TrackSelf(bool track) const {
  const uint32_t pid = static_cast<uint32_t>(getpid());
  const rs_cuda_counts of_cuda{};
  const rs_nccl_counts of_nccl{};
  if (!track) {
    bpf_map_delete_elem(counts(), &pid);
  } else {
    bpf_map_update_elem(counts(), &pid, impl_->cuda ? static_cast<const void*>(&of_cuda) : &of_nccl,
                        BPF_ANY);
  }
}

void CallObject::BeginTiming() const {
  impl_->cuda->bss->rs_timed_since_ns = KernelNow();
}

void CallObject::BeginLaunches() const {
  impl_->cuda->bss->rs_launches_since_ns = KernelNow();
}

CallPrograms CallObject::Programs(const std::shared_ptr<CallObject>& self) {
  const bpf_object* const object = self->impl_->object;
  const auto fd = [object](const char* name) { return FdOf(object, name); };
  // The caller keeps `alive`, and with it what the function stands on.
  const auto track_self = [raw = self.get()](bool track) { raw->TrackSelf(track); };
  if (self->impl_->cuda) {
    return {fd("cuda_launch"),
            fd("cuda_launch_end"),
            fd("cuda_begin"),
            fd("cuda_end"),
            self,
            track_self,
            [raw = self.get()] { raw->BeginTiming(); },
            [raw = self.get()] { raw->BeginLaunches(); }};
  }
  return {-1, -1, fd("nccl_begin"), fd("nccl_end"), self, track_self, {}, {}};
}

int CallObject::fd() const {
  return ring_buffer__epoll_fd(impl_->ring.get());
}

void CallObject::Consume() {
  impl_->taken = 0;
  ring_buffer__consume(impl_->ring.get());
}

int64_t CallObject::lost() const {
  return SumCounters(impl_->MapFd("rs_lost"), kLostKinds);
}

int CallObject::counts() const {
  return impl_->MapFd(impl_->cuda ? "rs_cuda" : "rs_nccl");
}

int CallObject::communicators() const {
  return impl_->MapFd("rs_communicators");
}

int CallObject::asked() const {
  return impl_->MapFd("rs_asked");
}

}  // namespace rankscope::probes
