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

/* --- net.bpf.c ----------------------------------------------------------------------------- */

/* Ranks and their data-loader workers and launchers that opened a connection; ended ones leave within
 * a second. */
#define RS_NET_PROCESSES 4096
/* A rank that meets 512 others, each on a port of its own, at most RS_NET_PEERS established; failures
 * count by address and port, however often they are tried again. */
#define RS_NET_FACTS 4096
#define RS_NET_PEERS 32
/* Connections that wait for an answer, and threads inside a call, at one time. */
#define RS_NET_PENDING 4096
#define RS_NET_CALLS 1024
/* Sockets whose process is known: a rank's to all others. The oldest are forgotten. */
#define RS_NET_OWNERS 16384
#define RS_NAME 104 /* of the 253 that a host name may have */

enum rs_net_outcome {
  RS_NET_CONNECTED = 1,
  RS_NET_FAILED = 2,    /* with an error: of connect(), or found by the kernel later */
  RS_NET_ABANDONED = 3, /* closed by the program while no answer had come */
  RS_NET_LISTENING = 4,
  RS_NET_NOT_BOUND = 5, /* bind() failed */
  RS_NET_RESET = 6,     /* an established connection was reset by the peer */
};

/* Who, to whom or where, and how it went. Addresses and ports in network order; an IPv4 address is
 * the first four bytes. */
struct rs_net_key {
  __u32 pid;
  __u16 port;
  __u8 family;
  __u8 outcome;
  __u32 error;    /* errno, or 0 */
  __u32 by_reset; /* the peer's own answer, not a word from between */
  __u8 address[16];
};
RS_SIZE(rs_net_key, 32);

struct rs_net_fact {
  __u64 times;
  __u64 first_ns;
  __u64 last_ns;
  __u64 longest_ns; /* from the try to its outcome */
};
RS_SIZE(rs_net_fact, 32);

/* A connection that was asked for and not yet answered, by its socket. */
struct rs_net_pending {
  struct rs_net_key key;
  __u64 begin_ns;
  __u32 sent_again;
  __u32 reset;
};
RS_SIZE(rs_net_pending, 48);

struct rs_net_process {
  __u64 start_ns;
  __u64 peers; /* facts RS_NET_CONNECTED that it has */
  __u64 failures;
  __u64 retransmits;
  __u64 resets;
  __u64 sent_bytes;
  __u64 received_bytes;
};
RS_SIZE(rs_net_process, 56);

/* The address that a system call was given. */
struct rs_net_call {
  __u64 address;
  __u32 fd;
  __u32 pad;
};
RS_SIZE(rs_net_call, 16);

/* A thread inside getaddrinfo. */
struct rs_net_lookup {
  struct rs_header header; /* time_ns: when it began */
  __u64 process_start_ns;
  __u64 end_ns;
  __u32 pid;
  __s32 code; /* as the call returned: EAI_NONAME, ...; 0 = found */
  char name[RS_NAME];
};
RS_SIZE(rs_net_lookup, 144);

enum rs_net_lost {
  RS_NET_LOST_FACT = 0,    /* a map was full */
  RS_NET_LOST_LOOKUP = 1,  /* the ring was full */
  RS_NET_LOST_PENDING = 2, /* a map of calls in flight was full */
  RS_NET_LOST_KINDS = 3,
};

/* --- io.bpf.c ------------------------------------------------------------------------------ */

/* Files of interest that tracked processes hold open: a rank's checkpoint, in a hundred shards at
 * most, its data shards and those of its workers. */
#define RS_IO_FILES 8192
/* As many as RS_NET_PROCESSES, for the same reason. */
#define RS_IO_PROCESSES 4096
/* Ways in which calls on files failed; of a process and a kind of call a few names. */
#define RS_IO_FAILURES 2048
#define RS_IO_SYNCS 1024
#define RS_FILE_NAME 80
#define RS_FILE_DIRECTORY 48

enum rs_io_class {
  RS_IO_OTHER = 0,
  RS_IO_CHECKPOINT = 1,
  RS_IO_DATA = 2,
  RS_IO_SHARED_MEMORY = 3,
};

enum rs_io_kind {
  RS_IO_OPENED = 1, /* a checkpoint, for writing */
  RS_IO_CLOSED = 2, /* a checkpoint or data */
  RS_IO_SPACE = 3,  /* a bus error of a process that has shared memory, and how full that is */
};

enum rs_io_flag {
  RS_IO_WRITES = 1,
  RS_IO_MAIN_THREAD = 2, /* closed by the thread that the process began with */
  RS_IO_MAPPED = 4,      /* somebody has it mapped */
  RS_IO_NEW = 8,         /* was empty when it was opened */
};

struct rs_io_key {
  __u32 pid;
  __u32 fd;
};
RS_SIZE(rs_io_key, 8);

struct rs_io_file {
  __u64 process_start_ns;
  __u64 opened_ns;
  __u64 read_before; /* what its thread had read by then */
  __u64 inode;
  __u32 class_;
  __u32 flags;
  char name[RS_FILE_NAME]; /* its own, and its directory's */
  char directory[RS_FILE_DIRECTORY];
};
RS_SIZE(rs_io_file, 168);

struct rs_io_event {
  struct rs_header header;
  __u32 pid;
  __u32 fd;
  struct rs_io_file file;
  __u64 bytes; /* written, or read; of RS_IO_SPACE in use */
  __u64 size;
};
RS_SIZE(rs_io_event, 208);

struct rs_io_failure_key {
  __u32 pid;
  __u32 error;
  __u32 call; /* number of the system call */
  __u32 class_;
  __u64 name; /* the end of its name, packed: tells names apart */
};
RS_SIZE(rs_io_failure_key, 24);

struct rs_io_failure {
  __u64 times;
  __u64 first_ns;
  __u64 last_ns;
  __u64 file_system; /* statfs(2): f_type; 0 = not known */
  __u64 is_path;     /* both names together are the end of the path that was asked for */
  char name[RS_FILE_NAME];
  char directory[RS_FILE_DIRECTORY];
};
RS_SIZE(rs_io_failure, 168);

struct rs_io_process {
  __u64 start_ns;
  __u64 shared_memory; /* struct super_block of the newest file in it */
  __u64 checkpoint_written;
  __u64 checkpoint_read;
  __u64 data_read;
  __u64 write_ns; /* with a checkpoint open for writing, by the main thread */
  __u64 data_ns;  /* with data open */
  __u64 sync_ns;
  __u64 failures;
};
RS_SIZE(rs_io_process, 72);

enum rs_io_lost {
  RS_IO_LOST_EVENT = 0, /* the ring was full */
  RS_IO_LOST_FILE = 1,  /* a map was full */
  RS_IO_LOST_KINDS = 2,
};
