// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The stub libcuda.so.1: launches take time on a stream, memory ends at a capacity
// (STUB_GPU_MEMORY_BYTES, 80 GiB), everything is counted. With STUB_GPU_INNER_ENTRIES=1
// cuGetProcAddress hands out addresses that are not the exported ones, as a driver may.
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <map>
#include <mutex>
#include <string>

#include "tests/support/stub_gpu/abi.h"
#include "tests/support/stub_gpu/counts.h"
#include "tests/support/stub_gpu/timeline.h"

// Written by prologues.inc; the linker sets the bounds.
struct Entry {
  const char* name;
  void* exported;
  void* inner;
};
extern "C" [[gnu::visibility("hidden")]] const Entry __start_stub_entries[];
extern "C" [[gnu::visibility("hidden")]] const Entry __stop_stub_entries[];

namespace stub_gpu {
namespace {

constexpr int64_t kBytesPerNanosecond = 25;  // of a copy over PCIe

std::atomic<int64_t> kernel_ns{5'000};
std::atomic<Result> fault{kSuccess};

class Memory {
 public:
  Result Allocate(uint64_t bytes, DevicePointer& out) {
    const std::lock_guard lock(mutex_);
    if (bytes > capacity_ - used_) return kOutOfMemory;
    used_ += bytes;
    out = next_;
    blocks_[next_] = bytes;
    next_ += (bytes + 511) / 512 * 512;
    return kSuccess;
  }

  void Free(DevicePointer pointer) {
    const std::lock_guard lock(mutex_);
    const auto block = blocks_.find(pointer);
    if (block == blocks_.end()) return;
    used_ -= block->second;
    blocks_.erase(block);
  }

 private:
  static uint64_t Capacity() {
    const char* bytes = std::getenv("STUB_GPU_MEMORY_BYTES");
    return bytes != nullptr ? std::strtoull(bytes, nullptr, 10) : 80ull << 30;
  }

  std::mutex mutex_;
  uint64_t capacity_ = Capacity();
  uint64_t used_ = 0;
  DevicePointer next_ = 0x7f0000000000;
  std::map<DevicePointer, uint64_t> blocks_;
};

Memory& Card() {
  static Memory& memory = *new Memory;
  return memory;
}

// Counts the call, its bytes, or its failure and the bytes that were refused.
struct AllocationNames {
  const char* call;
  const char* bytes;
  const char* failed;
  const char* refused_bytes;
};

Result Allocate(const AllocationNames& names, uint64_t bytes, DevicePointer& out) {
  Count(names.call);
  const Result result = Card().Allocate(bytes, out);
  Count(result == kSuccess ? names.bytes : names.refused_bytes, bytes);
  if (result != kSuccess) Count(names.failed);
  return result;
}

Result AllocateHost(const char* call, uint64_t bytes, void** out) {
  Count(call);
  *out = std::malloc(bytes);
  return *out != nullptr ? kSuccess : kOutOfMemory;
}

Result Launch(const char* call, Handle stream) {
  Count(call);
  if (fault != kSuccess) return fault;
  StreamOf(stream).Enqueue(kernel_ns);
  return kSuccess;
}

void Sleep(int64_t ns) {
  const timespec time{ns / 1'000'000'000, ns % 1'000'000'000};
  nanosleep(&time, nullptr);
}

template <class Ready>
Result WaitFor(const char* call, Ready ready) {
  Count(call);
  int64_t pause_ns = 10'000;
  while (!ready()) {
    if (fault != kSuccess) return fault;
    Sleep(pause_ns);
    if (pause_ns < 1'000'000) pause_ns *= 2;
  }
  return fault;
}

Result Copy(const char* call, const char* bytes_name, uint64_t bytes, Handle stream, bool wait) {
  Count(call);
  Count(bytes_name, bytes);
  Stream& queue = StreamOf(stream);
  queue.Enqueue(static_cast<int64_t>(bytes) / kBytesPerNanosecond);
  while (wait && !queue.Idle()) Sleep(20'000);
  return fault;
}

const Entry* FindEntry(const std::string& name) {
  for (const Entry* entry = __start_stub_entries; entry != __stop_stub_entries; ++entry) {
    if (name == entry->name) return entry;
  }
  return nullptr;
}

}  // namespace

extern "C" {

int64_t stubGpuEnqueue(Handle stream, int64_t ns) {
  return StreamOf(stream).Enqueue(ns);
}
void stubGpuEnqueueWait(Handle stream, Done done, void* what, uint64_t number) {
  StreamOf(stream).EnqueueWait({done, what, number});
}
void stubGpuSetKernelNanoseconds(int64_t ns) {
  kernel_ns = ns;
}
void stubGpuFault(Result result) {
  fault = result;
}

Result cuInit_impl(unsigned) {
  Count("cuInit");
  return kSuccess;
}
Result cuDriverGetVersion_impl(int* version) {
  *version = 12020;
  return kSuccess;
}
Result cuDeviceGet_impl(int* device, int ordinal) {
  *device = ordinal;
  return kSuccess;
}
Result cuDeviceGetCount_impl(int* count) {
  *count = 8;
  return kSuccess;
}
Result cuDevicePrimaryCtxRetain_impl(Handle* context, int) {
  Count("cuDevicePrimaryCtxRetain");
  *context = context;
  return kSuccess;
}
Result cuCtxCreate_v2_impl(Handle* context, unsigned, int) {
  Count("cuCtxCreate");
  *context = context;
  return kSuccess;
}
Result cuCtxDestroy_v2_impl(Handle) {
  Count("cuCtxDestroy");
  return kSuccess;
}

Result cuLaunchKernel_impl(Handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                           unsigned, Handle stream, void**, void**) {
  return Launch("cuLaunchKernel", stream);
}
Result cuLaunchKernel_ptsz_impl(Handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                                unsigned, Handle stream, void**, void**) {
  return Launch("cuLaunchKernel_ptsz", stream);
}
Result cuLaunchKernelEx_impl(const LaunchConfig* config, Handle, void**, void**) {
  return Launch("cuLaunchKernelEx", config->stream);
}
Result cuLaunchKernelEx_ptsz_impl(const LaunchConfig* config, Handle, void**, void**) {
  return Launch("cuLaunchKernelEx_ptsz", config->stream);
}
Result cuLaunchCooperativeKernel_impl(Handle, unsigned, unsigned, unsigned, unsigned, unsigned,
                                      unsigned, unsigned, Handle stream, void**) {
  return Launch("cuLaunchCooperativeKernel", stream);
}
Result cuGraphLaunch_impl(Handle, Handle stream) {
  return Launch("cuGraphLaunch", stream);
}
Result cuGraphLaunch_ptsz_impl(Handle, Handle stream) {
  return Launch("cuGraphLaunch_ptsz", stream);
}

Result cuStreamCreate_impl(Handle* stream, unsigned) {
  *stream = NewStream();
  return kSuccess;
}
Result cuStreamSynchronize_impl(Handle stream) {
  return WaitFor("cuStreamSynchronize", [stream] { return StreamOf(stream).Idle(); });
}
Result cuStreamSynchronize_ptsz_impl(Handle stream) {
  return WaitFor("cuStreamSynchronize_ptsz", [stream] { return StreamOf(stream).Idle(); });
}
Result cuCtxSynchronize_impl() {
  return WaitFor("cuCtxSynchronize", AllIdle);
}
Result cuEventCreate_impl(Handle* event, unsigned) {
  *event = new Event;
  return kSuccess;
}
Result cuEventRecord_impl(Handle event, Handle stream) {
  Count("cuEventRecord");
  static_cast<Event*>(event)->Record(StreamOf(stream));
  return kSuccess;
}
Result cuEventQuery_impl(Handle event) {
  Count("cuEventQuery");
  const bool ready = static_cast<Event*>(event)->Ready();
  if (!ready) Count("cuEventQuery.not_ready");
  return ready ? kSuccess : kNotReady;
}
Result cuEventSynchronize_impl(Handle event) {
  return WaitFor("cuEventSynchronize", [event] { return static_cast<Event*>(event)->Ready(); });
}

Result cuMemAlloc_v2_impl(DevicePointer* out, size_t bytes) {
  return Allocate(
      {"cuMemAlloc", "cuMemAlloc.bytes", "cuMemAlloc.failed", "cuMemAlloc.refused_bytes"}, bytes,
      *out);
}
Result cuMemAllocAsync_impl(DevicePointer* out, size_t bytes, Handle) {
  return Allocate({"cuMemAllocAsync", "cuMemAllocAsync.bytes", "cuMemAllocAsync.failed",
                   "cuMemAllocAsync.refused_bytes"},
                  bytes, *out);
}
Result cuMemAllocManaged_impl(DevicePointer* out, size_t bytes, unsigned) {
  return Allocate({"cuMemAllocManaged", "cuMemAllocManaged.bytes", "cuMemAllocManaged.failed",
                   "cuMemAllocManaged.refused_bytes"},
                  bytes, *out);
}
Result cuMemAllocPitch_v2_impl(DevicePointer* out, size_t* pitch, size_t width, size_t height,
                               unsigned) {
  *pitch = (width + 511) / 512 * 512;
  return Allocate({"cuMemAllocPitch", "cuMemAllocPitch.bytes", "cuMemAllocPitch.failed",
                   "cuMemAllocPitch.refused_bytes"},
                  *pitch * height, *out);
}
Result cuMemCreate_impl(DevicePointer* out, size_t bytes, const void*, unsigned long long) {
  return Allocate(
      {"cuMemCreate", "cuMemCreate.bytes", "cuMemCreate.failed", "cuMemCreate.refused_bytes"},
      bytes, *out);
}
Result cuMemAllocHost_v2_impl(void** out, size_t bytes) {
  return AllocateHost("cuMemAllocHost", bytes, out);
}
Result cuMemHostAlloc_impl(void** out, size_t bytes, unsigned) {
  return AllocateHost("cuMemHostAlloc", bytes, out);
}
Result cuMemFree_v2_impl(DevicePointer pointer) {
  Count("cuMemFree");
  Card().Free(pointer);
  return kSuccess;
}
Result cuMemFreeAsync_impl(DevicePointer pointer, Handle) {
  Count("cuMemFreeAsync");
  Card().Free(pointer);
  return kSuccess;
}

Result cuMemcpy_impl(DevicePointer, DevicePointer, size_t bytes) {
  return Copy("cuMemcpy", "cuMemcpy.bytes", bytes, nullptr, true);
}
Result cuMemcpyAsync_impl(DevicePointer, DevicePointer, size_t bytes, Handle stream) {
  return Copy("cuMemcpyAsync", "cuMemcpyAsync.bytes", bytes, stream, false);
}
Result cuMemcpyHtoD_v2_impl(DevicePointer, const void*, size_t bytes) {
  return Copy("cuMemcpyHtoD", "cuMemcpyHtoD.bytes", bytes, nullptr, true);
}
Result cuMemcpyDtoH_v2_impl(void*, DevicePointer, size_t bytes) {
  return Copy("cuMemcpyDtoH", "cuMemcpyDtoH.bytes", bytes, nullptr, true);
}
Result cuMemcpyDtoD_v2_impl(DevicePointer, DevicePointer, size_t bytes) {
  return Copy("cuMemcpyDtoD", "cuMemcpyDtoD.bytes", bytes, nullptr, false);
}
Result cuMemcpyHtoDAsync_v2_impl(DevicePointer, const void*, size_t bytes, Handle stream) {
  return Copy("cuMemcpyHtoDAsync", "cuMemcpyHtoDAsync.bytes", bytes, stream, false);
}
Result cuMemcpyHtoDAsync_v2_ptsz_impl(DevicePointer, const void*, size_t bytes, Handle stream) {
  return Copy("cuMemcpyHtoDAsync_ptsz", "cuMemcpyHtoDAsync_ptsz.bytes", bytes, stream, false);
}
Result cuMemcpyDtoHAsync_v2_impl(void*, DevicePointer, size_t bytes, Handle stream) {
  return Copy("cuMemcpyDtoHAsync", "cuMemcpyDtoHAsync.bytes", bytes, stream, false);
}
Result cuMemcpyDtoHAsync_v2_ptsz_impl(void*, DevicePointer, size_t bytes, Handle stream) {
  return Copy("cuMemcpyDtoHAsync_ptsz", "cuMemcpyDtoHAsync_ptsz.bytes", bytes, stream, false);
}
Result cuMemcpyDtoDAsync_v2_impl(DevicePointer, DevicePointer, size_t bytes, Handle stream) {
  return Copy("cuMemcpyDtoDAsync", "cuMemcpyDtoDAsync.bytes", bytes, stream, false);
}

// The newest variant of a name, as the real one chooses it by the version that is asked for.
Result cuGetProcAddress_v2_impl(const char* symbol, void** out, int, uint64_t flags, int*) {
  const char* inner = std::getenv("STUB_GPU_INNER_ENTRIES");
  const std::string ending = (flags & 2) != 0 ? "_ptsz" : "";
  for (const char* version : {"_v2", ""}) {
    for (const std::string& variant : {ending, std::string()}) {
      const Entry* entry = FindEntry(symbol + (version + variant));
      if (entry == nullptr) continue;
      *out = inner != nullptr && inner[0] == '1' ? entry->inner : entry->exported;
      return kSuccess;
    }
  }
  *out = nullptr;
  return kNotFound;
}

}  // extern "C"

}  // namespace stub_gpu
