/* SPDX-FileCopyrightText: The rankscope authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* Entries of the stub libcudart.so.12. */
#include "prologues.inc"

pushed cudaLaunchKernel
pushed cudaLaunchKernel_ptsz
pushed cudaLaunchKernelExC
pushed cudaGraphLaunch
pushed cudaMalloc
pushed cudaMallocAsync
pushed cudaMallocManaged
pushed cudaMallocHost
pushed cudaHostAlloc
branched cudaMallocPitch
branched cudaFree
branched cudaFreeAsync
pushed cudaMemcpy
pushed cudaMemcpyAsync
pushed cudaStreamCreate
pushed cudaStreamSynchronize
branched cudaDeviceSynchronize
pushed cudaEventCreate
pushed cudaEventRecord
pushed cudaEventQuery
slow cudaEventSynchronize
pushed cudaSetDevice
pushed cudaGetDeviceCount
pushed cudaGetLastError
