/* SPDX-FileCopyrightText: The rankscope authors */
/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */

/* What net.bpf.c and exporter/probes/network tell each other: connections, look-ups of names. */
#pragma once

#include "common.h"

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
