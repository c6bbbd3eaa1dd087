/* SPDX-FileCopyrightText: The rankscope authors */
/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */

/*
 * The contract between the programs in the kernel and exporter/probes: fixed widths, explicit
 * padding, sizes asserted. One header per object, read by C for BPF and by C++; both sides are built
 * together, so a layout may change whenever both do. Here is what all share.
 */
#pragma once

#ifndef __bpf__
#include <linux/types.h>
#endif

/* Entries of the map of tracked processes, bpf/tracked.h. */
#define RS_TRACKED_MAX 16384

#ifdef __cplusplus
#define RS_SIZE(type, bytes) static_assert(sizeof(struct type) == (bytes), "layout of " #type)
#else
#define RS_SIZE(type, bytes) _Static_assert(sizeof(struct type) == (bytes), "layout of " #type)
#endif

/* What an event begins with; `kind` by the enum of its object. */
struct rs_header {
  __u64 time_ns; /* CLOCK_MONOTONIC */
  __u32 kind;
  __u32 pad;
};
RS_SIZE(rs_header, 16);
