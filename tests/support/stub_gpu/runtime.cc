// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The stub libcudart.so.12: asks libcuda, loaded late and through cuGetProcAddress, as the real one
// does. Counts its own calls.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

#include "tests/support/stub_gpu/abi.h"
#include "tests/support/stub_gpu/counts.h"

namespace stub_gpu {
namespace {

using GetProcAddress = Result (*)(const char*, void**, int, uint64_t, int*);

GetProcAddress Driver() {
  static const auto get = [] {
    void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    void* symbol = library != nullptr ? dlsym(library, "cuGetProcAddress_v2") : nullptr;
    if (symbol == nullptr) {
      std::fprintf(stderr, "stub libcudart: %s\n", dlerror());
      std::abort();
    }
    return reinterpret_cast<GetProcAddress>(symbol);
  }();
  return get;
}

// A function of the driver, looked up once for each place that calls it.
template <class... Arguments>
class DriverCall {
 public:
  explicit DriverCall(const char* name, uint64_t flags = 0) {
    void* address = nullptr;
    if (Driver()(name, &address, 12020, flags, nullptr) != kSuccess) {
      std::fprintf(stderr, "stub libcudart: the driver has no %s\n", name);
      std::abort();
    }
    call_ = reinterpret_cast<Result (*)(Arguments...)>(address);
  }
  Result operator()(Arguments... arguments) const { return call_(arguments...); }

 private:
  Result (*call_)(Arguments...) = nullptr;
};

thread_local Result last_error = kSuccess;

Result Keep(Result result) {
  if (result != kSuccess && result != kNotReady) last_error = result;
  return result;
}

using DriverLaunch = DriverCall<Handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                                unsigned, Handle, void**, void**>;

Result Launch(const DriverLaunch& call, Handle function, Dim3 grid, Dim3 block, void** args,
              size_t shared_bytes, Handle stream) {
  return Keep(call(function, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                   static_cast<unsigned>(shared_bytes), stream, args, nullptr));
}

}  // namespace

extern "C" {

Result cudaLaunchKernel_impl(Handle function, Dim3 grid, Dim3 block, void** args,
                             size_t shared_bytes, Handle stream) {
  static const DriverLaunch call("cuLaunchKernel");
  Count("cudaLaunchKernel");
  return Launch(call, function, grid, block, args, shared_bytes, stream);
}
Result cudaLaunchKernel_ptsz_impl(Handle function, Dim3 grid, Dim3 block, void** args,
                                  size_t shared_bytes, Handle stream) {
  static const DriverLaunch call("cuLaunchKernel", 2);
  Count("cudaLaunchKernel_ptsz");
  return Launch(call, function, grid, block, args, shared_bytes, stream);
}
Result cudaLaunchKernelExC_impl(const RuntimeLaunchConfig* config, Handle function, void** args) {
  static const DriverCall<const LaunchConfig*, Handle, void**, void**> call("cuLaunchKernelEx");
  Count("cudaLaunchKernelExC");
  const LaunchConfig driver{config->grid.x,
                            config->grid.y,
                            config->grid.z,
                            config->block.x,
                            config->block.y,
                            config->block.z,
                            static_cast<unsigned>(config->shared_bytes),
                            config->stream,
                            config->attributes,
                            config->attribute_count};
  return Keep(call(&driver, function, args, nullptr));
}
Result cudaGraphLaunch_impl(Handle graph, Handle stream) {
  static const DriverCall<Handle, Handle> call("cuGraphLaunch");
  Count("cudaGraphLaunch");
  return Keep(call(graph, stream));
}

Result cudaMalloc_impl(DevicePointer* out, size_t bytes) {
  static const DriverCall<DevicePointer*, size_t> call("cuMemAlloc");
  Count("cudaMalloc");
  return Keep(call(out, bytes));
}
Result cudaMallocAsync_impl(DevicePointer* out, size_t bytes, Handle stream) {
  static const DriverCall<DevicePointer*, size_t, Handle> call("cuMemAllocAsync");
  Count("cudaMallocAsync");
  return Keep(call(out, bytes, stream));
}
Result cudaMallocManaged_impl(DevicePointer* out, size_t bytes, unsigned flags) {
  static const DriverCall<DevicePointer*, size_t, unsigned> call("cuMemAllocManaged");
  Count("cudaMallocManaged");
  return Keep(call(out, bytes, flags));
}
Result cudaMallocHost_impl(void** out, size_t bytes) {
  static const DriverCall<void**, size_t> call("cuMemAllocHost");
  Count("cudaMallocHost");
  return Keep(call(out, bytes));
}
Result cudaHostAlloc_impl(void** out, size_t bytes, unsigned flags) {
  static const DriverCall<void**, size_t, unsigned> call("cuMemHostAlloc");
  Count("cudaHostAlloc");
  return Keep(call(out, bytes, flags));
}
Result cudaMallocPitch_impl(DevicePointer* out, size_t* pitch, size_t width, size_t height) {
  static const DriverCall<DevicePointer*, size_t*, size_t, size_t, unsigned> call(
      "cuMemAllocPitch");
  Count("cudaMallocPitch");
  return Keep(call(out, pitch, width, height, 4));
}
Result cudaFree_impl(DevicePointer pointer) {
  static const DriverCall<DevicePointer> call("cuMemFree");
  Count("cudaFree");
  return Keep(call(pointer));
}
Result cudaFreeAsync_impl(DevicePointer pointer, Handle stream) {
  static const DriverCall<DevicePointer, Handle> call("cuMemFreeAsync");
  Count("cudaFreeAsync");
  return Keep(call(pointer, stream));
}

Result cudaMemcpy_impl(void* to, const void* from, size_t bytes, MemcpyKind kind) {
  static const DriverCall<void*, const void*, size_t> to_device("cuMemcpyHtoD");
  static const DriverCall<void*, const void*, size_t> to_host("cuMemcpyDtoH");
  static const DriverCall<void*, const void*, size_t> on_device("cuMemcpyDtoD");
  static const DriverCall<void*, const void*, size_t> unknown("cuMemcpy");
  Count("cudaMemcpy");
  Count("cudaMemcpy.bytes", bytes);
  if (kind == kHostToHost) return kSuccess;
  const auto& call = kind == kHostToDevice     ? to_device
                     : kind == kDeviceToHost   ? to_host
                     : kind == kDeviceToDevice ? on_device
                                               : unknown;
  return Keep(call(to, from, bytes));
}
Result cudaMemcpyAsync_impl(void* to, const void* from, size_t bytes, MemcpyKind kind,
                            Handle stream) {
  static const DriverCall<void*, const void*, size_t, Handle> to_device("cuMemcpyHtoDAsync");
  static const DriverCall<void*, const void*, size_t, Handle> to_host("cuMemcpyDtoHAsync");
  static const DriverCall<void*, const void*, size_t, Handle> on_device("cuMemcpyDtoDAsync");
  static const DriverCall<void*, const void*, size_t, Handle> unknown("cuMemcpyAsync");
  Count("cudaMemcpyAsync");
  Count("cudaMemcpyAsync.bytes", bytes);
  if (kind == kHostToHost) return kSuccess;
  const auto& call = kind == kHostToDevice     ? to_device
                     : kind == kDeviceToHost   ? to_host
                     : kind == kDeviceToDevice ? on_device
                                               : unknown;
  return Keep(call(to, from, bytes, stream));
}

Result cudaStreamCreate_impl(Handle* stream) {
  static const DriverCall<Handle*, unsigned> call("cuStreamCreate");
  return Keep(call(stream, 0));
}
Result cudaStreamSynchronize_impl(Handle stream) {
  static const DriverCall<Handle> call("cuStreamSynchronize");
  Count("cudaStreamSynchronize");
  return Keep(call(stream));
}
Result cudaDeviceSynchronize_impl() {
  static const DriverCall<> call("cuCtxSynchronize");
  Count("cudaDeviceSynchronize");
  return Keep(call());
}
Result cudaEventCreate_impl(Handle* event) {
  static const DriverCall<Handle*, unsigned> call("cuEventCreate");
  return Keep(call(event, 0));
}
Result cudaEventRecord_impl(Handle event, Handle stream) {
  static const DriverCall<Handle, Handle> call("cuEventRecord");
  Count("cudaEventRecord");
  return Keep(call(event, stream));
}
Result cudaEventQuery_impl(Handle event) {
  static const DriverCall<Handle> call("cuEventQuery");
  Count("cudaEventQuery");
  return Keep(call(event));
}
Result cudaEventSynchronize_impl(Handle event) {
  static const DriverCall<Handle> call("cuEventSynchronize");
  Count("cudaEventSynchronize");
  return Keep(call(event));
}

Result cudaSetDevice_impl(int device) {
  static const DriverCall<unsigned> init("cuInit");
  static const DriverCall<Handle*, int> retain("cuDevicePrimaryCtxRetain");
  Count("cudaSetDevice");
  Handle context = nullptr;
  init(0);
  return Keep(retain(&context, device));
}
Result cudaGetDeviceCount_impl(int* count) {
  static const DriverCall<int*> call("cuDeviceGetCount");
  return Keep(call(count));
}
Result cudaGetLastError_impl() {
  const Result result = last_error;
  last_error = kSuccess;
  return result;
}

}  // extern "C"

}  // namespace stub_gpu
