/* SPDX-FileCopyrightText: The rankscope authors */
/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */

/* What stdio.bpf.c and exporter/probes/stdio tell each other: text, and counts of each stream. */
#pragma once

#include "common.h"

/* Why bytes of a stream were written and not told; index of a counter of the stream. */
enum rs_unheard {
  RS_UNHEARD_BUDGET = 0,  /* more than the process may say in the time */
  RS_UNHEARD_RING = 1,    /* the ring was full */
  RS_UNHEARD_LONG = 2,    /* of one write, what is beyond RS_SAID_MAX */
  RS_UNHEARD_FAULT = 3,   /* the memory that it was written from could not be read */
  RS_UNHEARD_SPLICED = 4, /* went from file to file (sendfile and its like): no memory to read */
  RS_UNHEARD_SHARE = 5,   /* more of its user's waits already than is his share */
  RS_UNHEARD_KINDS = 6,
};

/* Of one write, this much is told; a Python stream writes 8 KiB at once, a shell's here-document
 * 4 KiB. */
#define RS_SAID_MAX 32768
/* Streams at once, and as many processes with their standard files: 4,096 tracked processes. */
#define RS_STREAMS_MAX 8192
/* Processes that have ended, whose standard files are remembered for a moment; as many ends as user
 * space remembers. */
#define RS_ENDED_MAX 8192
/* Users whose text is counted apart, by a hash of their numbers: 32 KiB. */
#define RS_SHARES_LOG2 12
#define RS_SHARES (1 << RS_SHARES_LOG2)

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

/* A piece that a process wrote to a standard stream. `bytes` of it follow; none: only `unheard` has
 * risen. */
struct rs_said {
  __u64 time_ns; /* CLOCK_MONOTONIC */
  __u64 start_ns;
  __u64 unheard;  /* bytes of this stream before this piece, since the process began */
  __s64 position; /* in a regular file, of the first byte; below zero: not known */
  struct rs_file file;
  struct rs_file input; /* the process's standard input as it was started with */
  __u32 pid;
  __u32 stream;
  __u32 fd;
  __u32 inherited;
  __u32 bytes;
  __u32 begins_line; /* what was written before it, heard or not, ended a line */
  __u32 uid;         /* of the process */
  __u32 share;       /* where what waits of its user is counted */
};
RS_SIZE(rs_said, 96);
