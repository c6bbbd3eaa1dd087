/* SPDX-FileCopyrightText: The rankscope authors */
/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */

/*
 * Calls of tracked processes into the CUDA runtime and driver.
 *
 * Launches are counted at their entry alone, since each probe costs more than what it does. The
 * runtime's launch calls the driver's, often through the exported symbol: a launch of the driver
 * that follows one of the runtime deeper on the same stack is that same launch.
 *
 *     cudaLaunchKernel          counted, marks the thread with its stack pointer
 *       cuLaunchKernel          deeper than the mark: not counted, the mark is gone
 *     cuLaunchKernel            no mark: counted
 *
 * Where the runtime reaches the driver by a pointer that no probe stands on, marks stay: `alone`
 * counts them, so that user space can tell the two cases apart.
 *
 * Other calls are timed. Of nested ones the outermost counts, told by its stack pointer too, so
 * that a return that was never seen cannot spoil what follows.
 */
#include "vmlinux.h"

#include <bpf/bpf_helpers.h>

#include "events/calls.h"
#include "tracked.h"
#include "calls.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* A node has some dozens of processes that use a GPU: 1,024 of 648 bytes are 0.7 MiB. */
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 1024);
  __type(key, __u32);
  __type(value, struct rs_cuda_counts);
} rs_cuda SEC(".maps");

/* What a process begins with; too large for the stack. */
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct rs_cuda_counts);
} rs_cuda_blank SEC(".maps");

struct cuda_thread {
  __u64 sp; /* of the call it is inside of; 0 = none */
  __u64 start_ns;
  __u64 bytes;
  __u32 op;
  __u32 direction;
  __u64 launch_sp;       /* the mark of a runtime's launch */
  __u64 timed_launch_sp; /* of the launch it is inside of */
  __u64 launch_start_ns;
};

struct {
  __uint(type, BPF_MAP_TYPE_TASK_STORAGE);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __type(key, int);
  __type(value, struct cuda_thread);
} rs_cuda_threads SEC(".maps");

/* When the probes of timed calls were last put on. What a thread entered before that has returned
 * unseen. */
__u64 rs_timed_since_ns = 0;
/* The same of launches: those before it are the last of an earlier window. */
__u64 rs_launches_since_ns = 0;

#define EVENT_PAUSE_NS 100000000ull
#define EVENTS_AT_ONCE 8

static __always_inline struct rs_cuda_counts *counts_of(__u32 tgid) {
  struct rs_cuda_counts *counts = bpf_map_lookup_elem(&rs_cuda, &tgid);
  __u64 *start;
  __u32 zero = 0;
  if (counts) return counts;
  start = bpf_map_lookup_elem(&rs_tracked, &tgid);
  if (!start) return 0;
  counts = bpf_map_lookup_elem(&rs_cuda_blank, &zero);
  if (!counts) return 0;
  bpf_map_update_elem(&rs_cuda, &tgid, counts, BPF_NOEXIST);
  counts = bpf_map_lookup_elem(&rs_cuda, &tgid);
  if (!counts) {
    lost(RS_LOST_CALLER);
    return 0;
  }
  counts->start_ns = *start;
  return counts;
}

static __always_inline struct cuda_thread *thread_of_self(void) {
  return bpf_task_storage_get(&rs_cuda_threads, bpf_get_current_task_btf(), 0,
                              BPF_LOCAL_STORAGE_GET_F_CREATE);
}

/* Whoever launches a thousand times a second and more needs the first comparison alone. */
static __always_inline __u32 slot_of(__u64 gap_ns) {
  __u64 halves = gap_ns * 2, bound = 1953125; /* 2^-10 s is 976562.5 ns */
  __u32 slot = 0;
  for (; slot < RS_GAP_SLOTS - 1; slot++) {
    if (halves <= bound) break;
    bound <<= 1;
  }
  return slot;
}

/* The sum of the gaps needs no counter: see unwatched_ns, which is written before what it is taken
 * from, so that who reads between the two does not see too much. */
static __always_inline void note_gap(struct rs_cuda_counts *counts, __u64 now) {
  struct rs_gap *gap = &counts->gaps[now >> RS_GAP_BITS & (RS_GAPS - 1)];
  __u64 last = counts->last_launch_ns, took = now - last;
  bool watched = last >= rs_launches_since_ns;
  if (!last) {
    counts->unwatched_ns = now;
  } else if (!watched && last < now) {
    add(&counts->unwatched_ns, took);
  }
  counts->last_launch_ns = now;
  if (!last || !watched || last >= now) return;
  add(&counts->gap_counts[slot_of(took)], 1);
  /* Another turn of the ring, or a larger one. */
  if (gap->end_ns >> RS_GAP_BITS != now >> RS_GAP_BITS || took > gap->largest_ns) {
    gap->largest_ns = took;
    gap->end_ns = now;
  }
}

SEC("uprobe")
int cuda_launch(struct pt_regs *ctx) {
  __u64 cookie = bpf_get_attach_cookie(ctx);
  struct rs_cuda_counts *counts = counts_of(bpf_get_current_pid_tgid() >> 32);
  struct cuda_thread *thread;
  __u64 now, sp = RS_SP(ctx);
  if (!counts) return 0;
  thread = thread_of_self();
  if (!thread) return 0;
  if (told(cookie, RS_COOKIE_LAYER) & RS_LAYER_UPPER) {
    add(&counts->runs[1], 1);
    if (thread->launch_sp) add(&counts->alone, 1);
    thread->launch_sp = sp;
  } else {
    add(&counts->runs[0], 1);
    if (thread->launch_sp && sp <= thread->launch_sp) {
      thread->launch_sp = 0;
      add(&counts->below, 1);
      return 0;
    }
    thread->launch_sp = 0;
  }
  now = bpf_ktime_get_ns();
  thread->timed_launch_sp = sp;
  thread->launch_start_ns = now;
  add(told(cookie, RS_COOKIE_OP) == RS_CUDA_GRAPH ? &counts->graphs : &counts->launches, 1);
  note_gap(counts, now);
  return 0;
}

static __always_inline void failed(struct rs_cuda_counts *counts, __u32 kind, __u64 now,
                                   __u64 cookie, __s32 result, __u64 bytes) {
  struct rs_call *event = new_event(kind, bpf_get_current_pid_tgid() >> 32, now, cookie);
  if (!event) return;
  event->process_start_ns = counts->start_ns;
  event->result = result;
  event->bytes = bytes;
  bpf_ringbuf_submit(event, 0);
}

/* The first of each result of a process. */
static __always_inline void note_error(struct rs_cuda_counts *counts, __u64 now, __u64 cookie,
                                       __s32 result) {
  __u64 *seen = &counts->results_seen[result >> 6 & 3];
  __u64 bit = 1ull << (result & 63);
  add(&counts->errors, 1);
  if (*seen & bit) return;
  *seen |= bit;
  failed(counts, RS_CALL_FAILED, now, cookie, result, 0);
}

/* The return of a launch; attached in short windows only. */
SEC("uretprobe")
int cuda_launch_end(struct pt_regs *ctx) {
  struct rs_cuda_counts *counts = counts_of(bpf_get_current_pid_tgid() >> 32);
  struct cuda_thread *thread;
  __u64 now;
  if (!counts) return 0;
  thread = thread_of_self();
  if (!thread || !thread->timed_launch_sp || !RS_IS_BACK(ctx, thread->timed_launch_sp)) return 0;
  thread->timed_launch_sp = 0;
  now = bpf_ktime_get_ns();
  add(&counts->timed_launches, 1);
  add(&counts->launch_ns, now - thread->launch_start_ns);
  if (RS_RESULT(ctx)) note_error(counts, now, bpf_get_attach_cookie(ctx), RS_RESULT(ctx));
  return 0;
}

static __always_inline __u32 direction_of(struct pt_regs *ctx, __u64 cookie) {
  __u32 at = told(cookie, RS_COOKIE_DIRECTION_AT);
  return at ? (__u32)argument(ctx, at) : told(cookie, RS_COOKIE_DIRECTION);
}

SEC("uprobe")
int cuda_begin(struct pt_regs *ctx) {
  __u64 cookie = bpf_get_attach_cookie(ctx), now;
  __u64 self = bpf_get_current_pid_tgid();
  struct rs_cuda_counts *counts = counts_of(self >> 32);
  struct cuda_thread *thread;
  __u32 op = told(cookie, RS_COOKIE_OP);
  if (!counts) return 0;
  thread = thread_of_self();
  if (!thread) return 0;
  add(&counts->calls[!!(told(cookie, RS_COOKIE_LAYER) & RS_LAYER_STEPPED)], 1);
  if (thread->sp && RS_SP(ctx) < thread->sp && thread->start_ns >= rs_timed_since_ns) {
    /* The driver knows where to what the runtime was told to find out. */
    if (op == RS_CUDA_COPY && thread->op == op && thread->direction == RS_ANY_DIRECTION) {
      thread->direction = direction_of(ctx, cookie);
    }
    return 0;
  }
  now = bpf_ktime_get_ns();
  thread->sp = RS_SP(ctx);
  thread->start_ns = now;
  thread->op = op;
  thread->bytes = argument(ctx, told(cookie, RS_COOKIE_SIZE));
  if (op == RS_CUDA_COPY) thread->direction = direction_of(ctx, cookie);
  if (op == RS_CUDA_SYNC) enter(counts->syncing, now, (__u32)self, 0);
  return 0;
}

static __always_inline void count_copy(struct rs_cuda_counts *counts, __u32 direction, __u64 bytes,
                                       __u64 took) {
  add(&counts->copies, 1);
  add(&counts->copy_ns, took);
  add(&counts->copied_bytes, bytes);
  if (direction == RS_TO_DEVICE) add(&counts->to_device_bytes, bytes);
  if (direction == RS_TO_HOST) add(&counts->to_host_bytes, bytes);
}

static __always_inline void count_allocation(struct rs_cuda_counts *counts, __u64 cookie, __u64 now,
                                             __s32 result, __u64 bytes, __u64 took) {
  add(&counts->allocations, 1);
  add(&counts->allocation_ns, took);
  if (!result) {
    add(&counts->allocated_bytes, bytes);
    return;
  }
  add(&counts->failed_allocations, 1);
  counts->last_failed_bytes = bytes;
  /* A loop that asks again and again is counted, and told ten times a second. */
  if (counts->failed_allocations > EVENTS_AT_ONCE && now - counts->last_event_ns < EVENT_PAUSE_NS) {
    return;
  }
  counts->last_event_ns = now;
  failed(counts, RS_CALL_ALLOCATION, now, cookie, result, bytes);
}

SEC("uretprobe")
int cuda_end(struct pt_regs *ctx) {
  __u64 cookie = bpf_get_attach_cookie(ctx), now, took;
  __u64 self = bpf_get_current_pid_tgid();
  struct rs_cuda_counts *counts = counts_of(self >> 32);
  struct cuda_thread *thread;
  __s32 result = RS_RESULT(ctx);
  if (!counts) return 0;
  thread = thread_of_self();
  if (!thread || !thread->sp || !RS_IS_BACK(ctx, thread->sp)) return 0;
  thread->sp = 0;
  now = bpf_ktime_get_ns();
  took = now - thread->start_ns;
  if (thread->op == RS_CUDA_SYNC) {
    leave(counts->syncing, (__u32)self);
    add(&counts->syncs, 1);
    add(&counts->sync_ns, took);
  } else if (thread->op == RS_CUDA_COPY) {
    count_copy(counts, thread->direction, result ? 0 : thread->bytes, took);
  } else if (thread->op == RS_CUDA_ALLOCATE) {
    count_allocation(counts, cookie, now, result, thread->bytes, took);
  }
  if (result) note_error(counts, now, cookie, result);
  return 0;
}
