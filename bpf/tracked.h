/* SPDX-FileCopyrightText: The rankscope authors */
/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */

/*
 * The processes of training jobs, one map for all programs: user space makes it once and hands it to
 * every object (exporter/probes/tracked_map). process.bpf.c adds children at their fork, candidates at
 * their exec, and removes who ends; user space removes who turns out to be no training process.
 */
#pragma once

/* Process -> its start, ns since boot; 0 = user space did not say. 4,096 tracked by user space, as
 * many again of theirs not yet heard of, and candidates: 16,384 of 64 bytes are 1 MiB. */
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, RS_TRACKED_MAX);
  __type(key, __u32);
  __type(value, __u64);
} rs_tracked SEC(".maps");

static __always_inline bool rs_is_tracked(__u32 tgid) {
  return bpf_map_lookup_elem(&rs_tracked, &tgid) != 0;
}

static __always_inline bool rs_tracked_self(void) {
  return rs_is_tracked(bpf_get_current_pid_tgid() >> 32);
}
