/* SPDX-FileCopyrightText: The rankscope authors */
/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */

/*
 * What the programs at library calls share. They run in the middle of the hottest loops of a
 * training process, so: no program has 64 bytes of stack (see kernel_gate.cc on kernels from 6.13),
 * what a thread is inside of stands in task storage, and only what is rare goes to the ring.
 */
#pragma once

/* 64 KiB hold 700 of the rare facts. */
struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, 64 << 10);
} rs_events SEC(".maps");

enum { RS_LOST_CALL_EVENT, RS_LOST_CALLER, RS_LOST_CALLS };

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, RS_LOST_CALLS);
  __type(key, __u32);
  __type(value, __u64);
} rs_lost SEC(".maps");

#if defined(__TARGET_ARCH_x86)
#define RS_SP(ctx) ((ctx)->sp)
#define RS_RESULT(ctx) ((__s32)(ctx)->ax)
/* A call pushes its return address: back from it the stack is shallower by that. */
#define RS_IS_BACK(ctx, entry_sp) (RS_SP(ctx) > (entry_sp))
#elif defined(__TARGET_ARCH_arm64)
#define RS_SP(ctx) ((ctx)->sp)
#define RS_RESULT(ctx) ((__s32)(ctx)->regs[0])
#define RS_IS_BACK(ctx, entry_sp) (RS_SP(ctx) >= (entry_sp))
#endif

static __always_inline void lost(__u32 why) {
  __u64 *count = bpf_map_lookup_elem(&rs_lost, &why);
  if (count) __sync_fetch_and_add(count, 1);
}

static __always_inline void add(__u64 *count, __u64 more) {
  __sync_fetch_and_add(count, more);
}

static __always_inline __u32 told(__u64 cookie, __u32 shift) {
  return cookie >> shift & 0xff;
}

/* The n-th argument, from 1; those from the 7th on (x86) stand above the return address. Volatile:
 * the verifier wants each register read by its own offset. */
#define RS_REGISTER(ctx, name) (*(volatile unsigned long *)&(ctx)->name)
static __always_inline __u64 argument(struct pt_regs *ctx, __u32 n) {
#if defined(__TARGET_ARCH_x86)
  __u64 value = 0;
  if (n == 1) return RS_REGISTER(ctx, di);
  if (n == 2) return RS_REGISTER(ctx, si);
  if (n == 3) return RS_REGISTER(ctx, dx);
  if (n == 4) return RS_REGISTER(ctx, cx);
  if (n == 5) return RS_REGISTER(ctx, r8);
  if (n == 6) return RS_REGISTER(ctx, r9);
  if (n == 7) bpf_probe_read_user(&value, sizeof(value), (void *)(ctx->sp + 8));
  return value;
#else
  if (n == 1) return RS_REGISTER(ctx, regs[0]);
  if (n == 2) return RS_REGISTER(ctx, regs[1]);
  if (n == 3) return RS_REGISTER(ctx, regs[2]);
  if (n == 4) return RS_REGISTER(ctx, regs[3]);
  if (n == 5) return RS_REGISTER(ctx, regs[4]);
  if (n == 6) return RS_REGISTER(ctx, regs[5]);
  return n == 7 ? RS_REGISTER(ctx, regs[6]) : 0;
#endif
}

static __always_inline void enter(struct rs_inside *slots, __u64 now, __u32 thread, __u32 detail) {
  struct rs_inside *slot = slots + (thread & (RS_SLOTS - 1));
  slot->thread = thread;
  slot->detail = detail;
  slot->start_ns = now;
}

static __always_inline void leave(struct rs_inside *slots, __u32 thread) {
  struct rs_inside *slot = slots + (thread & (RS_SLOTS - 1));
  if (slot->thread == thread) slot->start_ns = 0;
}

static __always_inline struct rs_call *new_event(__u32 kind, __u32 tgid, __u64 now, __u64 cookie) {
  struct rs_call *event = bpf_ringbuf_reserve(&rs_events, sizeof(*event), 0);
  if (!event) {
    lost(RS_LOST_CALL_EVENT);
    return 0;
  }
  event->header.time_ns = now;
  event->header.kind = kind;
  event->header.pad = 0;
  event->process_start_ns = 0;
  event->pointer = 0;
  event->bytes = 0;
  event->took_ns = 0;
  event->pid = tgid;
  event->result = 0;
  event->function = told(cookie, RS_COOKIE_FUNCTION);
  event->ranks = 0;
  event->rank = 0;
  event->pad = 0;
  return event;
}
