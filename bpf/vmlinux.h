/* SPDX-FileCopyrightText: The rankscope authors */
/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */

/*
 * Of the kernel's types only what our programs read. Layouts do not matter: each access is relocated
 * against the running kernel's BTF when the program is loaded. A name with three underscores is
 * another version of the type before them.
 */
#pragma once
#define __VMLINUX_H__ /* bpf_tracing.h: the kernel's names of registers */

typedef unsigned char __u8;
typedef signed char __s8;
typedef unsigned short __u16;
typedef signed short __s16;
typedef unsigned int __u32;
typedef signed int __s32;
typedef unsigned long long __u64;
typedef signed long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef _Bool bool;
enum { false, true };

/* linux/bpf.h, fixed for user space */
enum {
  BPF_MAP_TYPE_HASH = 1,
  BPF_MAP_TYPE_ARRAY = 2,
  BPF_MAP_TYPE_PERCPU_ARRAY = 6,
  BPF_MAP_TYPE_LRU_HASH = 9,
  BPF_MAP_TYPE_RINGBUF = 27,
  BPF_MAP_TYPE_TASK_STORAGE = 29,
};
enum { BPF_ANY = 0, BPF_NOEXIST = 1 };
enum { BPF_F_NO_PREALLOC = 1, BPF_LOCAL_STORAGE_GET_F_CREATE = 1 };

/* asm/ptrace.h: what a uprobe's program gets; part of the ABI, so never relocated. */
#if defined(__TARGET_ARCH_x86)
struct pt_regs {
  unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, cs,
      flags, sp, ss;
};
#elif defined(__TARGET_ARCH_arm64)
struct user_pt_regs {
  __u64 regs[31], sp, pc, pstate;
};
struct pt_regs {
  __u64 regs[31], sp, pc, pstate, orig_x0;
  int syscallno;
};
#endif

struct bpf_raw_tracepoint_args {
  __u64 args[0];
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

/* What tracepoints of system calls hand over, fixed since 2.6.30: the common header, then these. */
struct trace_event_raw_sys_enter {
  long id;
  unsigned long args[6];
};
struct trace_event_raw_sys_exit {
  long id;
  long ret;
};

typedef struct {
  int counter;
} atomic_t;

typedef struct {
  __s64 counter;
} atomic_long_t;

typedef struct {
  __u32 val;
} kuid_t;

enum cgroup_subsys_id { memory_cgrp_id = 4, freezer_cgrp_id = 6 };

struct kernfs_node {
  const char *name;
  struct kernfs_node *__parent; /* since 6.15 */
};

struct kernfs_node___before_6_15 {
  struct kernfs_node *parent;
};

struct cgroup_root;

struct cgroup {
  int level;
  struct kernfs_node *kn;
  struct cgroup_root *root;
};

struct cgroup_subsys_state {
  struct cgroup *cgroup;
  struct cgroup_subsys_state *parent;
};

struct page_counter {
  atomic_long_t usage;
  unsigned long max;
};

struct mem_cgroup {
  struct cgroup_subsys_state css;
  struct page_counter memory;
};

struct css_set {
  struct cgroup_subsys_state *subsys[1];
  struct cgroup *dfl_cgrp;
};

struct cred {
  kuid_t uid;
};

struct upid {
  int nr;
};

struct pid {
  unsigned int level;
  struct upid numbers[1];
};

struct signal_struct {
  atomic_t live;
  int group_exit_code;
  unsigned int flags;
};

struct mm_struct {
  unsigned long arg_start, arg_end, env_start, env_end;
};

struct qstr {
  __u32 len;
  const unsigned char *name;
};
struct file_system_type {
  const char *name;
};
struct super_block {
  __u32 s_dev;
  unsigned long s_magic;
  struct file_system_type *s_type;
  void *s_fs_info;
};
struct percpu_counter {
  __s64 count;
};
struct shmem_sb_info {
  unsigned long max_blocks;
  struct percpu_counter used_blocks;
};
struct rb_node;
struct rb_root {
  struct rb_node *rb_node;
};
struct rb_root_cached {
  struct rb_root rb_root;
};
struct address_space {
  struct rb_root_cached i_mmap;
};
struct task_io_accounting {
  __u64 rchar;
};
struct inode {
  unsigned short i_mode;
  __u32 i_rdev;
  __s64 i_size;
  unsigned long i_ino;
  struct super_block *i_sb;
  struct address_space *i_mapping;
};
struct dentry {
  struct dentry *d_parent;
  struct qstr d_name;
};
struct path {
  struct dentry *dentry;
};
struct file {
  void *private_data;
  struct inode *f_inode;
  struct path f_path;
  unsigned int f_mode;
  unsigned int f_flags;
  __s64 f_pos;
};
struct fdtable {
  unsigned int max_fds;
  struct file **fd;
};

struct files_struct {
  struct fdtable *fdt;
};

/* Ids of helper functions, to ask whether the running kernel has them. */
enum bpf_func_id___tested { BPF_FUNC_task_pt_regs___tested = 175 };
struct socket {
  short type;
};
struct in6_addr {
  union {
    __u8 u6_addr8[16];
    __be32 u6_addr32[4];
  } in6_u;
};
struct sock_common {
  __be32 skc_daddr;
  __be32 skc_rcv_saddr;
  __be16 skc_dport;
  __u16 skc_num;
  unsigned short skc_family;
  struct in6_addr skc_v6_daddr;
  struct in6_addr skc_v6_rcv_saddr;
};
struct sock {
  struct sock_common __sk_common;
  int sk_err;
  int sk_err_soft;
  __u16 sk_protocol;
};
struct sk_buff;

struct sched_info {
  unsigned long long run_delay;
};

struct thread_info {
  __u32 status; /* x86 */
};

struct task_struct {
  struct thread_info thread_info;
  int pid, tgid;
  struct sched_info sched_info;
  unsigned int __state; /* since 5.14 */
  void *stack;
  int exit_code;
  __u64 start_boottime;
  struct task_struct *real_parent;
  struct task_struct *group_leader;
  const struct cred *cred;
  char comm[16];
  struct pid *thread_pid;
  struct signal_struct *signal;
  struct css_set *cgroups;
  struct mm_struct *mm;
  struct files_struct *files;
  struct task_io_accounting ioac;
};

struct task_struct___before_5_14 {
  volatile long state;
};

struct kernel_siginfo {
  int si_code;
};

struct linux_binprm;

#pragma clang attribute pop
