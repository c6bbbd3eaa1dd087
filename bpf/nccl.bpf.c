/* SPDX-FileCopyrightText: The rankscope authors */
/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */

/*
 * Calls of tracked processes into NCCL, and what the watchdog's thread of PyTorch asks CUDA.
 *
 * A collective counts when it is entered: a rank that stays inside has entered it. Enqueued is not
 * done: whether the GPU has done it, shows in the answers to the watchdog, which asks for the event
 * behind each piece of work until it has happened.
 */
#include "vmlinux.h"

#include <bpf/bpf_helpers.h>

#include "events/calls.h"
#include "tracked.h"
#include "calls.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* As many as use a GPU: 1,024 of 480 bytes. */
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 1024);
  __type(key, __u32);
  __type(value, struct rs_nccl_counts);
} rs_nccl SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct rs_nccl_counts);
} rs_nccl_blank SEC(".maps");

/* 16 ranks of a node with some dozens of communicators each: 4,096 of 40 bytes. */
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 4096);
  __type(key, struct rs_handle);
  __type(value, struct rs_communicator);
} rs_communicators SEC(".maps");

/* Work that is not done yet, some hundreds a rank; the longest not asked for go first. */
struct {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, 8192);
  __type(key, struct rs_handle);
  __type(value, struct rs_asked);
} rs_asked SEC(".maps");

struct nccl_thread {
  __u64 sp; /* of the call it is inside of; 0 = none */
  __u64 start_ns;
  __u64 pointer; /* communicator, or where a new one goes, or event */
  __u32 op;
  __u32 ranks;
  __u32 rank;
  __u32 kind; /* enum rs_nccl_kind of the operation that it entered last */
};

struct {
  __uint(type, BPF_MAP_TYPE_TASK_STORAGE);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __type(key, int);
  __type(value, struct nccl_thread);
} rs_nccl_threads SEC(".maps");

#define NCCL_IN_PROGRESS 7
#define CUDA_NOT_READY 600
/* "pt_nccl_", the beginning of "pt_nccl_watchdg", as little-endian bytes. */
#define WATCHDOG 0x5f6c63636e5f7470ull
/* log2 of the size of an ncclDataType_t, 4 bits each, from ncclInt8 = 0 up: i8 u8 i32 u32 i64 u64
 * f16 f32 f64 bf16 f8e4m3 f8e5m2. */
#define TYPE_SIZES 0x001321332200ull
#define TYPES 12

static __always_inline struct rs_nccl_counts *counts_of(__u32 tgid) {
  struct rs_nccl_counts *counts = bpf_map_lookup_elem(&rs_nccl, &tgid);
  __u64 *start;
  __u32 zero = 0;
  if (counts) return counts;
  start = bpf_map_lookup_elem(&rs_tracked, &tgid);
  if (!start) return 0;
  counts = bpf_map_lookup_elem(&rs_nccl_blank, &zero);
  if (!counts) return 0;
  bpf_map_update_elem(&rs_nccl, &tgid, counts, BPF_NOEXIST);
  counts = bpf_map_lookup_elem(&rs_nccl, &tgid);
  if (!counts) {
    lost(RS_LOST_CALLER);
    return 0;
  }
  counts->start_ns = *start;
  return counts;
}

static __always_inline struct nccl_thread *thread_of_self(void) {
  return bpf_task_storage_get(&rs_nccl_threads, bpf_get_current_task_btf(), 0,
                              BPF_LOCAL_STORAGE_GET_F_CREATE);
}

static __noinline int is_watchdog(void) {
  __u64 comm[2] = {};
  bpf_get_current_comm(comm, sizeof(comm));
  return comm[0] == WATCHDOG;
}

/* `who`: the ranks, and the own one above them; 0 where the communicator is older than the probe. */
static __noinline int note_communicator(__u64 pointer, __u64 created_ns, __u64 who) {
  struct rs_handle key = {.pointer = pointer, .pid = bpf_get_current_pid_tgid() >> 32};
  struct rs_communicator made = {.created_ns = created_ns, .ranks = who, .rank = who >> 32};
  if (bpf_map_update_elem(&rs_communicators, &key, &made, created_ns ? BPF_ANY : BPF_NOEXIST)) {
    lost(RS_LOST_CALLER);
  }
  return 0;
}

static __noinline int count_collective(__u64 pointer) {
  struct rs_handle key = {.pointer = pointer, .pid = bpf_get_current_pid_tgid() >> 32};
  struct rs_communicator *known = bpf_map_lookup_elem(&rs_communicators, &key);
  if (!known) {
    note_communicator(pointer, 0, 0);
    known = bpf_map_lookup_elem(&rs_communicators, &key);
  }
  if (known) add(&known->collectives, 1);
  return 0;
}

static __always_inline struct rs_nccl_kind_counts *of_kind(struct rs_nccl_counts *counts,
                                                           __u32 kind) {
  return kind ? &counts->kinds[(kind - 1) & (RS_NCCL_KINDS - 1)] : 0;
}

/* What the operation moves over a link, as nccl-tests reckon it. The buffer of an all-gather, a
 * reduce-scatter or an all-to-all is one rank's part of n. */
static __noinline __u64 bus_bytes(__u32 kind, __u64 bytes, __u64 ranks) {
  if (kind == RS_SEND || kind == RS_RECEIVE) return bytes;
  if (ranks < 2) return 0; /* not known, or nobody else */
  if (kind == RS_ALL_REDUCE) return 2 * bytes * (ranks - 1) / ranks;
  if (kind == RS_BROADCAST || kind == RS_REDUCE) return bytes;
  return bytes * (ranks - 1);
}

static __noinline int count_kind(struct rs_nccl_counts *counts, struct nccl_thread *thread,
                                 __u64 bytes) {
  struct rs_handle key = {.pid = bpf_get_current_pid_tgid() >> 32};
  struct rs_nccl_kind_counts *sum;
  struct rs_communicator *known;
  if (!counts || !thread) return 0;
  sum = of_kind(counts, thread->kind);
  if (!sum) return 0;
  key.pointer = thread->pointer;
  known = bpf_map_lookup_elem(&rs_communicators, &key);
  add(&sum->calls, 1);
  add(&sum->bytes, bytes);
  add(&sum->bus_bytes, bus_bytes(thread->kind, bytes, known ? known->ranks : 0));
  return 0;
}

static __always_inline void tell(struct rs_nccl_counts *counts, struct nccl_thread *thread,
                                 __u32 kind, __u64 now, __u64 cookie, __s32 result) {
  struct rs_call *event = new_event(kind, bpf_get_current_pid_tgid() >> 32, now, cookie);
  if (!event) return;
  event->process_start_ns = counts->start_ns;
  event->pointer = thread->pointer;
  event->ranks = thread->ranks;
  event->rank = thread->rank;
  event->took_ns = now - thread->start_ns;
  event->result = result;
  bpf_ringbuf_submit(event, 0);
}

static __noinline int begin_init(struct pt_regs *ctx, struct rs_nccl_counts *counts,
                                 struct nccl_thread *thread, __u64 cookie) {
  if (!counts || !thread) return 0;
  thread->ranks = (__u32)argument(ctx, told(cookie, RS_COOKIE_RANKS));
  thread->rank = (__u32)argument(ctx, told(cookie, RS_COOKIE_RANK));
  enter(counts->initialising, thread->start_ns, (__u32)bpf_get_current_pid_tgid(), thread->ranks);
  tell(counts, thread, RS_CALL_INIT, thread->start_ns, cookie, 0);
  return 0;
}

SEC("uprobe")
int nccl_begin(struct pt_regs *ctx) {
  __u64 cookie = bpf_get_attach_cookie(ctx), self = bpf_get_current_pid_tgid(), now, count;
  struct rs_nccl_counts *counts;
  struct nccl_thread *thread;
  __u32 op = told(cookie, RS_COOKIE_OP), type;
  if (op == RS_NCCL_QUERY && !is_watchdog()) return 0;
  counts = counts_of(self >> 32);
  if (!counts) return 0;
  thread = thread_of_self();
  if (!thread) return 0;
  add(&counts->calls, 1);
  if (thread->sp && RS_SP(ctx) < thread->sp) return 0;
  now = bpf_ktime_get_ns();
  thread->sp = RS_SP(ctx);
  thread->start_ns = now;
  thread->op = op;
  thread->pointer = argument(ctx, told(cookie, RS_COOKIE_COMM));
  if (op == RS_NCCL_COLLECTIVE || op == RS_NCCL_PEER) {
    type = (__u32)argument(ctx, told(cookie, RS_COOKIE_TYPE));
    count = argument(ctx, told(cookie, RS_COOKIE_SIZE));
    count = type < TYPES ? count << (TYPE_SIZES >> 4 * type & 15) : 0;
    add(&counts->enqueued, 1);
    add(&counts->bytes, count);
    if (op == RS_NCCL_COLLECTIVE) count_collective(thread->pointer);
    thread->kind = told(cookie, RS_COOKIE_KIND);
    count_kind(counts, thread, count);
  } else if (op == RS_NCCL_INIT) {
    begin_init(ctx, counts, thread, cookie);
  } else if (op == RS_NCCL_ABORT) {
    add(&counts->aborts, 1);
  }
  return 0;
}

/* What the watchdog hears of an event: that it has happened, or not yet. */
static __noinline int asked(struct rs_nccl_counts *counts, __u64 pointer, __u64 now, __s32 result) {
  struct rs_handle key = {.pointer = pointer, .pid = bpf_get_current_pid_tgid() >> 32};
  struct rs_asked *known, first = {.first_ns = now, .last_ns = now};
  if (!counts) return 0;
  add(&counts->queries, 1);
  if (result == CUDA_NOT_READY) {
    known = bpf_map_lookup_elem(&rs_asked, &key);
    if (known) {
      known->last_ns = now;
    } else {
      bpf_map_update_elem(&rs_asked, &key, &first, BPF_ANY);
    }
  } else if (!result) {
    bpf_map_delete_elem(&rs_asked, &key);
    add(&counts->completed, 1);
  }
  return 0;
}

/* A new communicator; the address of its handle was the argument. */
static __noinline int created(struct rs_nccl_counts *counts, struct nccl_thread *thread,
                              __u64 cookie, __s32 result) {
  __u64 now = bpf_ktime_get_ns(), pointer = 0;
  bool failed = result && result != NCCL_IN_PROGRESS;
  if (!counts || !thread) return 0;
  if (!failed) bpf_probe_read_user(&pointer, sizeof(pointer), (void *)thread->pointer);
  thread->pointer = pointer;
  if (pointer) note_communicator(pointer, now, (__u64)thread->rank << 32 | thread->ranks);
  tell(counts, thread, failed ? RS_CALL_NOT_CREATED : RS_CALL_CREATED, now, cookie, result);
  return 0;
}

/* What it has seen stays in the process's counts. */
static __noinline int gone(struct rs_nccl_counts *counts, struct nccl_thread *thread, __u64 cookie,
                           __s32 result) {
  struct rs_handle key = {.pid = bpf_get_current_pid_tgid() >> 32};
  struct rs_communicator *known;
  if (!counts || !thread) return 0;
  key.pointer = thread->pointer;
  thread->ranks = thread->rank = 0;
  known = bpf_map_lookup_elem(&rs_communicators, &key);
  if (known) {
    thread->ranks = known->ranks;
    thread->rank = known->rank;
    if (known->ranks > counts->gone_ranks) {
      counts->gone_ranks = known->ranks;
      counts->gone_collectives = known->collectives;
    } else if (known->ranks == counts->gone_ranks) {
      add(&counts->gone_collectives, known->collectives);
    }
    bpf_map_delete_elem(&rs_communicators, &key);
  }
  tell(counts, thread, thread->op == RS_NCCL_ABORT ? RS_CALL_ABORTED : RS_CALL_DESTROYED,
       bpf_ktime_get_ns(), cookie, result);
  return 0;
}

SEC("uretprobe")
int nccl_end(struct pt_regs *ctx) {
  __u64 cookie = bpf_get_attach_cookie(ctx), self = bpf_get_current_pid_tgid(), now;
  struct rs_nccl_counts *counts;
  struct nccl_thread *thread;
  struct rs_nccl_kind_counts *sum;
  __s32 result = RS_RESULT(ctx);
  counts = bpf_map_lookup_elem(&rs_nccl, &(__u32){self >> 32});
  if (!counts) return 0;
  thread = thread_of_self();
  if (!thread || !thread->sp || !RS_IS_BACK(ctx, thread->sp)) return 0;
  thread->sp = 0;
  now = bpf_ktime_get_ns();
  if (thread->op == RS_NCCL_QUERY) return asked(counts, thread->pointer, now, result);
  if (thread->op == RS_NCCL_INIT) {
    leave(counts->initialising, (__u32)self);
    return created(counts, thread, cookie, result);
  }
  if (thread->op == RS_NCCL_ABORT || thread->op == RS_NCCL_DESTROY) {
    return gone(counts, thread, cookie, result);
  }
  add(&counts->inside_ns, now - thread->start_ns);
  sum = of_kind(counts, thread->kind);
  if (sum) add(&sum->inside_ns, now - thread->start_ns);
  if (result && result != NCCL_IN_PROGRESS && !(counts->results_seen & 1ull << (result & 63))) {
    counts->results_seen |= 1ull << (result & 63);
    tell(counts, thread, RS_CALL_FAILED, now, cookie, result);
  }
  return 0;
}
