// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/probes/calls/call_table.h"

#include <array>

namespace rankscope::probes {
namespace {

// _ptsz and _ptds are the same functions for programs built with a default stream for each thread.
// cudaMemcpy's direction is its fourth argument.
constexpr std::array kCuda = {
    CallRow{"cuLaunchKernel", RS_CUDA_LAUNCH, 0, 0, 0, 0, 0, 0, true},
    CallRow{"cuLaunchKernel_ptsz", RS_CUDA_LAUNCH, 0, 0, 0, 0, 0, 0, false},
    CallRow{"cuLaunchKernelEx", RS_CUDA_LAUNCH, 0, 0, 0, 0, 0, 0, true},
    CallRow{"cuLaunchKernelEx_ptsz", RS_CUDA_LAUNCH, 0, 0, 0, 0, 0, 0, false},
    CallRow{"cuLaunchCooperativeKernel", RS_CUDA_LAUNCH, 0, 0, 0, 0, 0, 0, false},
    CallRow{"cuLaunchCooperativeKernel_ptsz", RS_CUDA_LAUNCH, 0, 0, 0, 0, 0, 0, false},
    CallRow{"cuLaunchCooperativeKernelMultiDevice", RS_CUDA_LAUNCH, 0, 0, 0, 0, 0, 0, false},
    CallRow{"cudaLaunchKernel", RS_CUDA_LAUNCH, 1, 0, 0, 0, 0, 0, true},
    CallRow{"cudaLaunchKernel_ptsz", RS_CUDA_LAUNCH, 1, 0, 0, 0, 0, 0, false},
    CallRow{"cudaLaunchKernelExC", RS_CUDA_LAUNCH, 1, 0, 0, 0, 0, 0, true},
    CallRow{"cudaLaunchKernelExC_ptsz", RS_CUDA_LAUNCH, 1, 0, 0, 0, 0, 0, false},
    CallRow{"cudaLaunchCooperativeKernel", RS_CUDA_LAUNCH, 1, 0, 0, 0, 0, 0, false},
    CallRow{"cudaLaunchCooperativeKernel_ptsz", RS_CUDA_LAUNCH, 1, 0, 0, 0, 0, 0, false},
    CallRow{"cuGraphLaunch", RS_CUDA_GRAPH, 0, 0, 0, 0, 0, 0, true},
    CallRow{"cuGraphLaunch_ptsz", RS_CUDA_GRAPH, 0, 0, 0, 0, 0, 0, false},
    CallRow{"cudaGraphLaunch", RS_CUDA_GRAPH, 1, 0, 0, 0, 0, 0, true},
    CallRow{"cudaGraphLaunch_ptsz", RS_CUDA_GRAPH, 1, 0, 0, 0, 0, 0, false},
    CallRow{"cuStreamSynchronize", RS_CUDA_SYNC, 0, 0, 0, 0, 0, 0, true},
    CallRow{"cuStreamSynchronize_ptsz", RS_CUDA_SYNC, 0, 0, 0, 0, 0, 0, false},
    CallRow{"cuCtxSynchronize", RS_CUDA_SYNC, 0, 0, 0, 0, 0, 0, true},
    CallRow{"cuEventSynchronize", RS_CUDA_SYNC, 0, 0, 0, 0, 0, 0, false},
    CallRow{"cudaDeviceSynchronize", RS_CUDA_SYNC, 1, 0, 0, 0, 0, 0, true},
    CallRow{"cudaStreamSynchronize", RS_CUDA_SYNC, 1, 0, 0, 0, 0, 0, true},
    CallRow{"cudaStreamSynchronize_ptsz", RS_CUDA_SYNC, 1, 0, 0, 0, 0, 0, false},
    CallRow{"cudaEventSynchronize", RS_CUDA_SYNC, 1, 0, 0, 0, 0, 0, false},
    CallRow{"cuMemcpyHtoD_v2", RS_CUDA_COPY, 0, 3, RS_TO_DEVICE, 0, 0, 0, false},
    CallRow{"cuMemcpyHtoD_v2_ptds", RS_CUDA_COPY, 0, 3, RS_TO_DEVICE, 0, 0, 0, false},
    CallRow{"cuMemcpyHtoDAsync_v2", RS_CUDA_COPY, 0, 3, RS_TO_DEVICE, 0, 0, 0, false},
    CallRow{"cuMemcpyHtoDAsync_v2_ptsz", RS_CUDA_COPY, 0, 3, RS_TO_DEVICE, 0, 0, 0, false},
    CallRow{"cuMemcpyDtoH_v2", RS_CUDA_COPY, 0, 3, RS_TO_HOST, 0, 0, 0, false},
    CallRow{"cuMemcpyDtoH_v2_ptds", RS_CUDA_COPY, 0, 3, RS_TO_HOST, 0, 0, 0, false},
    CallRow{"cuMemcpyDtoHAsync_v2", RS_CUDA_COPY, 0, 3, RS_TO_HOST, 0, 0, 0, false},
    CallRow{"cuMemcpyDtoHAsync_v2_ptsz", RS_CUDA_COPY, 0, 3, RS_TO_HOST, 0, 0, 0, false},
    CallRow{"cuMemcpyDtoD_v2", RS_CUDA_COPY, 0, 3, RS_ON_DEVICE, 0, 0, 0, false},
    CallRow{"cuMemcpyDtoD_v2_ptds", RS_CUDA_COPY, 0, 3, RS_ON_DEVICE, 0, 0, 0, false},
    CallRow{"cuMemcpyDtoDAsync_v2", RS_CUDA_COPY, 0, 3, RS_ON_DEVICE, 0, 0, 0, false},
    CallRow{"cuMemcpyDtoDAsync_v2_ptsz", RS_CUDA_COPY, 0, 3, RS_ON_DEVICE, 0, 0, 0, false},
    CallRow{"cuMemcpy", RS_CUDA_COPY, 0, 3, RS_ANY_DIRECTION, 0, 0, 0, false},
    CallRow{"cuMemcpy_ptds", RS_CUDA_COPY, 0, 3, RS_ANY_DIRECTION, 0, 0, 0, false},
    CallRow{"cuMemcpyAsync", RS_CUDA_COPY, 0, 3, RS_ANY_DIRECTION, 0, 0, 0, false},
    CallRow{"cuMemcpyAsync_ptsz", RS_CUDA_COPY, 0, 3, RS_ANY_DIRECTION, 0, 0, 0, false},
    CallRow{"cudaMemcpy", RS_CUDA_COPY, 1, 3, 0, 4, 0, 0, true},
    CallRow{"cudaMemcpy_ptds", RS_CUDA_COPY, 1, 3, 0, 4, 0, 0, false},
    CallRow{"cudaMemcpyAsync", RS_CUDA_COPY, 1, 3, 0, 4, 0, 0, true},
    CallRow{"cudaMemcpyAsync_ptsz", RS_CUDA_COPY, 1, 3, 0, 4, 0, 0, false},
    CallRow{"cuMemAlloc_v2", RS_CUDA_ALLOCATE, 0, 2, 0, 0, 0, 0, true},
    CallRow{"cuMemAllocManaged", RS_CUDA_ALLOCATE, 0, 2, 0, 0, 0, 0, false},
    CallRow{"cuMemAllocAsync", RS_CUDA_ALLOCATE, 0, 2, 0, 0, 0, 0, false},
    CallRow{"cuMemAllocAsync_ptsz", RS_CUDA_ALLOCATE, 0, 2, 0, 0, 0, 0, false},
    CallRow{"cuMemAllocFromPoolAsync", RS_CUDA_ALLOCATE, 0, 2, 0, 0, 0, 0, false},
    CallRow{"cuMemAllocFromPoolAsync_ptsz", RS_CUDA_ALLOCATE, 0, 2, 0, 0, 0, 0, false},
    CallRow{"cuMemCreate", RS_CUDA_ALLOCATE, 0, 2, 0, 0, 0, 0, true},
    CallRow{"cudaMalloc", RS_CUDA_ALLOCATE, 1, 2, 0, 0, 0, 0, true},
    CallRow{"cudaMallocManaged", RS_CUDA_ALLOCATE, 1, 2, 0, 0, 0, 0, false},
    CallRow{"cudaMallocAsync", RS_CUDA_ALLOCATE, 1, 2, 0, 0, 0, 0, false},
    CallRow{"cudaMallocAsync_ptsz", RS_CUDA_ALLOCATE, 1, 2, 0, 0, 0, 0, false},
    CallRow{"cudaMallocFromPoolAsync", RS_CUDA_ALLOCATE, 1, 2, 0, 0, 0, 0, false},
    CallRow{"cudaMallocFromPoolAsync_ptsz", RS_CUDA_ALLOCATE, 1, 2, 0, 0, 0, 0, false},
};

// Of ncclReduce, the communicator is the first argument on the stack; ncclCommInitRank and its like
// take their id by value, there too, so that the rank comes third. A split's ranks are not known.
constexpr std::array kNccl = {
    CallRow{"ncclAllReduce", RS_NCCL_COLLECTIVE, 0, 3, 4, 6, RS_ALL_REDUCE, 0, true},
    CallRow{"ncclReduceScatter", RS_NCCL_COLLECTIVE, 0, 3, 4, 6, RS_REDUCE_SCATTER, 0, true},
    CallRow{"ncclBroadcast", RS_NCCL_COLLECTIVE, 0, 3, 4, 6, RS_BROADCAST, 0, true},
    CallRow{"ncclGather", RS_NCCL_COLLECTIVE, 0, 3, 4, 6, 0, 0, false},
    CallRow{"ncclScatter", RS_NCCL_COLLECTIVE, 0, 3, 4, 6, 0, 0, false},
    CallRow{"ncclReduce", RS_NCCL_COLLECTIVE, 0, 3, 4, 7, RS_REDUCE, 0, false},
    CallRow{"ncclAllGather", RS_NCCL_COLLECTIVE, 0, 3, 4, 5, RS_ALL_GATHER, 0, true},
    CallRow{"ncclAlltoAll", RS_NCCL_COLLECTIVE, 0, 3, 4, 5, RS_ALL_TO_ALL, 0, false},
    CallRow{"ncclAllToAll", RS_NCCL_COLLECTIVE, 0, 3, 4, 5, RS_ALL_TO_ALL, 0, false},
    CallRow{"ncclBcast", RS_NCCL_COLLECTIVE, 0, 2, 3, 5, RS_BROADCAST, 0, false},
    CallRow{"ncclSend", RS_NCCL_PEER, 0, 2, 3, 5, RS_SEND, 0, true},
    CallRow{"ncclRecv", RS_NCCL_PEER, 0, 2, 3, 5, RS_RECEIVE, 0, true},
    CallRow{"ncclGroupEnd", RS_NCCL_GROUP_END, 0, 0, 0, 0, 0, 0, false},
    CallRow{"ncclCommInitRank", RS_NCCL_INIT, 0, 0, 0, 1, 2, 3, true},
    CallRow{"ncclCommInitRankConfig", RS_NCCL_INIT, 0, 0, 0, 1, 2, 3, true},
    CallRow{"ncclCommInitRankScalable", RS_NCCL_INIT, 0, 0, 0, 1, 2, 3, true},
    CallRow{"ncclCommInitAll", RS_NCCL_INIT, 0, 0, 0, 1, 2, 0, false},
    CallRow{"ncclCommSplit", RS_NCCL_INIT, 0, 0, 0, 4, 0, 0, false},
    CallRow{"ncclCommDestroy", RS_NCCL_DESTROY, 0, 0, 0, 1, 0, 0, true},
    CallRow{"ncclCommAbort", RS_NCCL_ABORT, 0, 0, 0, 1, 0, 0, true},
    CallRow{"cuEventQuery", RS_NCCL_QUERY, 0, 0, 0, 1, 0, 0, false},
    CallRow{"cudaEventQuery", RS_NCCL_QUERY, 1, 0, 0, 1, 0, 0, true},
};

static_assert(kCuda.size() < 256 && kNccl.size() < 256, "a cookie has one byte for the row");

}  // namespace

std::span<const CallRow> CudaCalls() {
  return kCuda;
}

std::span<const CallRow> NcclCalls() {
  return kNccl;
}

}  // namespace rankscope::probes
