/* SPDX-FileCopyrightText: The rankscope authors */
/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the processes of training jobs do with files: checkpoints written and read, data, and calls
 * that fail.
 *
 * Bytes are not counted call by call, which every process of the machine would pay for: a file of
 * interest is known from its name when it is opened, and what became of it is read when it is closed,
 * from the file's size and from what the thread has read since. Calls that fail are seen at their
 * return; a call that does not fail, or is somebody else's, costs a comparison or a look-up. The
 * arguments are read from the registers that the kernel keeps, so there is no program at entry but
 * for close() and fsync(), which are rare.
 */
#include "vmlinux.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "events/io.h"
#include "file_names.h"
#include "open_files.h"
#include "tracked.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* 8192 x 176 bytes and the table: 1.7 MiB. */
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, RS_IO_FILES);
  __type(key, struct rs_io_key);
  __type(value, struct rs_io_file);
} rs_io_files SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, RS_IO_PROCESSES);
  __type(key, __u32);
  __type(value, struct rs_io_process);
} rs_io_processes SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, RS_IO_FAILURES);
  __type(key, struct rs_io_failure_key);
  __type(value, struct rs_io_failure);
} rs_io_failures SEC(".maps");

/* Threads in fsync(): since when. */
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, RS_IO_SYNCS);
  __type(key, __u64);
  __type(value, __u64);
} rs_io_syncs SEC(".maps");

/* 256 KiB hold 1,200 files that were closed; a sharded checkpoint has some hundred. */
struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, 256 << 10);
} rs_io_events SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, RS_IO_LOST_KINDS);
  __type(key, __u32);
  __type(value, __u64);
} rs_io_lost SEC(".maps");

/* Too large for the stack. */
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct rs_io_path);
} rs_io_scratch SEC(".maps");

const struct rs_io_file rs_no_file = {};
const struct rs_io_process rs_no_process = {};
const struct rs_io_failure rs_no_failure = {};

#define TMPFS_MAGIC 0x01021994
#define S_IFMT 0170000
#define S_IFREG 0100000
#define FMODE_READ 1
#define FMODE_WRITE 2
#define ENOENT 2
#define EIO 5
#define ENOSPC 28
#define EROFS 30
#define ESTALE 116
#define EDQUOT 122
#define SIGBUS 7
/* What is smaller is configuration, a vocabulary, a script. */
#define LARGE_FILE (16ull << 20)

static __always_inline void lost(__u32 why) {
  __u64 *count = bpf_map_lookup_elem(&rs_io_lost, &why);

  if (count) __sync_fetch_and_add(count, 1);
}

static __always_inline struct rs_io_process *own_process(void) {
  struct task_struct *task = (struct task_struct *)bpf_get_current_task();
  __u32 pid = bpf_get_current_pid_tgid() >> 32;
  __u64 start_ns = BPF_CORE_READ(task, group_leader, start_boottime);
  struct rs_io_process *process = bpf_map_lookup_elem(&rs_io_processes, &pid);

  if (process && process->start_ns == start_ns) return process;
  if (bpf_map_update_elem(&rs_io_processes, &pid, &rs_no_process, BPF_ANY)) {
    lost(RS_IO_LOST_FILE);
    return 0;
  }
  process = bpf_map_lookup_elem(&rs_io_processes, &pid);
  if (process) process->start_ns = start_ns;
  return process;
}

static __always_inline struct rs_io_path *scratch_of(void) {
  __u32 zero = 0;

  return bpf_map_lookup_elem(&rs_io_scratch, &zero);
}

static __always_inline bool is_regular(struct inode *inode) {
  return (BPF_CORE_READ(inode, i_mode) & S_IFMT) == S_IFREG;
}

static __always_inline __u32 class_of(const struct rs_io_path *scratch, __u64 end_word,
                                      const char *end, struct inode *inode, unsigned int mode) {
  if (is_checkpoint_name(end, end_word) || is_checkpoint_directory(scratch->directory))
    return RS_IO_CHECKPOINT;
  if (mode & FMODE_WRITE || end_word >> 40 == WORD3('.', 's', 'o') ||
      (word_at(scratch->name) & 0xffffff) == WORD3('l', 'i', 'b')) {
    return RS_IO_OTHER;
  }
  return BPF_CORE_READ(inode, i_size) >= LARGE_FILE ? RS_IO_DATA : RS_IO_OTHER;
}

static __always_inline void fail(struct rs_io_path *scratch, __u32 error, __u32 call, __u32 class,
                                 __u64 end, __u64 file_system, bool is_path) {
  struct rs_io_failure_key key = {.error = error, .call = call, .class_ = class, .name = end};
  struct rs_io_process *process = own_process();
  struct rs_io_failure *failure;
  __u64 now = bpf_ktime_get_ns();

  if (!process) return;
  if (error != ENOENT) __sync_fetch_and_add(&process->failures, 1);
  key.pid = bpf_get_current_pid_tgid() >> 32;
  failure = bpf_map_lookup_elem(&rs_io_failures, &key);
  if (!failure) {
    if (bpf_map_update_elem(&rs_io_failures, &key, &rs_no_failure, BPF_NOEXIST)) {
      lost(RS_IO_LOST_FILE);
      return;
    }
    failure = bpf_map_lookup_elem(&rs_io_failures, &key);
    if (!failure) return;
    failure->first_ns = now;
    failure->file_system = file_system;
    failure->is_path = is_path;
  }
  __sync_fetch_and_add(&failure->times, 1);
  failure->last_ns = now;
  keep_name(failure->name, scratch);
}

static __always_inline bool is_telling(long error) {
  return error == ENOSPC || error == EDQUOT || error == EIO || error == ESTALE || error == EROFS;
}

static __always_inline void opened(__u32 fd) {
  __u64 thread = bpf_get_current_pid_tgid();
  struct task_struct *task = (struct task_struct *)bpf_get_current_task();
  struct rs_io_key key = {.pid = thread >> 32, .fd = fd};
  struct rs_io_path *scratch = scratch_of();
  struct rs_io_process *process;
  struct rs_io_file *known;
  struct rs_io_event *event;
  struct file *file = rs_own_file(fd);
  struct super_block *super;
  struct inode *inode;
  unsigned int mode;
  const char *end;
  __u32 class;

  if (!file || !scratch) return;
  inode = BPF_CORE_READ(file, f_inode);
  if (!is_regular(inode)) return;
  super = BPF_CORE_READ(inode, i_sb);
  mode = BPF_CORE_READ(file, f_mode);
  /* Shared memory is a tmpfs that is written to; which one it is, the path has said. */
  if (is_shared_memory(scratch)) {
    process = own_process();
    if (process) process->shared_memory = (__u64)super;
    return;
  }
  end = name_file(scratch, file);
  class = class_of(scratch, word_before(end), end, inode, mode);
  if (class == RS_IO_OTHER) return;
  process = own_process();
  if (!process) return;
  if (bpf_map_update_elem(&rs_io_files, &key, &rs_no_file, BPF_ANY)) {
    lost(RS_IO_LOST_FILE);
    return;
  }
  known = bpf_map_lookup_elem(&rs_io_files, &key);
  if (!known) return;
  known->process_start_ns = process->start_ns;
  known->opened_ns = bpf_ktime_get_ns();
  known->read_before = BPF_CORE_READ(task, ioac.rchar);
  known->inode = BPF_CORE_READ(inode, i_ino);
  known->class_ = class;
  known->flags =
      (mode & FMODE_WRITE ? RS_IO_WRITES : 0) | (BPF_CORE_READ(inode, i_size) == 0 ? RS_IO_NEW : 0);
  keep_name(known->name, scratch);
  if (class != RS_IO_CHECKPOINT || !(mode & FMODE_WRITE)) return;
  event = bpf_ringbuf_reserve(&rs_io_events, sizeof(*event), 0);
  if (!event) {
    lost(RS_IO_LOST_EVENT);
    return;
  }
  event->header.time_ns = known->opened_ns;
  event->header.kind = RS_IO_OPENED;
  event->header.pad = 0;
  event->pid = key.pid;
  event->fd = fd;
  event->file = *known;
  event->bytes = event->size = 0;
  bpf_ringbuf_submit(event, 0);
}

/* The end of the path, as much as the names of a file have room for: user space finds them. */
static __always_inline void keep_path(struct rs_io_path *scratch, __u32 length) {
  __u32 from = length >= RS_FILE_NAME + RS_FILE_DIRECTORY
                   ? (length - (RS_FILE_NAME + RS_FILE_DIRECTORY - 1)) & 127
                   : 0;

  __builtin_memset(scratch->name, 0, RS_FILE_NAME + RS_FILE_DIRECTORY);
  bpf_probe_read_kernel_str(scratch->name, RS_FILE_NAME + RS_FILE_DIRECTORY, scratch->path + from);
}

/* open and stat; the path is their second argument. */
static __always_inline int looked_up(struct trace_event_raw_sys_exit *ctx, bool opens) {
  long result = ctx->ret;
  struct rs_io_path *scratch;
  const char *end;
  __u64 end_word;
  __u32 class;
  long bytes;

  if (result >= 0 ? !opens : (result != -ENOENT && !is_telling(-result))) return 0;
  if (!rs_tracked_self()) return 0;
  scratch = scratch_of();
  if (!scratch) return 0;
  bytes = bpf_probe_read_user_str(scratch->path, sizeof(scratch->path),
                                  (const void *)rs_arguments_of(rs_own_registers()).a[1]);
  if (bytes < 2) scratch->path[0] = 0;
  if (result >= 0) {
    opened(result);
    return 0;
  }
  if (bytes < 2) return 0;
  end = scratch->path + ((bytes - 1) & 255);
  end_word = word_before(end);
  class = RS_IO_OTHER;
  /* DeepSpeed looks for "latest" first. */
  if (is_checkpoint_name(end, end_word) ||
      end_word >> 8 == WORD7('/', 'l', 'a', 't', 'e', 's', 't')) {
    class = RS_IO_CHECKPOINT;
  } else if (is_shared_memory(scratch)) {
    class = RS_IO_SHARED_MEMORY;
  }
  /* A program looks for hundreds of files that are not there. */
  if (result == -ENOENT && class != RS_IO_CHECKPOINT) return 0;
  keep_path(scratch, bytes - 1);
  fail(scratch, -result, ctx->id, class, end_word, 0, true);
  return 0;
}

SEC("tracepoint/syscalls/sys_exit_openat")
int io_opened(struct trace_event_raw_sys_exit *ctx) {
  return looked_up(ctx, true);
}

SEC("tracepoint/syscalls/sys_exit_newfstatat")
int io_looked(struct trace_event_raw_sys_exit *ctx) {
  return looked_up(ctx, false);
}

/* At the return of write() and of all others that have a file as their first argument. */
SEC("tracepoint/syscalls/sys_exit_write")
int io_failed(struct trace_event_raw_sys_exit *ctx) {
  long error = -ctx->ret;
  struct rs_io_path *scratch;
  struct inode *inode;
  struct file *file;
  const char *end;
  __u64 end_word;
  __u32 class;

  if (ctx->ret >= 0 || !is_telling(error) || !rs_tracked_self()) return 0;
  scratch = scratch_of();
  file = rs_own_file(rs_arguments_of(rs_own_registers()).a[0]);
  if (!scratch || !file) return 0;
  inode = BPF_CORE_READ(file, f_inode);
  if (!is_regular(inode)) return 0; /* a terminal that is gone says EIO */
  end = name_file(scratch, file);
  end_word = word_before(end);
  class = class_of(scratch, end_word, end, inode, FMODE_WRITE);
  fail(scratch, error, ctx->id, class, end_word, BPF_CORE_READ(inode, i_sb, s_magic), false);
  return 0;
}

SEC("tracepoint/syscalls/sys_enter_close")
int io_closing(struct trace_event_raw_sys_enter *ctx) {
  __u64 thread = bpf_get_current_pid_tgid();
  struct rs_io_key key = {.pid = thread >> 32, .fd = ctx->args[0]};
  struct task_struct *task;
  struct rs_io_process *process;
  struct rs_io_event *event;
  struct rs_io_file *known = bpf_map_lookup_elem(&rs_io_files, &key);
  struct inode *inode;
  struct file *file;
  __u64 now, took;

  if (!known) return 0;
  file = rs_own_file(key.fd);
  inode = file ? BPF_CORE_READ(file, f_inode) : 0;
  process = bpf_map_lookup_elem(&rs_io_processes, &key.pid);
  if (!inode || !process || BPF_CORE_READ(inode, i_ino) != known->inode) goto forget;
  event = bpf_ringbuf_reserve(&rs_io_events, sizeof(*event), 0);
  if (!event) {
    lost(RS_IO_LOST_EVENT);
    goto forget;
  }
  task = (struct task_struct *)bpf_get_current_task();
  now = bpf_ktime_get_ns();
  took = now - known->opened_ns;
  event->header.time_ns = now;
  event->header.kind = RS_IO_CLOSED;
  event->header.pad = 0;
  event->pid = key.pid;
  event->fd = key.fd;
  event->file = *known;
  event->size = BPF_CORE_READ(inode, i_size);
  if ((__u32)thread == key.pid) event->file.flags |= RS_IO_MAIN_THREAD;
  if (BPF_CORE_READ(inode, i_mapping, i_mmap.rb_root.rb_node)) event->file.flags |= RS_IO_MAPPED;
  if (known->flags & RS_IO_WRITES) {
    event->bytes = known->flags & RS_IO_NEW ? event->size : BPF_CORE_READ(file, f_pos);
    __sync_fetch_and_add(&process->checkpoint_written, event->bytes);
    if ((__u32)thread == key.pid) __sync_fetch_and_add(&process->write_ns, took);
  } else {
    /* What this thread has read since, from here and elsewhere; another may have read for it. */
    event->bytes = BPF_CORE_READ(task, ioac.rchar) - known->read_before;
    if (event->bytes == 0) event->bytes = BPF_CORE_READ(file, f_pos);
    if (event->bytes > event->size || event->file.flags & RS_IO_MAPPED) event->bytes = event->size;
    if (known->class_ == RS_IO_CHECKPOINT) {
      __sync_fetch_and_add(&process->checkpoint_read, event->bytes);
    } else {
      __sync_fetch_and_add(&process->data_read, event->bytes);
      __sync_fetch_and_add(&process->data_ns, took);
    }
  }
  bpf_ringbuf_submit(event, 0);
forget:
  bpf_map_delete_elem(&rs_io_files, &key);
  return 0;
}

SEC("tracepoint/syscalls/sys_enter_fsync")
int io_sync_begins(struct trace_event_raw_sys_enter *ctx) {
  __u64 thread = bpf_get_current_pid_tgid(), now;

  if (!rs_is_tracked(thread >> 32)) return 0;
  now = bpf_ktime_get_ns();
  if (bpf_map_update_elem(&rs_io_syncs, &thread, &now, BPF_ANY)) lost(RS_IO_LOST_FILE);
  return 0;
}

SEC("tracepoint/syscalls/sys_exit_fsync")
int io_sync_ends(struct trace_event_raw_sys_exit *ctx) {
  __u64 thread = bpf_get_current_pid_tgid();
  __u64 *begin = bpf_map_lookup_elem(&rs_io_syncs, &thread);
  struct rs_io_process *process;

  if (!begin) return 0;
  process = own_process();
  if (process) __sync_fetch_and_add(&process->sync_ns, bpf_ktime_get_ns() - *begin);
  bpf_map_delete_elem(&rs_io_syncs, &thread);
  return 0;
}

/* A page of shared memory that cannot be had is a bus error: how full it is, at that moment. */
SEC("tp_btf/signal_generate")
int BPF_PROG(io_bus_error, int sig, struct kernel_siginfo *info, struct task_struct *target) {
  __u32 pid = target->tgid;
  struct rs_io_process *process;
  struct shmem_sb_info *space;
  struct super_block *super;
  struct rs_io_event *event;

  if (sig != SIGBUS) return 0;
  process = bpf_map_lookup_elem(&rs_io_processes, &pid);
  if (!process || !process->shared_memory) return 0;
  super = (struct super_block *)process->shared_memory;
  if (BPF_CORE_READ(super, s_magic) != TMPFS_MAGIC) return 0;
  space = BPF_CORE_READ(super, s_fs_info);
  event = bpf_ringbuf_reserve(&rs_io_events, sizeof(*event), 0);
  if (!event) {
    lost(RS_IO_LOST_EVENT);
    return 0;
  }
  __builtin_memset(event, 0, sizeof(*event));
  event->header.time_ns = bpf_ktime_get_ns();
  event->header.kind = RS_IO_SPACE;
  event->pid = pid;
  event->file.process_start_ns = process->start_ns;
  event->file.class_ = RS_IO_SHARED_MEMORY;
  event->bytes = BPF_CORE_READ(space, used_blocks.count);
  event->size = BPF_CORE_READ(space, max_blocks);
  bpf_ringbuf_submit(event, 0);
  return 0;
}
