/* SPDX-FileCopyrightText: The rankscope authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* Entries of the stub libcuda.so.1. */
#include "prologues.inc"

.data
.balign 4
.hidden stub_guard
.globl stub_guard
stub_guard: .long 0

driver cuInit
driver cuDriverGetVersion
driver cuDeviceGet
driver cuDeviceGetCount
driver cuDevicePrimaryCtxRetain
driver cuCtxCreate_v2
driver cuCtxDestroy_v2
driver cuCtxSynchronize
driver cuLaunchKernel
driver cuLaunchKernel_ptsz
driver cuLaunchKernelEx
driver cuLaunchKernelEx_ptsz
driver cuLaunchCooperativeKernel
driver cuGraphLaunch
driver cuGraphLaunch_ptsz
driver cuStreamCreate
driver cuStreamSynchronize
driver cuStreamSynchronize_ptsz
driver cuEventCreate
driver cuEventRecord
driver cuEventQuery
driver cuEventSynchronize
driver cuMemAlloc_v2
driver cuMemAllocAsync
driver cuMemAllocManaged
driver cuMemAllocHost_v2
driver cuMemHostAlloc
driver cuMemAllocPitch_v2
driver cuMemCreate
driver cuMemFree_v2
driver cuMemFreeAsync
driver cuMemcpy
driver cuMemcpyAsync
driver cuMemcpyHtoD_v2
driver cuMemcpyDtoH_v2
driver cuMemcpyDtoD_v2
driver cuMemcpyHtoDAsync_v2
driver cuMemcpyHtoDAsync_v2_ptsz
driver cuMemcpyDtoHAsync_v2
driver cuMemcpyDtoHAsync_v2_ptsz
driver cuMemcpyDtoDAsync_v2
driver cuGetProcAddress_v2
