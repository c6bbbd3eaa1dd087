// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The CUDA runtime and NCCL, loaded while the program runs, as Python extensions are. Throws
// std::runtime_error where one cannot be. Any thread.
#pragma once

#include <string>

#include "tests/support/stub_gpu/abi.h"

namespace stub_trainer {

using stub_gpu::DevicePointer;
using stub_gpu::Dim3;
using stub_gpu::Handle;
using stub_gpu::MemcpyKind;
using stub_gpu::Result;
using stub_gpu::UniqueId;

struct Libraries {
  explicit Libraries(const std::string& folder);

  Result (*cudaSetDevice)(int);
  Result (*cudaLaunchKernel)(Handle, Dim3, Dim3, void**, size_t, Handle);
  Result (*cudaGraphLaunch)(Handle, Handle);
  Result (*cudaMalloc)(DevicePointer*, size_t);
  Result (*cudaMemcpyAsync)(void*, const void*, size_t, MemcpyKind, Handle);
  Result (*cudaStreamCreate)(Handle*);
  Result (*cudaStreamSynchronize)(Handle);
  Result (*cudaDeviceSynchronize)();
  Result (*cudaEventCreate)(Handle*);
  Result (*cudaEventRecord)(Handle, Handle);
  Result (*cudaEventQuery)(Handle);
  Result (*ncclGetUniqueId)(UniqueId*);
  Result (*ncclCommInitRank)(Handle*, int, UniqueId, int);
  Result (*ncclAllReduce)(const void*, void*, size_t, int, int, Handle, Handle);
  Result (*ncclCommDestroy)(Handle);
  void (*stubGpuSetKernelNanoseconds)(int64_t);
  void (*stubGpuFault)(Result);
  void (*stubNcclBlock)();
};

}  // namespace stub_trainer
