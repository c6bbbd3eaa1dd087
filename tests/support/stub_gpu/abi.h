// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The part of cuda.h, cuda_runtime_api.h and nccl.h whose shape matters to the calls below: values,
// sizes and how arguments are passed. Handles are opaque in the real ones too.
#pragma once

#include <cstddef>
#include <cstdint>

namespace stub_gpu {

using Result = int;  // CUresult, cudaError_t
inline constexpr Result kSuccess = 0;
inline constexpr Result kInvalidValue = 1;
inline constexpr Result kOutOfMemory = 2;
inline constexpr Result kNotFound = 500;
inline constexpr Result kNotReady = 600;

using Handle = void*;            // function, stream, event, graph, context
using DevicePointer = uint64_t;  // CUdeviceptr

struct Dim3 {
  unsigned x, y, z;  // 12 bytes: two registers
};

struct LaunchConfig {  // CUlaunchConfig
  unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes;
  Handle stream;
  void* attributes;
  unsigned attribute_count;
};

struct RuntimeLaunchConfig {  // cudaLaunchConfig_t
  Dim3 grid, block;
  size_t shared_bytes;
  Handle stream;
  void* attributes;
  unsigned attribute_count;
};

enum MemcpyKind : int { kHostToHost, kHostToDevice, kDeviceToHost, kDeviceToDevice, kDefault };

struct UniqueId {  // ncclUniqueId: by value, on the stack
  char internal[128];
};
inline constexpr int kNcclInvalidArgument = 4;
inline constexpr int kNcclSystemError = 2;
inline constexpr int kNcclInProgress = 7;

// Of our libcuda alone: how a stream's work is queued by who stands outside of it.
using Done = bool (*)(void* what, uint64_t number);
extern "C" {
// When what is queued on the stream so far is through, `ns` more than before; CLOCK_MONOTONIC.
int64_t stubGpuEnqueue(Handle stream, int64_t ns);
// The stream, and every event recorded on it, waits until `done` says so.
void stubGpuEnqueueWait(Handle stream, Done done, void* what, uint64_t number);
void stubGpuSetKernelNanoseconds(int64_t ns);
// From now on every launch and synchronisation fails like this, as after a fault on the card.
void stubGpuFault(Result result);
// Of our libnccl: from now on no collective of this rank gets through, though it is entered.
void stubNcclBlock();
}

}  // namespace stub_gpu
