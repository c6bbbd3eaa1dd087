/* SPDX-FileCopyrightText: The rankscope authors */
/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */

/*
 * What tracked processes write to their standard output and error.
 *
 * A write is output when the file behind its descriptor is the one behind descriptor 1 or 2, now or
 * when the process was started: a duplicate is heard, and so is the original after another file was
 * put in its place. Read where the call returns: then the bytes written are known, and the memory
 * they came from has just been read. Each stream has a budget, and each user a share of the ring;
 * every byte is told or counted.
 *
 * The same call is met in one of three ways, the cheapest that the kernel offers: behind the system
 * call itself (fexit), at its tracepoint (tracefs), or at the end of every system call (tp_btf).
 * User space loads one of them.
 */
#include "vmlinux.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "events/stdio.h"
#include "open_files.h"
#include "tracked.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#if defined(__TARGET_ARCH_x86)
#define SYSCALL(name) "__x64_sys_" name
#define NR_WRITE 1
#define NR_WRITEV 20
#define NR_SENDFILE 40
#define NR_SPLICE 275
#define NR_COPY_FILE_RANGE 326
#elif defined(__TARGET_ARCH_arm64)
#define SYSCALL(name) "__arm64_sys_" name
#define NR_WRITE 64
#define NR_WRITEV 66
#define NR_SENDFILE 71
#define NR_SPLICE 76
#define NR_COPY_FILE_RANGE 285
#endif

/* 8 MiB hold what 200 MB/s bring in 40 ms; the reader comes every 50 ms, or at once when a quarter is
 * full. Budgets keep it far below that. */
#define RING_BYTES (8 << 20)
struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, RING_BYTES);
} rs_ring SEC(".maps");

/* Process -> its standard files: 16,384 of 48 bytes, as many as can be tracked; below 2 MiB. */
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, RS_TRACKED_MAX);
  __type(key, __u32);
  __type(value, struct rs_standard);
} rs_started_with SEC(".maps");

/* The same of processes that have ended, the oldest forgotten: whose the words of a child are is told
 * from its rank's files, and a child's last words are read when its rank may have ended as well. At
 * a thousand ends a second they stay for eight; 1 MiB. */
struct {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, RS_ENDED_MAX);
  __type(key, __u32);
  __type(value, struct rs_standard);
} rs_ended_with SEC(".maps");

/* Streams that were written to; user space deletes them when it has read their last counts. 1.5
 * MiB. */
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, RS_STREAMS_MAX);
  __type(key, struct rs_stream_key);
  __type(value, struct rs_stream);
} rs_streams SEC(".maps");

/* A file that user space does not want to hear of this stream again. */
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, RS_STREAMS_MAX);
  __type(key, struct rs_stream_key);
  __type(value, struct rs_file);
} rs_unwanted SEC(".maps");

/* Bytes of processes for whom the map of streams has no room. */
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, __u64);
} rs_no_room SEC(".maps");

/* Set by user space before loading: what a stream may say on average, and at once. */
const volatile __u64 rs_bytes_per_second = 64 << 10;
const volatile __u64 rs_burst_bytes = 1 << 20;

/* Set by user space before loading, so that nobody knows with whom he shares. */
const volatile __u32 rs_share_seed = 0;

/* Bytes of records that are in the ring, or taken from it and not yet worked off: of all users, and
 * of each. Added here; user space takes away what it has done with. */
__u64 rs_waiting_all = 0;
__u64 rs_waiting[RS_SHARES] = {};

#define NS_PER_US 1000
#define US_PER_SECOND 1000000
#define LONGEST_REFILL_US (60 * 1000000ull)
/* include/linux/kdev_t.h: device 1:3 */
#define NULL_DEVICE (1 << 20 | 3)
/* arch/x86/include/asm/thread_info.h: a call by the 32-bit table, whose numbers mean others */
#define TS_COMPAT 2
/* Pieces of one writev: libstdc++ and musl write two, a Python program what it likes. */
#define MOST_PIECES 8

/* linux/bpf.h, fixed for user space */
enum { BPF_RB_NO_WAKEUP = 1, BPF_RB_FORCE_WAKEUP = 2, BPF_RB_AVAIL_DATA = 0 };

/* include/uapi/linux/stat.h */
#define TYPE_OF_FILE 0170000
#define REGULAR_FILE 0100000
enum { NO_POSITION = -1 };

enum call { WRITE, WRITEV, SPLICED };
/* Besides enum rs_unheard. */
enum { TOLD = -1 };

static __always_inline void add(__u64 *count, __u64 bytes) {
  __sync_fetch_and_add(count, bytes);
}

static __always_inline void identify(struct rs_file *out, struct inode *inode) {
  out->inode = BPF_CORE_READ(inode, i_ino);
  out->device = BPF_CORE_READ(inode, i_sb, s_dev);
  out->mode = BPF_CORE_READ(inode, i_mode);
  if (BPF_CORE_READ(inode, i_rdev) == NULL_DEVICE) out->mode |= RS_FILE_NULL;
}

static __always_inline bool same(const struct rs_file *a, const struct rs_file *b) {
  return a->inode == b->inode && a->device == b->device;
}

static __always_inline struct inode *inode_at(struct fdtable *table, __u32 fd) {
  struct file *file = rs_file_at(table, fd);
  return file ? BPF_CORE_READ(file, f_inode) : 0;
}

static __always_inline void note_standard(__u32 pid, struct fdtable *table) {
  struct rs_standard now = {};
  struct inode *inode;
  __u32 fd;
#pragma unroll
  for (fd = 0; fd < 3; fd++) {
    inode = inode_at(table, fd);
    if (inode) identify(&now.file[fd], inode);
  }
  bpf_map_update_elem(&rs_started_with, &pid, &now, BPF_ANY);
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(stdio_exec, struct task_struct *task) {
  if (rs_is_tracked(task->tgid)) note_standard(task->tgid, rs_descriptors_of(task));
  return 0;
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(stdio_fork, struct task_struct *parent, struct task_struct *child) {
  __u32 pid = child->tgid, from = parent->tgid;
  struct rs_standard *standard;
  if (child->pid != child->tgid || !rs_is_tracked(from)) return 0;
  standard = bpf_map_lookup_elem(&rs_started_with, &from);
  if (standard) bpf_map_update_elem(&rs_started_with, &pid, standard, BPF_ANY);
  return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(stdio_exit, struct task_struct *task) {
  __u32 pid = task->tgid;
  struct rs_standard *standard;
  if (task->signal->live.counter != 0) return 0;
  standard = bpf_map_lookup_elem(&rs_started_with, &pid);
  if (!standard) return 0;
  bpf_map_update_elem(&rs_ended_with, &pid, standard, BPF_ANY);
  bpf_map_delete_elem(&rs_started_with, &pid);
  return 0;
}

/* Which stream the descriptor writes to, and its file; 0: none. */
static __always_inline __u32 find_stream(__u32 pid, __u32 fd, struct rs_file *file,
                                         __u32 *inherited) {
  struct fdtable *table = rs_descriptors_of((void *)bpf_get_current_task());
  struct inode *inode = inode_at(table, fd);
  __u32 stream = fd == 1 || fd == 2 ? fd : 0;
  struct rs_standard *standard;
  if (!inode) return 0;
  if (!stream) {
    /* There is one null device for everybody: what leads to it is no duplicate. */
    if (BPF_CORE_READ(inode, i_rdev) == NULL_DEVICE) return 0;
    if (inode == inode_at(table, 1)) {
      stream = 1;
    } else if (inode == inode_at(table, 2)) {
      stream = 2;
    }
  }
  standard = bpf_map_lookup_elem(&rs_started_with, &pid);
  if (!standard) {
    /* Older than this program: what it has now counts as what it began with. */
    note_standard(pid, table);
    standard = bpf_map_lookup_elem(&rs_started_with, &pid);
  }
  if (!stream && !standard) return 0;
  identify(file, inode);
  *inherited = 0;
  if (standard) {
    if (same(&standard->file[1], file)) {
      *inherited = 1;
    } else if (same(&standard->file[2], file)) {
      *inherited = 2;
    }
  }
  return stream ? stream : *inherited;
}

/* Where in a regular file the call has begun to write: the file's position is behind what was
 * written, with O_APPEND, too (ksys_write() and generic_write_checks()). */
static __always_inline __s64 position_before(__u32 mode, __u32 fd, long written) {
  struct file *file;
  if ((mode & TYPE_OF_FILE) != REGULAR_FILE) return NO_POSITION;
  file = rs_own_file(fd);
  return file ? BPF_CORE_READ(file, f_pos) - written : NO_POSITION;
}

static __always_inline struct rs_stream *stream_state(const struct rs_stream_key *key) {
  struct task_struct *task = (struct task_struct *)bpf_get_current_task();
  __u64 start_ns = BPF_CORE_READ(task, group_leader, start_boottime);
  struct rs_stream *state = bpf_map_lookup_elem(&rs_streams, key);
  struct rs_stream fresh = {};
  if (state && state->start_ns == start_ns) return state;
  fresh.start_ns = start_ns;
  fresh.tokens = rs_burst_bytes;
  fresh.line_ended = 1;
  fresh.filled_ns = bpf_ktime_get_ns();
  bpf_map_update_elem(&rs_streams, key, &fresh, BPF_ANY);
  return bpf_map_lookup_elem(&rs_streams, key);
}

/* Threads of one process may come here at once; a token more or less does no harm. */
static __always_inline bool within_budget(struct rs_stream *state, __u64 bytes) {
  __u64 now = bpf_ktime_get_ns(), us = (now - state->filled_ns) / NS_PER_US, tokens;
  if (us > LONGEST_REFILL_US) us = LONGEST_REFILL_US;
  tokens = state->tokens + us * rs_bytes_per_second / US_PER_SECOND;
  if (tokens > rs_burst_bytes) tokens = rs_burst_bytes;
  if (tokens != state->tokens) {
    state->filled_ns = now;
    state->tokens = tokens;
  }
  if (tokens < bytes) return false;
  state->tokens = tokens - bytes;
  return true;
}

static __always_inline __u32 own_uid(void) {
  return (__u32)bpf_get_current_uid_gid();
}

static __always_inline __u32 share_of(__u32 uid) {
  return ((uid ^ rs_share_seed) * 2654435761u) >> (32 - RS_SHARES_LOG2);
}

/* A user may have waiting as much as is free: alone he fills half of the ring, and of n who write
 * without end each has 1/(n+1) and leaves as much to the next. (Choudhury and Hahne, Dynamic queue
 * length thresholds for shared-memory packet switches, 1998.) */
static __always_inline bool within_share(__u32 share, __u64 bytes) {
  __u64 all = rs_waiting_all;
  return all < RING_BYTES && rs_waiting[share & (RS_SHARES - 1)] + bytes <= RING_BYTES - all;
}

static __always_inline void add_to_share(__u32 share, __u64 bytes) {
  add(&rs_waiting_all, bytes);
  add(&rs_waiting[share & (RS_SHARES - 1)], bytes);
}

static __always_inline void describe(struct rs_said *said, const struct rs_stream_key *key,
                                     const struct rs_stream *state, __u64 bytes, __s64 position) {
  struct rs_standard *standard = bpf_map_lookup_elem(&rs_started_with, &key->pid);
  __u32 kind;
  said->time_ns = bpf_ktime_get_ns();
  said->start_ns = state->start_ns;
  said->unheard = 0;
#pragma unroll
  for (kind = 0; kind < RS_UNHEARD_KINDS; kind++) said->unheard += state->unheard[kind];
  said->position = position;
  said->file = state->file;
  if (standard) {
    said->input = standard->file[0];
  } else {
    said->input.inode = 0;
    said->input.device = said->input.mode = 0;
  }
  said->pid = key->pid;
  said->stream = key->stream;
  said->fd = state->fd;
  said->inherited = state->inherited;
  said->bytes = bytes;
  said->begins_line = state->line_ended;
  said->uid = own_uid();
  said->share = share_of(said->uid);
}

/* Waking the reader costs more than all the rest: it comes by itself, unless there is much. */
static __always_inline __u64 wakeup(void) {
  return bpf_ringbuf_query(&rs_ring, BPF_RB_AVAIL_DATA) > RING_BYTES / 4 ? BPF_RB_FORCE_WAKEUP
                                                                         : BPF_RB_NO_WAKEUP;
}

/* `room` is a constant at each call: the kernel must know a record's size in advance. */
static __always_inline int tell_within(const __u64 room, const struct rs_stream_key *key,
                                       const struct rs_stream *state, __u64 base, __u64 bytes,
                                       __s64 position) {
  const __u32 share = share_of(own_uid());
  struct rs_said *said;
  if (!within_share(share, sizeof(*said) + room)) return RS_UNHEARD_SHARE;
  said = bpf_ringbuf_reserve(&rs_ring, sizeof(*said) + room, 0);
  if (!said) return RS_UNHEARD_RING;
  describe(said, key, state, bytes, position);
  if (bpf_probe_read_user(said + 1, bytes, (const void *)base)) {
    bpf_ringbuf_discard(said, BPF_RB_NO_WAKEUP);
    return RS_UNHEARD_FAULT;
  }
  add_to_share(share, sizeof(*said) + room);
  bpf_ringbuf_submit(said, wakeup());
  return TOLD;
}

/* One piece, at most RS_SAID_MAX bytes. A function of its own for the verifier, which looks at it
 * once. */
__noinline int rs_tell(__u64 base, __u64 bytes, __u32 pid, __u32 stream, __s64 position) {
  struct rs_stream_key key = {pid, stream};
  struct rs_stream *state = bpf_map_lookup_elem(&rs_streams, &key);
  __u64 end = base + bytes;
  int outcome = RS_UNHEARD_BUDGET;
  char last = 0;
  if (!state || bytes == 0) return 0;
  if (bytes > RS_SAID_MAX) {
    add(&state->unheard[RS_UNHEARD_LONG], bytes - RS_SAID_MAX);
    bytes = RS_SAID_MAX;
  }
  if (within_budget(state, bytes)) {
    if (bytes <= 192) {
      outcome = tell_within(192, &key, state, base, bytes, position);
    } else if (bytes <= 1024) {
      outcome = tell_within(1024, &key, state, base, bytes, position);
    } else if (bytes <= 8192) {
      outcome = tell_within(8192, &key, state, base, bytes, position);
    } else {
      outcome = tell_within(RS_SAID_MAX, &key, state, base, bytes, position);
    }
  }
  if (outcome == TOLD) {
    add(&state->told, bytes);
  } else if (outcome == RS_UNHEARD_BUDGET) {
    add(&state->unheard[RS_UNHEARD_BUDGET], bytes);
  } else if (outcome == RS_UNHEARD_SHARE) {
    add(&state->unheard[RS_UNHEARD_SHARE], bytes);
  } else if (outcome == RS_UNHEARD_RING) {
    add(&state->unheard[RS_UNHEARD_RING], bytes);
  } else {
    add(&state->unheard[RS_UNHEARD_FAULT], bytes);
  }
  bpf_probe_read_user(&last, 1, (const void *)(end - 1));
  state->line_ended = last == '\n' || last == '\r';
  return 0;
}

/* That bytes have gone unheard, by a piece without any: so whose they are is asked while those who
 * can tell are there. A flood of them is not told: the next piece says the sum, or the end. */
static __always_inline void tell_gap(const struct rs_stream_key *key, struct rs_stream *state) {
  const __u32 share = share_of(own_uid());
  struct rs_said *said;
  if (!within_budget(state, sizeof(*said))) return;
  if (!within_share(share, sizeof(*said))) return;
  said = bpf_ringbuf_reserve(&rs_ring, sizeof(*said), 0);
  if (!said) return;
  describe(said, key, state, 0, NO_POSITION);
  add_to_share(share, sizeof(*said));
  bpf_ringbuf_submit(said, wakeup());
}

struct piece {
  __u64 base;
  __u64 bytes;
};

/* A writev's pieces in order; the last may be written in part. */
static __always_inline void tell_pieces(struct rs_stream *state, __u64 vector, __u64 pieces,
                                        __u64 written, const struct rs_stream_key *key,
                                        __s64 position) {
  __u64 left = written;
  struct piece piece;
  int i;
#pragma clang loop unroll(disable)
  for (i = 0; i < MOST_PIECES; i++) {
    if (i >= pieces || left == 0) break;
    if (bpf_probe_read_user(&piece, sizeof(piece), (const void *)(vector + i * sizeof(piece)))) {
      add(&state->unheard[RS_UNHEARD_FAULT], left);
      return;
    }
    if (piece.bytes > left) piece.bytes = left;
    left -= piece.bytes;
    rs_tell(piece.base, piece.bytes, key->pid, key->stream, position);
    if (position >= 0) position += piece.bytes;
  }
  if (left > 0) add(&state->unheard[RS_UNHEARD_LONG], left);
}

static __always_inline int hear(enum call call, __u32 fd, __u64 from, __u64 pieces, long written) {
  struct rs_stream_key key = {bpf_get_current_pid_tgid() >> 32, 0};
  struct rs_file file = {}, *unwanted;
  struct rs_stream *state;
  __u32 inherited = 0, zero = 0;
  __s64 position;
  __u64 *no_room;
  key.stream = find_stream(key.pid, fd, &file, &inherited);
  if (!key.stream) return 0;
  state = stream_state(&key);
  if (!state) {
    no_room = bpf_map_lookup_elem(&rs_no_room, &zero);
    if (no_room) add(no_room, written);
    return 0;
  }
  unwanted = bpf_map_lookup_elem(&rs_unwanted, &key);
  if (unwanted && same(unwanted, &file)) {
    add(&state->ignored, written);
    return 0;
  }
  position = position_before(file.mode, fd, written);
  state->file = file;
  state->fd = fd;
  state->inherited = inherited;
  if (call == WRITE) {
    rs_tell(from, written, key.pid, key.stream, position);
  } else if (call == WRITEV) {
    tell_pieces(state, from, pieces, written, &key, position);
  } else {
    add(&state->unheard[RS_UNHEARD_SPLICED], written);
    state->line_ended = 0;
    tell_gap(&key, state);
  }
  return 0;
}

/* `registers`: those of the call, which are the thread's own. */
static __always_inline int returned(enum call call, int out_argument, struct pt_regs *registers,
                                    long written) {
  const struct rs_arguments args = rs_arguments_of(registers);
  return hear(call, args.a[out_argument], args.a[1], args.a[2], written);
}

static __always_inline bool is_ours(long written) {
  return written > 0 && rs_tracked_self();
}

/* --- The system call itself: nobody else pays. Kernels with function tracing for BPF. */

SEC("fexit/" SYSCALL("write"))
int BPF_PROG(stdio_write_fexit, struct pt_regs *regs, long ret) {
  return is_ours(ret) ? returned(WRITE, 0, regs, ret) : 0;
}

SEC("fexit/" SYSCALL("writev"))
int BPF_PROG(stdio_writev_fexit, struct pt_regs *regs, long ret) {
  return is_ours(ret) ? returned(WRITEV, 0, regs, ret) : 0;
}

SEC("fexit/" SYSCALL("sendfile64"))
int BPF_PROG(stdio_sendfile_fexit, struct pt_regs *regs, long ret) {
  return is_ours(ret) ? returned(SPLICED, 0, regs, ret) : 0;
}

SEC("fexit/" SYSCALL("splice"))
int BPF_PROG(stdio_splice_fexit, struct pt_regs *regs, long ret) {
  return is_ours(ret) ? returned(SPLICED, 2, regs, ret) : 0;
}

SEC("fexit/" SYSCALL("copy_file_range"))
int BPF_PROG(stdio_copy_fexit, struct pt_regs *regs, long ret) {
  return is_ours(ret) ? returned(SPLICED, 2, regs, ret) : 0;
}

/* --- The system call's tracepoint: a few ns on each system call of the machine, more on these. */

static __always_inline int traced(enum call call, int out_argument, long ret) {
  return is_ours(ret) ? returned(call, out_argument, rs_own_registers(), ret) : 0;
}

SEC("tracepoint/syscalls/sys_exit_write")
int stdio_write_trace(struct trace_event_raw_sys_exit *ctx) {
  return traced(WRITE, 0, ctx->ret);
}

SEC("tracepoint/syscalls/sys_exit_writev")
int stdio_writev_trace(struct trace_event_raw_sys_exit *ctx) {
  return traced(WRITEV, 0, ctx->ret);
}

SEC("tracepoint/syscalls/sys_exit_sendfile64")
int stdio_sendfile_trace(struct trace_event_raw_sys_exit *ctx) {
  return traced(SPLICED, 0, ctx->ret);
}

SEC("tracepoint/syscalls/sys_exit_splice")
int stdio_splice_trace(struct trace_event_raw_sys_exit *ctx) {
  return traced(SPLICED, 2, ctx->ret);
}

SEC("tracepoint/syscalls/sys_exit_copy_file_range")
int stdio_copy_trace(struct trace_event_raw_sys_exit *ctx) {
  return traced(SPLICED, 2, ctx->ret);
}

/* --- The end of every system call. */

SEC("tp_btf/sys_exit")
int BPF_PROG(stdio_any_syscall, struct pt_regs *regs, long ret) {
  long nr;
#if defined(__TARGET_ARCH_x86)
  struct task_struct *task;
  nr = __builtin_preserve_access_index(regs->orig_ax);
#else
  nr = __builtin_preserve_access_index(regs->syscallno);
#endif
  if (nr != NR_WRITE && nr != NR_WRITEV && nr != NR_SENDFILE && nr != NR_SPLICE &&
      nr != NR_COPY_FILE_RANGE) {
    return 0;
  }
  if (!is_ours(ret)) return 0;
#if defined(__TARGET_ARCH_x86)
  task = (struct task_struct *)bpf_get_current_task();
  if (BPF_CORE_READ(task, thread_info.status) & TS_COMPAT) return 0;
#endif
  if (nr == NR_WRITE) return returned(WRITE, 0, regs, ret);
  if (nr == NR_WRITEV) return returned(WRITEV, 0, regs, ret);
  return returned(SPLICED, nr == NR_SENDFILE ? 0 : 2, regs, ret);
}
