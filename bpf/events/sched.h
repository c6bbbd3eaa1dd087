/* SPDX-FileCopyrightText: The rankscope authors */
/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */

/* What sched.bpf.c and exporter/probes/wait tell each other: how a thread spends its time. */
#pragma once

#include "common.h"

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
