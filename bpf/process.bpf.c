/* SPDX-FileCopyrightText: The rankscope authors */
/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */

/*
 * Births, deaths and signals of the processes of training jobs.
 *
 * Whoever execs is a candidate: its environment goes to user space, which decides. A child of a
 * tracked process is tracked from its first instruction. All events come through one ring and so in
 * the order in which they happened: a candidate's children, signals and end follow its exec.
 * Everybody else pays one map look-up per fork and exit.
 */
#include "vmlinux.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "events/process.h"
#include "tracked.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* 4 MiB hold a second of 1,000 execs with environments of 3 KiB while the daemon is busy. */
struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, 4 << 20);
} rs_events SEC(".maps");

/* An exec's event is too large for the stack. 29 KiB per CPU. */
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct rs_exec);
} rs_scratch SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, RS_LOST_KINDS);
  __type(key, __u32);
  __type(value, __u64);
} rs_lost SEC(".maps");

/* include/linux/sched/signal.h, include/trace/events/signal.h, include/linux/signal_types.h: fixed
 * since 2.6, but no enum that BTF could tell. */
#define SIGNAL_GROUP_EXIT 4
#define TRACE_SIGNAL_DELIVERED 0
#define SEND_SIG_NOINFO 0
#define SEND_SIG_PRIV 1
#define SI_KERNEL 0x80
#define SIGKILL 9
/* HUP INT QUIT ILL TRAP ABRT BUS FPE KILL USR1 SEGV USR2 PIPE ALRM TERM XCPU XFSZ SYS: those whose
 * default is death and that a job is ended with. */
#define FATAL_SIGNALS                                                                        \
  (1u << 1 | 1u << 2 | 1u << 3 | 1u << 4 | 1u << 5 | 1u << 6 | 1u << 7 | 1u << 8 | 1u << 9 | \
   1u << 10 | 1u << 11 | 1u << 12 | 1u << 13 | 1u << 14 | 1u << 15 | 1u << 24 | 1u << 25 |   \
   1u << 31)
/* STOP TSTP: their target stands still, and who waits for it asks who did that. */
#define STOP_SIGNALS (1u << 19 | 1u << 20)
/* A charge asks for up to a huge page, and each CPU holds some pages in stock. */
#define LIMIT_SLACK_PAGES 640
/* A pid is below this; what is above is a pointer (see oom). */
#define PID_MAX_LIMIT 4194304

static __always_inline void lost(__u32 why) {
  __u64 *count = bpf_map_lookup_elem(&rs_lost, &why);
  if (count) __sync_fetch_and_add(count, 1);
}

static __always_inline void track(__u32 pid, __u64 start_ns) {
  if (bpf_map_update_elem(&rs_tracked, &pid, &start_ns, BPF_ANY)) lost(RS_LOST_PROCESS);
}

static __always_inline void begin(struct rs_header *header, __u32 kind) {
  header->time_ns = bpf_ktime_get_ns();
  header->kind = kind;
  header->pad = 0;
}

static __always_inline void describe(struct rs_process *out, struct task_struct *task) {
  struct task_struct *leader = BPF_CORE_READ(task, group_leader);
  out->pid = BPF_CORE_READ(task, tgid);
  out->start_ns = BPF_CORE_READ(leader, start_boottime);
  out->uid = BPF_CORE_READ(task, cred, uid.val);
  bpf_core_read_str(out->comm, sizeof(out->comm), &leader->comm);
}

static __always_inline struct kernfs_node *parent_of(struct kernfs_node *node) {
  struct kernfs_node___before_6_15 *old = (void *)node;
  if (bpf_core_field_exists(node->__parent)) return BPF_CORE_READ(node, __parent);
  return BPF_CORE_READ(old, parent);
}

static __always_inline struct cgroup_subsys_state *memory_state(struct task_struct *task) {
  struct cgroup_subsys_state **states, *css = 0;
  struct css_set *set = BPF_CORE_READ(task, cgroups);
  if (!bpf_core_enum_value_exists(enum cgroup_subsys_id, memory_cgrp_id)) return 0;
  states = (void *)set + bpf_core_field_offset(struct css_set, subsys);
  states += bpf_core_enum_value(enum cgroup_subsys_id, memory_cgrp_id);
  bpf_probe_read_kernel(&css, sizeof(css), states);
  return css;
}

static __always_inline struct cgroup *freezer_of(struct task_struct *task) {
  struct cgroup_subsys_state **states, *css = 0;
  struct css_set *set = BPF_CORE_READ(task, cgroups);
  if (!bpf_core_enum_value_exists(enum cgroup_subsys_id, freezer_cgrp_id)) return 0;
  states = (void *)set + bpf_core_field_offset(struct css_set, subsys);
  states += bpf_core_enum_value(enum cgroup_subsys_id, freezer_cgrp_id);
  bpf_probe_read_kernel(&css, sizeof(css), states);
  return css ? BPF_CORE_READ(css, cgroup) : 0;
}

/* The path that says most: with cgroup v1 Slurm's is in the memory hierarchy, and where it limits
 * no memory in that of the freezer, and the other ones are shallow; with v2 there is one, and the
 * memory controller may stop above its end. */
static __always_inline void name_cgroup(struct rs_cgroup *out, struct task_struct *task,
                                        bool of_memory) {
  struct cgroup_subsys_state *css = memory_state(task);
  struct cgroup *memory = css ? BPF_CORE_READ(css, cgroup) : 0;
  struct cgroup *unified = BPF_CORE_READ(task, cgroups, dfl_cgrp);
  struct cgroup *freezer = of_memory ? 0 : freezer_of(task);
  struct kernfs_node *node, *parent;
  int i;
  out->v1 = RS_CGROUP_MEMORY;
  if (!memory || (!of_memory && BPF_CORE_READ(unified, level) > BPF_CORE_READ(memory, level))) {
    memory = unified;
  }
  if (freezer && BPF_CORE_READ(freezer, level) > BPF_CORE_READ(memory, level)) {
    memory = freezer;
    out->v1 = RS_CGROUP_OTHER;
  }
  if (BPF_CORE_READ(memory, root) == BPF_CORE_READ(unified, root)) out->v1 = RS_CGROUP_UNIFIED;
  out->names = 0;
  node = BPF_CORE_READ(memory, kn);
#pragma unroll
  for (i = 0; i < RS_CGROUP_LEVELS; i++) {
    parent = node ? parent_of(node) : 0;
    if (parent) {
      bpf_probe_read_kernel_str(out->name[i], RS_CGROUP_NAME, BPF_CORE_READ(node, name));
      out->names = i + 1;
    } else {
      out->name[i][0] = 0;
    }
    node = parent;
  }
  out->cut = node && parent_of(node);
}

/* Which limit above a process is used up. An allocation that fails at a limit leaves it so; the one
 * nearest to the process is the one that was asked first. */
static __always_inline void find_limit(struct rs_signal *out, struct task_struct *task) {
  struct cgroup_subsys_state *css = memory_state(task);
  struct mem_cgroup *group;
  __u64 used, max;
  int i;
#pragma unroll
  for (i = 0; i < RS_CGROUP_LEVELS; i++) {
    if (!css || out->limit_pages) continue;
    group = (void *)css - bpf_core_field_offset(struct mem_cgroup, css);
    used = BPF_CORE_READ(group, memory.usage.counter);
    max = BPF_CORE_READ(group, memory.max);
    if (used + LIMIT_SLACK_PAGES >= max) {
      out->limit_pages = max;
      out->used_pages = used;
      out->limit_level = i;
    }
    css = BPF_CORE_READ(css, parent);
  }
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(process_fork, struct task_struct *parent, struct task_struct *child) {
  struct rs_fork *event;
  if (child->pid != child->tgid) return 0; /* a thread */
  if (!rs_is_tracked(parent->tgid)) return 0;
  track(child->tgid, child->start_boottime);
  event = bpf_ringbuf_reserve(&rs_events, sizeof(*event), 0);
  if (!event) {
    lost(RS_LOST_EVENT);
    return 0;
  }
  begin(&event->header, RS_FORK);
  describe(&event->child, child);
  describe(&event->parent, parent);
  bpf_ringbuf_submit(event, 0);
  return 0;
}

/* Bytes of [from, to) of the current process, at most `room`; 0 where they cannot be read. */
static __always_inline __u64 copy_user(char *out, __u64 room, unsigned long from,
                                       unsigned long to) {
  __u64 bytes = to - from;
  if (from >= to) return 0;
  if (bytes > room) bytes = room;
  return bpf_probe_read_user(out, bytes, (const void *)from) ? 0 : bytes;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(process_exec, struct task_struct *task) {
  struct mm_struct *mm = task->mm;
  struct pid *pid = task->thread_pid;
  unsigned int level = pid->level;
  unsigned long begin_of, end_of;
  struct rs_exec *event;
  struct upid *inner;
  __u64 arguments, environment;
  __u32 zero = 0;
  event = bpf_map_lookup_elem(&rs_scratch, &zero);
  if (!event || !mm) return 0;
  track(task->tgid, task->group_leader->start_boottime);
  begin(&event->header, RS_EXEC);
  describe(&event->process, task);
  describe(&event->parent, BPF_CORE_READ(task, real_parent));
  event->inner_pid = 0;
  if (level > 0 && level < 32) {
    inner = (void *)pid + bpf_core_field_offset(struct pid, numbers);
    inner = (void *)inner + level * bpf_core_type_size(struct upid);
    event->inner_pid = BPF_CORE_READ(inner, nr);
  }
  name_cgroup(&event->cgroup, task, false);
  event->cut = 0;
  begin_of = mm->arg_start;
  end_of = mm->arg_end;
  arguments = copy_user(event->data, RS_ARGUMENTS, begin_of, end_of);
  if (arguments > RS_ARGUMENTS) return 0; /* never; the verifier cannot know */
  if (arguments < end_of - begin_of) event->cut |= 1;
  begin_of = mm->env_start;
  end_of = mm->env_end;
  environment = copy_user(event->data + arguments, RS_ENVIRONMENT, begin_of, end_of);
  if (environment > RS_ENVIRONMENT) return 0;
  if (environment < end_of - begin_of) event->cut |= 2;
  event->arguments = arguments;
  event->environment = environment;
  if (bpf_ringbuf_output(&rs_events, event,
                         __builtin_offsetof(struct rs_exec, data) + arguments + environment, 0)) {
    lost(RS_LOST_EVENT);
  }
  return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(process_exit, struct task_struct *task) {
  __u32 pid = task->tgid;
  struct signal_struct *signal = task->signal;
  struct task_struct *leader = task->group_leader;
  struct rs_exit *event;
  /* The process ends with its last thread, which need not be its first. Two may arrive here at
   * once; one of them finds the entry. */
  if (signal->live.counter != 0 || !rs_is_tracked(pid)) return 0;
  if (bpf_map_delete_elem(&rs_tracked, &pid)) return 0;
  event = bpf_ringbuf_reserve(&rs_events, sizeof(*event), 0);
  if (!event) {
    lost(RS_LOST_EVENT);
    return 0;
  }
  begin(&event->header, RS_EXIT);
  event->pid = pid;
  event->start_ns = leader->start_boottime;
  event->wait_status =
      signal->flags & SIGNAL_GROUP_EXIT ? signal->group_exit_code : leader->exit_code;
  bpf_ringbuf_submit(event, 0);
  return 0;
}

SEC("tp_btf/signal_generate")
int BPF_PROG(process_signal, int sig, struct kernel_siginfo *info, struct task_struct *target,
             int group, int result) {
  __u32 pid = target->tgid;
  struct task_struct *sender;
  struct rs_signal *event;
  if (sig < 1 || sig > 31 || !(1u << sig & (FATAL_SIGNALS | STOP_SIGNALS))) return 0;
  if (result != TRACE_SIGNAL_DELIVERED || !rs_is_tracked(target->tgid)) return 0;
  event = bpf_ringbuf_reserve(&rs_events, sizeof(*event), 0);
  if (!event) {
    lost(RS_LOST_EVENT);
    return 0;
  }
  begin(&event->header, RS_SIGNAL);
  event->target_pid = pid;
  event->target_start_ns = BPF_CORE_READ(target, group_leader, start_boottime);
  event->signo = sig;
  event->pad = event->pad2 = 0;
  event->limit_pages = event->used_pages = 0;
  event->limit_level = 0;
  event->si_code = 0;
  if ((__u64)info == SEND_SIG_PRIV) {
    event->si_code = SI_KERNEL;
  } else if ((__u64)info != SEND_SIG_NOINFO) {
    event->si_code = BPF_CORE_READ(info, si_code);
  }
  if (event->si_code > 0) {
    __builtin_memset(&event->sender, 0, sizeof(event->sender));
    name_cgroup(&event->cgroup, target, true);
    if (sig == SIGKILL) find_limit(event, target);
  } else {
    sender = (struct task_struct *)bpf_get_current_task();
    describe(&event->sender, sender);
    name_cgroup(&event->cgroup, sender, false);
  }
  bpf_ringbuf_submit(event, 0);
  return 0;
}

/* The argument was the victim's pid and is its task since 6.9 and in stable kernels before: as plain
 * numbers the two cannot be mistaken for each other. */
SEC("raw_tp/mark_victim")
int process_oom(struct bpf_raw_tracepoint_args *ctx) {
  struct task_struct *victim = (void *)ctx->args[0];
  __u64 start_ns = 0;
  struct rs_oom *event;
  __u32 pid;
  if ((__u64)victim <= PID_MAX_LIMIT) {
    pid = (__u64)victim;
  } else {
    pid = BPF_CORE_READ(victim, tgid);
    start_ns = BPF_CORE_READ(victim, group_leader, start_boottime);
  }
  if (!rs_is_tracked(pid)) return 0;
  event = bpf_ringbuf_reserve(&rs_events, sizeof(*event), 0);
  if (!event) {
    lost(RS_LOST_EVENT);
    return 0;
  }
  begin(&event->header, RS_OOM);
  event->pid = pid;
  event->start_ns = start_ns;
  event->pad = 0;
  bpf_ringbuf_submit(event, 0);
  return 0;
}
