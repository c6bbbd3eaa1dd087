/* SPDX-FileCopyrightText: The rankscope authors */
/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */

/* What cuda.bpf.c, nccl.bpf.c and exporter/probes/calls tell each other: which function a probe
 * stands on, counts of each process, rare facts. */
#pragma once

#include "common.h"

/* What a probe's cookie tells of the function that it stands on, one byte each; the table of
 * functions is user space's. Arguments count from 1; 7 is the first on the stack; 0 = none. */
#define RS_COOKIE(n) (8 * (n))
enum rs_cookie {
  RS_COOKIE_FUNCTION = RS_COOKIE(0), /* row of the table */
  RS_COOKIE_OP = RS_COOKIE(1),
  RS_COOKIE_LAYER = RS_COOKIE(2), /* bits of enum rs_layer */
  RS_COOKIE_SIZE = RS_COOKIE(3),  /* argument: bytes, or elements */
  /* cuda */
  RS_COOKIE_DIRECTION = RS_COOKIE(4),    /* of a copy, by its name */
  RS_COOKIE_DIRECTION_AT = RS_COOKIE(5), /* argument: enum cudaMemcpyKind */
  /* nccl */
  RS_COOKIE_TYPE = RS_COOKIE(4),  /* argument: ncclDataType_t */
  RS_COOKIE_COMM = RS_COOKIE(5),  /* argument: the communicator, or where a new one goes */
  RS_COOKIE_RANKS = RS_COOKIE(6), /* argument: its ranks */
  RS_COOKIE_KIND = RS_COOKIE(6),  /* of a collective: enum rs_nccl_kind */
  RS_COOKIE_RANK = RS_COOKIE(7),  /* argument: the own one */
};

enum rs_layer {
  RS_LAYER_UPPER = 1,   /* calls into the layer below */
  RS_LAYER_STEPPED = 2, /* of the function: the kernel single-steps what the probe stands on */
};

/* A call that a thread is inside of. Threads share slots by their number: of two in one slot the
 * later one shows. */
#define RS_SLOTS 8
struct rs_inside {
  __u64 start_ns; /* 0 = none */
  __u32 thread;
  __u32 detail;
};
RS_SIZE(rs_inside, 16);

enum rs_cuda_op {
  RS_CUDA_LAUNCH = 1,
  RS_CUDA_GRAPH = 2,
  RS_CUDA_SYNC = 3,
  RS_CUDA_COPY = 4,
  RS_CUDA_ALLOCATE = 5,
};

/* cudaMemcpyKind; 0 is host to host. */
enum rs_direction { RS_TO_DEVICE = 1, RS_TO_HOST = 2, RS_ON_DEVICE = 3, RS_ANY_DIRECTION = 4 };

/* The largest gap that ended within 2^28 ns = 0.27 s; eight of them are looked at each second. */
#define RS_GAP_BITS 28
#define RS_GAPS 8
struct rs_gap {
  __u64 largest_ns;
  __u64 end_ns;
};
RS_SIZE(rs_gap, 16);
/* Gaps by length, in powers of two: slot 0 has those of up to 2^-10 s = 1 ms, each slot those of up
 * to twice as much, slot 16 those of up to 2^6 s = 64 s, slot 17 the longer ones. */
#define RS_GAP_SLOTS 18

/* Of one process since it was first seen; only ever rising but for what is named last or largest. */
struct rs_cuda_counts {
  __u64 start_ns; /* of the process, since boot; 0 = not known */
  __u64 launches;
  __u64 graphs;
  __u64 below;   /* launches of the driver that a launch of the runtime made: counted above once */
  __u64 alone;   /* launches of the runtime that made none that was seen */
  __u64 runs[2]; /* of the launch probes, by layer */
  __u64 timed_launches;
  __u64 launch_ns; /* of these */
  __u64 last_launch_ns;
  /* last_launch_ns less this is the sum of the gaps: the first launch's time, and since then what
   * lies between two launches while their probes were not on all the time. */
  __u64 unwatched_ns;
  __u64 gap_counts[RS_GAP_SLOTS];
  struct rs_gap gaps[RS_GAPS];
  __u64 calls[2]; /* timed ones, of all kinds; [1]: single-stepped */
  __u64 syncs, sync_ns;
  __u64 copies, copy_ns;
  __u64 copied_bytes, to_device_bytes, to_host_bytes;
  __u64 allocations, allocation_ns, allocated_bytes;
  __u64 failed_allocations, last_failed_bytes;
  __u64 errors;
  __u64 last_event_ns;
  __u64 results_seen[4]; /* a bit each, by the low 8 bits */
  struct rs_inside syncing[RS_SLOTS];
};
RS_SIZE(rs_cuda_counts, 8 * (11 + RS_GAP_SLOTS + 2 * RS_GAPS + 20 + 2 * RS_SLOTS));

/* No number means two things: rows of both tables are handled alike. */
enum rs_nccl_op {
  RS_NCCL_COLLECTIVE = 16,
  RS_NCCL_PEER = 17, /* send, receive: not all ranks take part */
  RS_NCCL_GROUP_END = 18,
  RS_NCCL_INIT = 19,
  RS_NCCL_DESTROY = 20,
  RS_NCCL_ABORT = 21,
  RS_NCCL_QUERY = 22, /* cudaEventQuery in the watchdog's thread */
};

/* Kinds of operation that are counted apart; 0 = another. */
enum rs_nccl_kind {
  RS_ALL_REDUCE = 1,
  RS_ALL_GATHER = 2,
  RS_REDUCE_SCATTER = 3,
  RS_BROADCAST = 4,
  RS_REDUCE = 5,
  RS_ALL_TO_ALL = 6,
  RS_SEND = 7,
  RS_RECEIVE = 8,
};
#define RS_NCCL_KINDS 8
struct rs_nccl_kind_counts {
  __u64 calls;
  __u64 bytes;     /* of the buffer that the call names */
  __u64 bus_bytes; /* by the factor of nccl-tests; of communicators whose ranks are known */
  __u64 inside_ns; /* ncclGroupEnd too, for the kind that the thread entered last */
};
RS_SIZE(rs_nccl_kind_counts, 32);

/* Of one process since it was first seen. */
struct rs_nccl_counts {
  __u64 start_ns;
  __u64 enqueued; /* entered */
  __u64 bytes;
  __u64 inside_ns;
  __u64 calls;
  __u64 aborts;
  __u64 queries;
  __u64 completed;
  /* Of communicators that are gone, those of the most ranks. */
  __u64 gone_ranks;
  __u64 gone_collectives;
  __u64 results_seen; /* a bit each, by the low 6 bits */
  __u64 pad;
  struct rs_inside initialising[RS_SLOTS];
  struct rs_nccl_kind_counts kinds[RS_NCCL_KINDS]; /* by rs_nccl_kind less 1 */
};
RS_SIZE(rs_nccl_counts, 8 * (12 + 2 * RS_SLOTS + 4 * RS_NCCL_KINDS));

/* A pointer of a process: a communicator, or an event that its watchdog asks for. */
struct rs_handle {
  __u64 pointer;
  __u32 pid;
  __u32 pad;
};
RS_SIZE(rs_handle, 16);
struct rs_communicator {
  __u64 created_ns; /* 0: before it was first seen */
  __u64 collectives;
  __u32 ranks; /* 0 = not known */
  __u32 rank;
};
RS_SIZE(rs_communicator, 24);
struct rs_asked {
  __u64 first_ns;
  __u64 last_ns;
};
RS_SIZE(rs_asked, 16);

enum rs_call_kind {
  RS_CALL_FAILED = 1,
  RS_CALL_ALLOCATION = 2, /* failed */
  RS_CALL_INIT = 3,       /* of a communicator begins */
  RS_CALL_CREATED = 4,
  RS_CALL_NOT_CREATED = 5,
  RS_CALL_DESTROYED = 6,
  RS_CALL_ABORTED = 7,
};

struct rs_call {
  struct rs_header header; /* kind: enum rs_call_kind */
  __u64 process_start_ns;
  __u64 pointer; /* communicator */
  __u64 bytes;
  __u64 took_ns;
  __u32 pid;
  __s32 result;
  __u32 function;
  __u32 ranks;
  __u32 rank;
  __u32 pad;
};
RS_SIZE(rs_call, 16 + 32 + 24);
