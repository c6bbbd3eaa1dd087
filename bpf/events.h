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

/* --- calls.h: cuda.bpf.c, nccl.bpf.c ------------------------------------------------------- */

/* What a probe's cookie tells of the function that it stands on, one byte each; the table of
 * functions is user space's. Arguments count from 1; 7 is the first on the stack; 0 = none. */
#define RS_COOKIE(n) (8 * (n))
enum rs_cookie {
  RS_COOKIE_FUNCTION = RS_COOKIE(0), /* row of the table */
  RS_COOKIE_OP = RS_COOKIE(1),
  RS_COOKIE_LAYER = RS_COOKIE(2), /* bits of enum rs_layer */
  RS_COOKIE_SIZE = RS_COOKIE(3),  /* argument: bytes, or elements */
  /* cuda */
  RS_COOKIE_DIRECTION = RS_COOKIE(4),    /* of a copy, by its name */
  RS_COOKIE_DIRECTION_AT = RS_COOKIE(5), /* argument: enum cudaMemcpyKind */
  /* nccl */
  RS_COOKIE_TYPE = RS_COOKIE(4),  /* argument: ncclDataType_t */
  RS_COOKIE_COMM = RS_COOKIE(5),  /* argument: the communicator, or where a new one goes */
  RS_COOKIE_RANKS = RS_COOKIE(6), /* argument: its ranks */
  RS_COOKIE_RANK = RS_COOKIE(7),  /* argument: the own one */
};

enum rs_layer {
  RS_LAYER_UPPER = 1,   /* calls into the layer below */
  RS_LAYER_STEPPED = 2, /* of the function: the kernel single-steps what the probe stands on */
};

/* A call that a thread is inside of. Threads share slots by their number: of two in one slot the
 * later one shows. */
#define RS_SLOTS 8
struct rs_inside {
  __u64 start_ns; /* 0 = none */
  __u32 thread;
  __u32 detail;
};
RS_SIZE(rs_inside, 16);

enum rs_cuda_op {
  RS_CUDA_LAUNCH = 1,
  RS_CUDA_GRAPH = 2,
  RS_CUDA_SYNC = 3,
  RS_CUDA_COPY = 4,
  RS_CUDA_ALLOCATE = 5,
};

/* cudaMemcpyKind; 0 is host to host. */
enum rs_direction { RS_TO_DEVICE = 1, RS_TO_HOST = 2, RS_ON_DEVICE = 3, RS_ANY_DIRECTION = 4 };

/* The largest gap that ended within 2^28 ns = 0.27 s; eight of them are looked at each second. */
#define RS_GAP_BITS 28
#define RS_GAPS 8
struct rs_gap {
  __u64 largest_ns;
  __u64 end_ns;
};
RS_SIZE(rs_gap, 16);

/* Of one process since it was first seen; only ever rising but for what is named last or largest. */
struct rs_cuda_counts {
  __u64 start_ns; /* of the process, since boot; 0 = not known */
  __u64 launches;
  __u64 graphs;
  __u64 below;  /* launches of the driver that a launch of the runtime made: counted above once */
  __u64 alone;  /* launches of the runtime that made none that was seen */
  __u64 runs[2]; /* of the launch probes, by layer */
  __u64 timed_launches;
  __u64 launch_ns; /* of these */
  __u64 last_launch_ns;
  struct rs_gap gaps[RS_GAPS];
  __u64 calls[2]; /* timed ones, of all kinds; [1]: single-stepped */
  __u64 syncs, sync_ns;
  __u64 copies, copy_ns;
  __u64 copied_bytes, to_device_bytes, to_host_bytes;
  __u64 allocations, allocation_ns, allocated_bytes;
  __u64 failed_allocations, last_failed_bytes;
  __u64 errors;
  __u64 last_event_ns;
  __u64 results_seen[4]; /* a bit each, by the low 8 bits */
  struct rs_inside syncing[RS_SLOTS];
};
RS_SIZE(rs_cuda_counts, 8 * (10 + 2 * RS_GAPS + 20 + 2 * RS_SLOTS));

/* No number means two things: rows of both tables are handled alike. */
enum rs_nccl_op {
  RS_NCCL_COLLECTIVE = 16,
  RS_NCCL_PEER = 17, /* send, receive: not all ranks take part */
  RS_NCCL_GROUP_END = 18,
  RS_NCCL_INIT = 19,
  RS_NCCL_DESTROY = 20,
  RS_NCCL_ABORT = 21,
  RS_NCCL_QUERY = 22, /* cudaEventQuery in the watchdog's thread */
};

/* Of one process since it was first seen. */
struct rs_nccl_counts {
  __u64 start_ns;
  __u64 enqueued; /* entered */
  __u64 bytes;
  __u64 inside_ns;
  __u64 calls;
  __u64 aborts;
  __u64 queries;
  __u64 completed;
  /* Of communicators that are gone, those of the most ranks. */
  __u64 gone_ranks;
  __u64 gone_collectives;
  __u64 results_seen; /* a bit each, by the low 6 bits */
  __u64 pad;
  struct rs_inside initialising[RS_SLOTS];
};
RS_SIZE(rs_nccl_counts, 8 * (12 + 2 * RS_SLOTS));

/* A pointer of a process: a communicator, or an event that its watchdog asks for. */
struct rs_handle {
  __u64 pointer;
  __u32 pid;
  __u32 pad;
};
RS_SIZE(rs_handle, 16);
struct rs_communicator {
  __u64 created_ns; /* 0: before it was first seen */
  __u64 collectives;
  __u32 ranks; /* 0 = not known */
  __u32 rank;
};
RS_SIZE(rs_communicator, 24);
struct rs_asked {
  __u64 first_ns;
  __u64 last_ns;
};
RS_SIZE(rs_asked, 16);

enum rs_call_kind {
  RS_CALL_FAILED = 1,
  RS_CALL_ALLOCATION = 2, /* failed */
  RS_CALL_INIT = 3,       /* of a communicator begins */
  RS_CALL_CREATED = 4,
  RS_CALL_NOT_CREATED = 5,
  RS_CALL_DESTROYED = 6,
  RS_CALL_ABORTED = 7,
};

struct rs_call {
  struct rs_header header; /* kind: enum rs_call_kind */
  __u64 process_start_ns;
  __u64 pointer; /* communicator */
  __u64 bytes;
  __u64 took_ns;
  __u32 pid;
  __s32 result;
  __u32 function;
  __u32 ranks;
  __u32 rank;
  __u32 pad;
};
RS_SIZE(rs_call, 16 + 32 + 24);

/* --- sched.bpf.c ----------------------------------------------------------------------------- */

/* What a thread does or waits for; the numbers of detectors/model/wait_class.h. */
enum rs_wait {
  RS_RUNNING = 0,
  RS_RUNNABLE = 1,
  RS_WAIT_FUTEX = 2,
  RS_WAIT_SOCKET = 3,
  RS_WAIT_NETWORK_FILE = 4,
  RS_WAIT_BLOCK = 5,
  RS_WAIT_GPU = 6,
  RS_WAIT_SLEEP = 7,
  RS_STOPPED = 8,
  RS_WAIT_OTHER = 9,
  RS_WAIT_FILE_LOCK = 10,
  RS_WAIT_CHILD = 11,
  RS_WAITS = 12,
};

/* What the number of a system call tells of a wait in it; below RS_WAITS it tells all. */
enum rs_wait_call {
  RS_CALL_FILE = RS_WAITS, /* its first argument is a descriptor: the file tells */
  RS_CALL_FCNTL,           /* the same, and its second a command */
  RS_CALL_POLL,            /* its second argument counts descriptors: none means sleep */
  RS_CALL_SELECT,          /* its first does */
  RS_CALL_OTHER,           /* only the state tells: uninterruptible means a file */
};

/* System calls beyond are of the last kind; x86-64 and arm64 number fewer. */
#define RS_CALLS 512

/* Threads of tracked processes: 128 ranks of 64 threads and as many threads of data loaders. 16,384
 * of 192 bytes and their keys are 4 MiB. */
#define RS_THREADS_MAX 16384

/* 65,536 bits, of which a process has the one of its pid's low 16: a first look that needs no map. */
#define RS_WATCHED_WORDS 1024

/* A run on a CPU, between two waits, of at least this long counts as silent. */
#define RS_SILENT_NS 500000000

struct rs_thread {
  __u64 since_ns; /* when `state` began, CLOCK_MONOTONIC */
  __u64 run_ns;   /* on a CPU since its last wait, up to since_ns */
  __u64 silent_ns;
  __u64 ns[RS_WAITS]; /* of finished intervals, by rs_wait */
  __u64 queued_ns;    /* the kernel's count of its time in run queues, when it last left a CPU */
  __u32 tgid;
  __s32 call; /* system call of the wait; -1 = it is in none */
  __u8 state; /* enum rs_wait */
  __u8 uninterruptible;
  __u8 ended;
  __u8 came_from; /* enum rs_wait: what it waited for before this run; RS_RUNNING = it did not */
  __u8 pad[4];
};
RS_SIZE(rs_thread, 24 + 96 + 8 + 16);

/* Index of a counter. */
enum rs_sched_lost {
  RS_LOST_THREAD = 0, /* the map of threads was full */
  RS_SCHED_LOST_KINDS = 1,
};

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
