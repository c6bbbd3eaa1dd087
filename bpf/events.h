/* SPDX-FileCopyrightText: The rankscope authors */
/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */

/*
 * The contract between the programs in the kernel and exporter/probes: fixed widths, explicit
 * padding, sizes asserted. Read by C for BPF and by C++; both sides are built together, so a change
 * of layout only needs a new EVENTS_VERSION for what is stored or compared elsewhere.
 */
#pragma once

#ifndef __bpf__
#include <linux/types.h>
#endif

#define EVENTS_VERSION 1

/* Entries of the map of tracked processes, bpf/tracked.h. */
#define RS_TRACKED_MAX 16384

#ifdef __cplusplus
#define RS_SIZE(type, bytes) static_assert(sizeof(struct type) == (bytes), "layout of " #type)
#else
#define RS_SIZE(type, bytes) _Static_assert(sizeof(struct type) == (bytes), "layout of " #type)
#endif

/* --- process.bpf.c ------------------------------------------------------------------------- */

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

struct rs_header {
  __u64 time_ns; /* CLOCK_MONOTONIC */
  __u32 kind;    /* enum rs_kind */
  __u32 pad;
};
RS_SIZE(rs_header, 16);

/* A process by its thread group; start_ns is since boot, suspended time included: what /proc shows
 * in ticks. */
struct rs_process {
  __u64 start_ns;
  __u32 pid; /* 0 = none */
  __u32 uid;
  char comm[RS_COMM];
};
RS_SIZE(rs_process, 32);

/* The path of a cgroup, its last component first; each ends with a zero byte. */
struct rs_cgroup {
  __u32 names;
  __u16 cut; /* the path has more components than these */
  __u16 v1;  /* a path of the v1 memory hierarchy, not of cgroup v2 */
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

/* --- stdio.bpf.c --------------------------------------------------------------------------- */

/* Why bytes of a stream were written and not told; index of a counter of the stream. */
enum rs_unheard {
  RS_UNHEARD_BUDGET = 0, /* more than the process may say in the time */
  RS_UNHEARD_RING = 1,   /* the ring was full */
  RS_UNHEARD_LONG = 2,   /* of one write, what is beyond RS_SAID_MAX */
  RS_UNHEARD_FAULT = 3,  /* the memory that it was written from could not be read */
  RS_UNHEARD_SPLICED = 4, /* went from file to file (sendfile and its like): no memory to read */
  RS_UNHEARD_KINDS = 5,
};

/* Of one write, this much is told; a Python stream writes 8 KiB at once, a shell's here-document
 * 4 KiB. */
#define RS_SAID_MAX 32768
/* Streams at once, and as many processes with their standard files: 4,096 tracked processes. */
#define RS_STREAMS_MAX 8192

/* What an open file leads to. */
struct rs_file {
  __u64 inode; /* 0 = there is none */
  __u32 device;
  __u32 mode; /* S_IFMT and permissions, and RS_FILE_NULL */
};
#define RS_FILE_NULL 0x10000 /* /dev/null, wherever it stands */
RS_SIZE(rs_file, 16);

/* Descriptors 0, 1 and 2 of a process as it was started with. */
struct rs_standard {
  struct rs_file file[3];
};
RS_SIZE(rs_standard, 48);

struct rs_stream_key {
  __u32 pid;
  __u32 stream; /* 1: standard output, 2: standard error */
};
RS_SIZE(rs_stream_key, 8);

struct rs_stream {
  __u64 start_ns;                  /* of the process */
  __u64 tokens;                    /* bytes that it may say now */
  __u64 filled_ns;                 /* when they were counted */
  __u64 told;                      /* bytes */
  __u64 unheard[RS_UNHEARD_KINDS]; /* bytes */
  __u64 ignored;                   /* bytes to a file in the map of those not to be heard */
  struct rs_file file;             /* of the newest write */
  __u32 fd;                        /* its descriptor */
  __u32 inherited;                 /* the process was started with that file */
  __u32 line_ended;                /* the newest write ended with the end of a line */
  __u32 pad;
};
RS_SIZE(rs_stream, 32 + 8 * RS_UNHEARD_KINDS + 8 + 16 + 16);

/* A piece that a process wrote to a standard stream. `bytes` of it follow. */
struct rs_said {
  __u64 time_ns; /* CLOCK_MONOTONIC */
  __u64 start_ns;
  __u64 unheard; /* bytes of this stream before this piece, since the process began */
  struct rs_file file;
  struct rs_file input; /* the process's standard input as it was started with */
  __u32 pid;
  __u32 stream;
  __u32 fd;
  __u32 inherited;
  __u32 bytes;
  __u32 begins_line; /* what was written before it, heard or not, ended a line */
};
RS_SIZE(rs_said, 80);
