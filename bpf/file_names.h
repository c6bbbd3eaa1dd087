/* SPDX-FileCopyrightText: The rankscope authors */
/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */

/* What a file is, told by its name: a checkpoint by its ending or its directory, shared memory by
 * where it lies. */
#pragma once

/* The path that a call was given, or the names of a file. The last eight bytes of a short name reach
 * into the room before it. */
struct rs_io_path {
  __u64 before_path;
  char path[256];
  __u64 before_name;
  char name[RS_FILE_NAME];
  char directory[RS_FILE_DIRECTORY];
} __attribute__((aligned(8)));

/* Up to eight letters as a little-endian word holds them. */
#define WORD2(a, b) ((__u64)(b) << 8 | (a))
#define WORD3(a, b, c) ((__u64)(c) << 16 | WORD2(a, b))
#define WORD4(a, b, c, d) ((__u64)(d) << 24 | WORD3(a, b, c))
#define WORD5(a, b, c, d, e) ((__u64)(e) << 32 | WORD4(a, b, c, d))
#define WORD7(a, b, c, d, e, f, g) ((__u64)(g) << 48 | (__u64)(f) << 40 | WORD5(a, b, c, d, e))
#define WORD8(a, b, c, d, e, f, g, h) ((__u64)(h) << 56 | WORD7(a, b, c, d, e, f, g))

/* The eight bytes before `end`: the last letter is the highest. */
static __always_inline __u64 word_before(const char *end) {
  __u64 word = 0;

  bpf_probe_read_kernel(&word, sizeof(word), end - sizeof(word));
  return word;
}

static __always_inline __u64 word_at(const char *begin) {
  return *(const __u64 *)begin;
}

static __always_inline bool is_checkpoint_end(__u64 end) {
  return end >> 40 == WORD3('.', 'p', 't') || end >> 32 == WORD4('.', 'p', 't', 'h') ||
         end >> 32 == WORD4('.', 'b', 'i', 'n') || end >> 24 == WORD5('.', 'c', 'k', 'p', 't') ||
         end >> 8 == WORD7('.', 'd', 'i', 's', 't', 'c', 'p') ||
         end == WORD8('e', 't', 'e', 'n', 's', 'o', 'r', 's');
}

/* A name by its ending, also before ".tmp" and the like, which are renamed when they are whole.
 * `end` points behind the name, which has at least eight bytes before it that may be read. */
static __always_inline bool is_checkpoint_name(const char *end, __u64 word) {
  __u32 cut = 0;

  if (is_checkpoint_end(word)) return true;
  if (word >> 32 == WORD4('.', 't', 'm', 'p') || word >> 32 == WORD4('.', 't', 'a', 'r')) cut = 4;
  if (word >> 24 == WORD5('.', 'p', 'a', 'r', 't')) cut = 5;
  return cut && is_checkpoint_end(word_before(end - cut));
}

static __always_inline bool is_checkpoint_directory(const char *directory) {
  __u64 word = word_at(directory);

  return word == WORD8('c', 'h', 'e', 'c', 'k', 'p', 'o', 'i') ||
         (__u32)word == WORD4('c', 'k', 'p', 't') ||
         word == WORD8('g', 'l', 'o', 'b', 'a', 'l', '_', 's');
}

static __always_inline bool is_shared_memory(const struct rs_io_path *scratch) {
  return word_at(scratch->path) == WORD8('/', 'd', 'e', 'v', '/', 's', 'h', 'm');
}

static __always_inline void keep_name(char *name, const struct rs_io_path *scratch) {
  __builtin_memcpy(name, scratch->name, RS_FILE_NAME + RS_FILE_DIRECTORY);
}

/* The names of an open file into the scratch; behind the end of its own. */
static __always_inline const char *name_file(struct rs_io_path *scratch, struct file *file) {
  struct dentry *dentry = BPF_CORE_READ(file, f_path.dentry);
  long bytes;

  __builtin_memset(&scratch->before_name, 0, 8 + RS_FILE_NAME + RS_FILE_DIRECTORY);
  bytes = bpf_probe_read_kernel_str(scratch->name, 64, BPF_CORE_READ(dentry, d_name.name));
  bpf_probe_read_kernel_str(scratch->directory, RS_FILE_DIRECTORY,
                            BPF_CORE_READ(dentry, d_parent, d_name.name));
  return scratch->name + (bytes > 0 ? (bytes - 1) & 63 : 0);
}
