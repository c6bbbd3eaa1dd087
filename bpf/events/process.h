/* SPDX-FileCopyrightText: The rankscope authors */
/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */

/* What process.bpf.c and exporter/probes/process tell each other: births, deaths, signals. */
#pragma once

#include "common.h"

enum rs_kind {
  RS_FORK = 1,
  RS_EXEC = 2,
  RS_EXIT = 3,
  RS_SIGNAL = 4,
  RS_OOM = 5,
};

/* Why something did not reach user space; index of a counter. */
enum rs_lost {
  RS_LOST_EVENT = 0,   /* the ring was full */
  RS_LOST_PROCESS = 1, /* the map of tracked processes was full */
  RS_LOST_KINDS = 2,
};

#define RS_COMM 16
/* Slurm's deepest path has 6 components, a pod's 5 of at most 85 bytes. */
#define RS_CGROUP_LEVELS 10
#define RS_CGROUP_NAME 96
/* A job's environment has 4 to 16 KiB; what is longer is read from /proc. With the fixed part below
 * 32 KiB, the largest value of a per-CPU map. */
#define RS_ARGUMENTS 4095
#define RS_ENVIRONMENT 24576

/* A process by its thread group; start_ns is since boot, suspended time included: what /proc shows
 * in ticks. */
struct rs_process {
  __u64 start_ns;
  __u32 pid; /* 0 = none */
  __u32 uid;
  char comm[RS_COMM];
};
RS_SIZE(rs_process, 32);

/* Of which hierarchy a path is. */
enum rs_cgroup_hierarchy {
  RS_CGROUP_UNIFIED = 0, /* v2 */
  RS_CGROUP_MEMORY = 1,  /* of v1, the memory controller's */
  RS_CGROUP_OTHER = 2,   /* of v1, another one's */
};

/* The path of a cgroup, its last component first; each ends with a zero byte. */
struct rs_cgroup {
  __u32 names;
  __u16 cut; /* the path has more components than these */
  __u16 v1;  /* rs_cgroup_hierarchy */
  char name[RS_CGROUP_LEVELS][RS_CGROUP_NAME];
};
RS_SIZE(rs_cgroup, 8 + RS_CGROUP_LEVELS * RS_CGROUP_NAME);

struct rs_fork {
  struct rs_header header;
  struct rs_process child;
  struct rs_process parent;
};
RS_SIZE(rs_fork, 80);

/* Sent up to the last byte that `data` holds: arguments, then environment. */
struct rs_exec {
  struct rs_header header;
  struct rs_process process;
  struct rs_process parent;
  __u32 arguments;   /* bytes in data */
  __u32 environment; /* bytes in data, after the arguments */
  __u32 cut;         /* 1: the arguments, 2: the environment are not whole */
  __s32 inner_pid;   /* in the process's own pid namespace; 0 = the machine's */
  struct rs_cgroup cgroup;
  char data[RS_ARGUMENTS + RS_ENVIRONMENT + 1];
};
RS_SIZE(rs_exec, 16 + 64 + 16 + 968 + 28672);

struct rs_exit {
  struct rs_header header;
  __u64 start_ns;
  __u32 pid;
  __s32 wait_status; /* as waitpid gives it; 0x80 = core dumped */
};
RS_SIZE(rs_exit, 32);

struct rs_signal {
  struct rs_header header;
  __u64 target_start_ns;
  __u32 target_pid;
  __s32 signo;
  __s32 si_code;
  __u32 pad;
  struct rs_process sender; /* pid 0: the kernel */
  /* The memory limit that the target stands at, when the kernel kills it; 0 = no limit is
   * reached. */
  __u64 limit_pages;
  __u64 used_pages;
  __u32 limit_level; /* of the components of `cgroup`: 0 = the target's own */
  __u32 pad2;
  struct rs_cgroup cgroup; /* the sender's; when the kernel kills, the target's memory cgroup */
};
RS_SIZE(rs_signal, 16 + 24 + 32 + 24 + 968);

struct rs_oom {
  struct rs_header header;
  __u64 start_ns; /* 0 = not known */
  __u32 pid;
  __u32 pad;
};
RS_SIZE(rs_oom, 32);
