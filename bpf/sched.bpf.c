/* SPDX-FileCopyrightText: The rankscope authors */
/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */

/*
 * What the threads of training jobs do when they do not run, counted at each switch of context:
 *
 *            wakes up                   gets a CPU
 *   waiting ----------> wants a CPU <---------------> running
 *      ^                              is preempted       |
 *      '--------------------- waits ---------------------'
 *
 * Every switch and every wake-up of the machine comes here, so whoever is not tracked leaves after
 * one look at a bit of a global word; attached only while there is somebody to watch
 * (exporter/probes/wait). Counts per thread in a map that user space reads each second; no event is
 * ever sent. The class of a wait is told by the system call that the thread is in, and where that is
 * about a descriptor, by the file behind it.
 *
 * Where the kernel counts a thread's time in run queues itself (CONFIG_SCHED_INFO), wake-ups are not
 * looked at: what of a wait was spent in a queue is taken from that count when the thread next leaves
 * its CPU. That halves what everybody else pays.
 */
#include "vmlinux.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "events/sched.h"
#include "open_files.h"
#include "tracked.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, RS_THREADS_MAX);
  __type(key, __u32);
  __type(value, struct rs_thread);
} rs_threads SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, RS_SCHED_LOST_KINDS);
  __type(key, __u32);
  __type(value, __u64);
} rs_lost SEC(".maps");

/* Written by user space. */
__u64 rs_watched[RS_WATCHED_WORDS] = {};
const volatile __u8 rs_calls[RS_CALLS] = {}; /* enum rs_wait or rs_wait_call, by number */
const volatile __u32 rs_uvm_major = 0;       /* of /dev/nvidia-uvm; it is dynamic */
const volatile __u8 rs_delay_counted = 0;    /* sched_wakeup is not attached */
const volatile __u32 rs_stack_bytes = 16384; /* of a kernel stack, before bpf_task_pt_regs */

/* include/linux/sched.h: bits since 2.6. */
#define TASK_UNINTERRUPTIBLE 2
#define STOPPED_OR_TRACED (4 | 8)
#define TASK_DEAD 0x80
/* include/uapi/linux/stat.h, fcntl.h, major.h */
#define S_IFMT 0170000
#define S_IFSOCK 0140000
#define S_IFIFO 0010000
#define S_IFCHR 0020000
#define F_SETLKW 7
#define F_OFD_SETLKW 38
#define MINORBITS 20
#define NVIDIA_MAJOR 195
/* include/uapi/linux/magic.h and the file systems' own headers */
#define ANON_INODE_FS_MAGIC 0x09041934
#define NFS_SUPER_MAGIC 0x6969
#define SMB_SUPER_MAGIC 0x517B
#define CIFS_SUPER_MAGIC 0xFF534D42
#define SMB2_SUPER_MAGIC 0xFE534D42
#define CEPH_SUPER_MAGIC 0x00C36400
#define FUSE_SUPER_MAGIC 0x65735546
#define V9FS_MAGIC 0x01021997
#define LUSTRE_SUPER_MAGIC 0x0BD00BD0
#define GPFS_SUPER_MAGIC 0x47504653
#define BEEGFS_MAGIC 0x19830326
#define AFS_FS_MAGIC 0x6B414653
#define WEKAFS_MAGIC 0x18031977

static __always_inline bool is_watched(__u32 tgid) {
  return rs_watched[(tgid >> 6) & (RS_WATCHED_WORDS - 1)] >> (tgid & 63) & 1;
}

static __always_inline long state_of(struct task_struct *task) {
  struct task_struct___before_5_14 *old = (void *)task;
  if (bpf_core_field_exists(task->__state)) return BPF_CORE_READ(task, __state);
  return BPF_CORE_READ(old, state);
}

struct call {
  int number; /* -1: none */
  __u64 first, second;
};

static __always_inline struct call call_of(struct task_struct *task) {
  struct call call = {.number = -1};
  struct pt_regs *regs;
  if (bpf_core_enum_value_exists(enum bpf_func_id___tested, BPF_FUNC_task_pt_regs___tested)) {
    regs = (struct pt_regs *)bpf_task_pt_regs(task);
  } else {
    regs = BPF_CORE_READ(task, stack) + rs_stack_bytes - bpf_core_type_size(struct pt_regs);
  }
#ifdef __TARGET_ARCH_arm64
  call.number = BPF_CORE_READ(regs, syscallno);
  call.first = BPF_CORE_READ(regs, regs[0]);
  call.second = BPF_CORE_READ(regs, regs[1]);
#else
  call.number = BPF_CORE_READ(regs, orig_ax);
  call.first = BPF_CORE_READ(regs, di);
  call.second = BPF_CORE_READ(regs, si);
#endif
  return call;
}

static __always_inline bool is_network(unsigned long magic) {
  switch ((__u32)magic) {
    case NFS_SUPER_MAGIC:
    case SMB_SUPER_MAGIC:
    case CIFS_SUPER_MAGIC:
    case SMB2_SUPER_MAGIC:
    case CEPH_SUPER_MAGIC:
    case FUSE_SUPER_MAGIC:
    case V9FS_MAGIC:
    case LUSTRE_SUPER_MAGIC:
    case GPFS_SUPER_MAGIC:
    case BEEGFS_MAGIC:
    case AFS_FS_MAGIC:
    case WEKAFS_MAGIC:
      return true;
    default:
      return false;
  }
}

static __always_inline __u8 class_of_file(struct task_struct *task, __u64 fd) {
  struct file *file = rs_file_at(rs_descriptors_of(task), fd);
  unsigned long magic;
  struct inode *inode;
  __u32 mode, major;
  if (!file) return RS_WAIT_OTHER;
  inode = BPF_CORE_READ(file, f_inode);
  magic = BPF_CORE_READ(inode, i_sb, s_magic);
  if (magic == ANON_INODE_FS_MAGIC) return RS_WAIT_SOCKET; /* eventfd, epoll, io_uring */
  mode = BPF_CORE_READ(inode, i_mode) & S_IFMT;
  if (mode == S_IFSOCK || mode == S_IFIFO) return RS_WAIT_SOCKET;
  if (mode == S_IFCHR) {
    major = BPF_CORE_READ(inode, i_rdev) >> MINORBITS;
    if (major == NVIDIA_MAJOR || (rs_uvm_major && major == rs_uvm_major)) return RS_WAIT_GPU;
    return RS_WAIT_OTHER;
  }
  return is_network(magic) ? RS_WAIT_NETWORK_FILE : RS_WAIT_BLOCK;
}

static __always_inline __u8 class_of(struct task_struct *task, long state, struct call call) {
  const __u8 by_state = state & TASK_UNINTERRUPTIBLE ? RS_WAIT_BLOCK : RS_WAIT_OTHER;
  __u8 kind;
  if (state & STOPPED_OR_TRACED) return RS_STOPPED;
  if (call.number < 0 || call.number >= RS_CALLS) return by_state; /* a fault brings in a page */
  kind = rs_calls[call.number];
  switch (kind) {
    case RS_CALL_FCNTL:
      if (call.second == F_SETLKW || call.second == F_OFD_SETLKW) return RS_WAIT_FILE_LOCK;
      return class_of_file(task, call.first);
    case RS_CALL_FILE:
      return class_of_file(task, call.first);
    case RS_CALL_POLL:
      return call.second ? RS_WAIT_SOCKET : RS_WAIT_SLEEP;
    case RS_CALL_SELECT:
      return call.first ? RS_WAIT_SOCKET : RS_WAIT_SLEEP;
    case RS_CALL_OTHER:
      return by_state;
    default:
      return kind;
  }
}

/* Ends the present interval and begins one of `state`. */
static __always_inline void enter(struct rs_thread *thread, __u8 state, __u64 now) {
  __u64 spent = now - thread->since_ns;
  __u8 was = thread->state;
  if (was < RS_WAITS && (__s64)spent > 0) thread->ns[was] += spent;
  if (was == RS_RUNNING) thread->run_ns += spent;
  if (state > RS_RUNNABLE && thread->run_ns) {
    if (thread->run_ns >= RS_SILENT_NS) thread->silent_ns += thread->run_ns;
    thread->run_ns = 0;
  }
  thread->state = state;
  thread->since_ns = now;
}

static __always_inline struct rs_thread *thread_of(struct task_struct *task, __u64 now) {
  __u32 tid = task->pid;
  struct rs_thread fresh = {};
  struct rs_thread *thread = bpf_map_lookup_elem(&rs_threads, &tid);
  if (thread && !thread->ended) return thread;
  if (!rs_is_tracked(task->tgid)) return 0; /* another process with the same bit */
  fresh.since_ns = now;
  fresh.tgid = task->tgid;
  fresh.call = -1;
  if (bpf_map_update_elem(&rs_threads, &tid, &fresh, BPF_ANY)) {
    __u32 why = RS_LOST_THREAD;
    __u64 *count = bpf_map_lookup_elem(&rs_lost, &why);
    if (count) __sync_fetch_and_add(count, 1);
    return 0;
  }
  return bpf_map_lookup_elem(&rs_threads, &tid);
}

static __always_inline __u64 queued_of(struct task_struct *task) {
  if (!rs_delay_counted || !bpf_core_field_exists(task->sched_info.run_delay)) return 0;
  return BPF_CORE_READ(task, sched_info.run_delay);
}

/* Of the wait before this run, the end was spent in a run queue. */
static __always_inline void split_wait(struct rs_thread *thread, __u64 queued) {
  __u64 delay = queued - thread->queued_ns, from = thread->came_from;
  bool waited = from > RS_RUNNABLE;
  /* Else the compiler makes one comparison of both, of which the verifier learns no bound. */
  barrier_var(from);
  if (waited && from < RS_WAITS && thread->queued_ns && delay <= thread->ns[from]) {
    thread->ns[from] -= delay;
    thread->ns[RS_RUNNABLE] += delay;
  }
  thread->queued_ns = queued;
  thread->came_from = RS_RUNNING;
}

static __always_inline void leave_cpu(struct task_struct *task, bool preempted, __u64 now) {
  struct rs_thread *thread = thread_of(task, now);
  long state = state_of(task);
  struct call call;
  if (!thread) return;
  if (rs_delay_counted) split_wait(thread, queued_of(task));
  if (state & TASK_DEAD) {
    enter(thread, RS_WAIT_OTHER, now);
    thread->ended = 1;
    return;
  }
  if (preempted || !state) {
    enter(thread, RS_RUNNABLE, now);
    return;
  }
  call = call_of(task);
  thread->call = call.number;
  thread->uninterruptible = (state & TASK_UNINTERRUPTIBLE) != 0;
  enter(thread, class_of(task, state, call), now);
}

/* (preempt, prev, next, prev_state), and in 5.18 alone prev_state second: a number there is no task. */
SEC("tp_btf/sched_switch")
int BPF_PROG(sched_switch, bool preempt, struct task_struct *prev, struct task_struct *next) {
  bool leaves = is_watched(prev->tgid), enters = is_watched(next->tgid);
  struct rs_thread *thread;
  __u64 now;
  if (!leaves && !enters) return 0;
  now = bpf_ktime_get_ns();
  if (leaves) leave_cpu(prev, preempt, now);
  if (enters) {
    thread = thread_of(next, now);
    if (thread) {
      thread->came_from = thread->state;
      enter(thread, RS_RUNNING, now);
      thread->uninterruptible = 0;
    }
  }
  return 0;
}

SEC("tp_btf/sched_wakeup")
int BPF_PROG(sched_wakeup, struct task_struct *task) {
  struct rs_thread *thread;
  __u64 now;
  if (!is_watched(task->tgid)) return 0;
  now = bpf_ktime_get_ns();
  thread = thread_of(task, now);
  /* Who is woken before it has left the CPU just goes on. */
  if (thread && thread->state != RS_RUNNING) {
    enter(thread, RS_RUNNABLE, now);
    thread->uninterruptible = 0;
  }
  return 0;
}
