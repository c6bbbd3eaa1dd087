// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/probes/wait/wait_programs.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <string>
#include <unordered_set>
#include <utility>

#include "bpf/events/sched.h"
#include "exporter/probes/attach/kernel_object.h"
#include "exporter/probes/attach/map_reader.h"
#include "exporter/probes/attach/program_table.h"
#include "exporter/probes/wait/wait_calls.h"
#include "sched.skel.h"

namespace rankscope::probes {
namespace {

constexpr std::array kPrograms = {
    ProgramRow{"sched_switch", "tp_btf/sched_switch",
               "none; adds up time per thread and kind of wait",
               "while there are ranks, every switch: a check of two bits, not measurable beside "
               "the 2.5 us of a switch; of a tracked thread: two map lookups, the call it waits in "
               "and that call's file, 0.2 us"},
    ProgramRow{"sched_wakeup", "tp_btf/sched_wakeup", "none; adds up the same times",
               "only if the kernel does not count time in run queues; every wakeup: the same"},
};

using Skeleton = std::unique_ptr<sched_bpf, DestroyBy<sched_bpf__destroy>>;

constexpr char kSource[] = "wait";

// "510 nvidia-uvm" in /proc/devices; 0 where no driver is loaded.
uint32_t UvmMajor() {
  std::ifstream devices("/proc/devices");
  for (std::string line; std::getline(devices, line);) {
    if (!line.ends_with(" nvidia-uvm")) continue;
    uint32_t major = 0;
    const size_t begin = line.find_first_not_of(' ');
    std::from_chars(line.data() + begin, line.data() + line.size(), major);
    return major;
  }
  return 0;
}

void SetConstants(sched_bpf& skeleton) {
  const std::array<uint8_t, RS_CALLS> calls = WaitCalls();
  std::memcpy(const_cast<uint8_t*>(skeleton.rodata->rs_calls), calls.data(), calls.size());
  const_cast<uint32_t&>(skeleton.rodata->rs_uvm_major) = UvmMajor();
  // Which shows the kernel's own count of time in run queues.
  if (access("/proc/self/schedstat", R_OK) == 0) {
    const_cast<uint8_t&>(skeleton.rodata->rs_delay_counted) = 1;
    bpf_program__set_autoload(skeleton.progs.sched_wakeup, false);
  }
}

ThreadTimes FromKernel(uint32_t tid, const rs_thread& thread) {
  ThreadTimes times;
  times.tid = static_cast<int32_t>(tid);
  times.tgid = static_cast<int32_t>(thread.tgid);
  times.state = WaitClassOf(thread.state);
  times.since = times.counted_to = {static_cast<int64_t>(thread.since_ns)};
  times.call = thread.call;
  times.uninterruptible = thread.uninterruptible != 0;
  times.ended = thread.ended != 0;
  for (size_t i = 0; i < RS_WAITS; ++i) times.spent[i] = {static_cast<int64_t>(thread.ns[i])};
  times.run = {static_cast<int64_t>(thread.run_ns)};
  times.silent = {static_cast<int64_t>(thread.silent_ns)};
  return times;
}

}  // namespace

std::span<const ProgramRow> WaitProgramTable() {
  return kPrograms;
}

struct WaitPrograms::Impl {
  Skeleton skeleton;
  bool attached = false;
  std::unordered_set<int32_t> watched;
};

WaitPrograms::WaitPrograms(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

WaitPrograms::~WaitPrograms() = default;

Result<std::unique_ptr<WaitPrograms>> WaitPrograms::Load(int tracked) {
  auto impl = std::make_unique<Impl>();
  if (const Status loaded = LoadObject<sched_bpf__open, sched_bpf__load>(kSource, impl->skeleton,
                                                                         tracked, &SetConstants);
      !loaded)
    return Error{loaded.error()};
  return std::unique_ptr<WaitPrograms>(new WaitPrograms(std::move(impl)));
}

Status WaitPrograms::Attach() {
  if (impl_->attached) return {};
  if (const int error = sched_bpf__attach(impl_->skeleton.get()); error != 0) {
    sched_bpf__detach(impl_->skeleton.get());
    return KernelRefusal(kSource, "cannot attach the BPF programs", -error);
  }
  impl_->attached = true;
  return {};
}

void WaitPrograms::Detach() {
  if (!std::exchange(impl_->attached, false)) return;
  sched_bpf__detach(impl_->skeleton.get());
}

bool WaitPrograms::attached() const {
  return impl_->attached;
}

void WaitPrograms::Watch(std::span<const int32_t> pids) {
  impl_->watched = {pids.begin(), pids.end()};
  std::array<uint64_t, RS_WATCHED_WORDS> bits{};
  for (const int32_t pid : pids) {
    const auto number = static_cast<uint32_t>(pid);
    bits[(number >> 6) & (RS_WATCHED_WORDS - 1)] |= uint64_t{1} << (number & 63);
  }
  // Word by word, since the programs look at any moment.
  for (size_t i = 0; i < bits.size(); ++i) {
    auto& word = impl_->skeleton->bss->rs_watched[i];
    if (word != bits[i]) word = bits[i];
  }
}

void WaitPrograms::Seed(const ThreadTimes& thread) {
  const uint32_t tid = static_cast<uint32_t>(thread.tid);
  rs_thread value{};
  value.since_ns = static_cast<uint64_t>(thread.since.ns);
  value.tgid = static_cast<uint32_t>(thread.tgid);
  value.call = thread.call;
  value.state = static_cast<uint8_t>(thread.state);
  value.uninterruptible = thread.uninterruptible;
  bpf_map_update_elem(bpf_map__fd(impl_->skeleton->maps.rs_threads), &tid, &value, BPF_NOEXIST);
}

std::vector<ThreadTimes> WaitPrograms::Read() {
  // A batch of a hash is whole buckets: room for one that is far longer than any should be.
  constexpr uint32_t kBatch = 1024;
  const int map = bpf_map__fd(impl_->skeleton->maps.rs_threads);
  std::vector<ThreadTimes> all;
  std::vector<uint32_t> tids(kBatch);
  std::vector<rs_thread> threads(kBatch);
  std::vector<uint32_t> gone;
  uint32_t position = 0;
  for (bool first = true, more = true; more; first = false) {
    uint32_t count = kBatch;
    more = bpf_map_lookup_batch(map, first ? nullptr : &position, &position, tids.data(),
                                threads.data(), &count, nullptr) == 0;
    if (!more && errno != ENOENT) break;  // ENOENT: these are the last
    for (uint32_t i = 0; i < count; ++i) {
      const ThreadTimes times = FromKernel(tids[i], threads[i]);
      const bool watched = impl_->watched.contains(times.tgid);
      if (times.ended || !watched) gone.push_back(tids[i]);
      if (watched) all.push_back(times);
    }
  }
  for (const uint32_t tid : gone) bpf_map_delete_elem(map, &tid);
  return all;
}

int64_t WaitPrograms::lost() const {
  return ReadCounter(bpf_map__fd(impl_->skeleton->maps.rs_lost), RS_LOST_THREAD);
}

}  // namespace rankscope::probes
