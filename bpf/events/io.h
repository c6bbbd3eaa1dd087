/* SPDX-FileCopyrightText: The rankscope authors */
/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */

/* What io.bpf.c and exporter/probes/io tell each other: files, calls that fail. */
#pragma once

#include "common.h"

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
