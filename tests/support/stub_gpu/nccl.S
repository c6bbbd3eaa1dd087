/* SPDX-FileCopyrightText: The rankscope authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* Entries of the stub libnccl.so.2. */
#include "prologues.inc"

.macro pushed_api name
  pushed \name
  weakened \name
.endm
.macro branched_api name
  branched \name
  weakened \name
.endm
.macro slow_api name
  slow \name
  weakened \name
.endm

pushed_api ncclGetVersion
pushed_api ncclGetUniqueId
pushed_api ncclCommInitRank
pushed_api ncclCommInitRankConfig
branched_api ncclCommSplit
pushed_api ncclCommFinalize
pushed_api ncclCommDestroy
pushed_api ncclCommAbort
pushed_api ncclCommGetAsyncError
pushed_api ncclCommCount
pushed_api ncclCommUserRank
pushed_api ncclGetErrorString
pushed_api ncclGroupStart
pushed_api ncclGroupEnd
pushed_api ncclAllReduce
pushed_api ncclAllGather
branched_api ncclReduceScatter
slow_api ncclBroadcast
pushed_api ncclBcast
pushed_api ncclReduce
pushed_api ncclAlltoAll
branched_api ncclSend
branched_api ncclRecv
