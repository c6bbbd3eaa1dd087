// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/support/stub_gpu/trainer/libraries.h"

#include <dlfcn.h>

#include <stdexcept>

namespace stub_trainer {
namespace {

void* Load(const std::string& path) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) throw std::runtime_error(dlerror());
  return library;
}

template <class Function>
void Find(void* library, const char* name, Function& out) {
  out = reinterpret_cast<Function>(dlsym(library, name));
  if (out == nullptr) throw std::runtime_error(dlerror());
}

}  // namespace

Libraries::Libraries(const std::string& folder) {
  void* driver = Load(folder + "/libcuda.so.1");
  void* runtime = Load(folder + "/libcudart.so.12");
  void* nccl = Load(folder + "/libnccl.so.2");
  Find(runtime, "cudaSetDevice", cudaSetDevice);
  Find(runtime, "cudaLaunchKernel", cudaLaunchKernel);
  Find(runtime, "cudaGraphLaunch", cudaGraphLaunch);
  Find(runtime, "cudaMalloc", cudaMalloc);
  Find(runtime, "cudaMemcpyAsync", cudaMemcpyAsync);
  Find(runtime, "cudaStreamCreate", cudaStreamCreate);
  Find(runtime, "cudaStreamSynchronize", cudaStreamSynchronize);
  Find(runtime, "cudaDeviceSynchronize", cudaDeviceSynchronize);
  Find(runtime, "cudaEventCreate", cudaEventCreate);
  Find(runtime, "cudaEventRecord", cudaEventRecord);
  Find(runtime, "cudaEventQuery", cudaEventQuery);
  Find(nccl, "ncclGetUniqueId", ncclGetUniqueId);
  Find(nccl, "ncclCommInitRank", ncclCommInitRank);
  Find(nccl, "ncclAllReduce", ncclAllReduce);
  Find(nccl, "ncclCommDestroy", ncclCommDestroy);
  Find(driver, "stubGpuSetKernelNanoseconds", stubGpuSetKernelNanoseconds);
  Find(driver, "stubGpuFault", stubGpuFault);
  Find(nccl, "stubNcclBlock", stubNcclBlock);
}

}  // namespace stub_trainer
