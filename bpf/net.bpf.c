/* SPDX-FileCopyrightText: The rankscope authors */
/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * How the processes of training jobs reach each other: what became of each connection they asked for,
 * where they listen, names that did not resolve, retransmits, resets, bytes.
 *
 * The states of a TCP socket tell how a connection ends, whether the program waits in connect() or
 * asks later (c10d and gloo do): SYN_SENT -> ESTABLISHED, or -> CLOSE with the error that the program
 * will read. A route that does not exist fails before SYN_SENT, so connect()'s own result is read
 * too. Everything is counted in maps that user space reads; a connection tried a thousand times is
 * one entry. Others pay a comparison for each connection's change of state, and a look-up for each
 * message on a TCP socket.
 */
#include "vmlinux.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "events/net.h"
#include "open_files.h"
#include "tracked.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* 4096 x (32 + 32) bytes and as much again for the table: 0.5 MiB. */
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, RS_NET_FACTS);
  __type(key, struct rs_net_key);
  __type(value, struct rs_net_fact);
} rs_net_facts SEC(".maps");

/* 4096 x 60 bytes: 0.5 MiB with the table. */
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, RS_NET_PROCESSES);
  __type(key, __u32);
  __type(value, struct rs_net_process);
} rs_net_processes SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, RS_NET_PENDING);
  __type(key, __u64); /* struct sock * */
  __type(value, struct rs_net_pending);
} rs_net_pending SEC(".maps");

/* 16384 x 12 bytes and the table: 1.3 MiB. */
struct {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, RS_NET_OWNERS);
  __type(key, __u64); /* struct sock * */
  __type(value, __u32);
} rs_net_owners SEC(".maps");

/* Threads in connect() or bind(). */
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, RS_NET_CALLS);
  __type(key, __u64);
  __type(value, struct rs_net_call);
} rs_net_calls SEC(".maps");

/* Threads in getaddrinfo: 1024 x 144 bytes. */
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, RS_NET_CALLS);
  __type(key, __u64);
  __type(value, struct rs_net_lookup);
} rs_net_lookups SEC(".maps");

/* Names that did not resolve, or slowly: 64 KiB hold 400, and each rank asks once a second. */
struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, 64 << 10);
} rs_net_events SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, RS_NET_LOST_KINDS);
  __type(key, __u32);
  __type(value, __u64);
} rs_net_lost SEC(".maps");

/* What a new entry of rs_net_lookups begins with: too large for the stack of a uprobe's program. */
const struct rs_net_lookup rs_no_lookup = {};
const struct rs_net_process rs_no_process = {};

/* include/net/tcp_states.h, include/linux/socket.h, include/uapi/asm-generic/errno*.h: fixed. */
#define TCP_ESTABLISHED 1
#define TCP_SYN_SENT 2
#define TCP_CLOSE 7
#define TCP_LISTEN 10
#define AF_INET 2
#define AF_INET6 10
#define SOCK_STREAM 1
#define IPPROTO_TCP 6
#define MSG_PEEK 2
#define EPERM 1
#define EACCES 13
#define EINVAL 22
#define EADDRINUSE 98
#define EADDRNOTAVAIL 99
#define ENETDOWN 100
#define ENETUNREACH 101
#define EHOSTUNREACH 113

#define SLOW_LOOKUP_NS 1000000000ull

static __always_inline void lost(__u32 why) {
  __u64 *count = bpf_map_lookup_elem(&rs_net_lost, &why);

  if (count) __sync_fetch_and_add(count, 1);
}

static __always_inline struct rs_net_process *process_of(__u32 pid) {
  return bpf_map_lookup_elem(&rs_net_processes, &pid);
}

/* The entry of the current process; made where there is none, or another owner's of the pid. */
static __always_inline struct rs_net_process *own_process(void) {
  struct task_struct *task = (struct task_struct *)bpf_get_current_task();
  __u32 pid = bpf_get_current_pid_tgid() >> 32;
  __u64 start_ns = BPF_CORE_READ(task, group_leader, start_boottime);
  struct rs_net_process *process = process_of(pid);

  if (process && process->start_ns == start_ns) return process;
  if (bpf_map_update_elem(&rs_net_processes, &pid, &rs_no_process, BPF_ANY)) {
    lost(RS_NET_LOST_FACT);
    return 0;
  }
  process = process_of(pid);
  if (process) process->start_ns = start_ns;
  return process;
}

static __always_inline void count_fact(const struct rs_net_key *key, __u64 took_ns) {
  struct rs_net_fact *known = bpf_map_lookup_elem(&rs_net_facts, key);
  struct rs_net_fact fact = {.times = 1, .longest_ns = took_ns};

  fact.first_ns = fact.last_ns = bpf_ktime_get_ns();
  if (!known) {
    if (bpf_map_update_elem(&rs_net_facts, key, &fact, BPF_NOEXIST)) lost(RS_NET_LOST_FACT);
    return;
  }
  __sync_fetch_and_add(&known->times, 1);
  known->last_ns = fact.last_ns;
  if (known->longest_ns < took_ns) known->longest_ns = took_ns;
}

/* The peer of a socket, or where it listens. */
static __always_inline void address_of(struct rs_net_key *key, const struct sock *sk, bool peer) {
  key->family = BPF_CORE_READ(sk, __sk_common.skc_family);
  if (key->family == AF_INET6) {
    struct in6_addr address = peer ? BPF_CORE_READ(sk, __sk_common.skc_v6_daddr)
                                   : BPF_CORE_READ(sk, __sk_common.skc_v6_rcv_saddr);
    __builtin_memcpy(key->address, &address, sizeof(key->address));
  } else {
    __be32 address = peer ? BPF_CORE_READ(sk, __sk_common.skc_daddr)
                          : BPF_CORE_READ(sk, __sk_common.skc_rcv_saddr);
    __builtin_memcpy(key->address, &address, sizeof(address));
  }
  key->port = peer ? BPF_CORE_READ(sk, __sk_common.skc_dport)
                   : __builtin_bswap16(BPF_CORE_READ(sk, __sk_common.skc_num));
}

static __always_inline void begin_connection(const struct sock *sk) {
  __u64 id = (__u64)sk, thread = bpf_get_current_pid_tgid();
  struct rs_net_pending pending = {};
  __u32 pid = thread >> 32;

  if (!rs_is_tracked(pid) || !own_process()) return;
  bpf_map_delete_elem(&rs_net_calls, &thread); /* the call has come as far as to send */
  pending.key.pid = pid;
  address_of(&pending.key, sk, true);
  pending.begin_ns = bpf_ktime_get_ns();
  if (bpf_map_update_elem(&rs_net_pending, &id, &pending, BPF_ANY)) lost(RS_NET_LOST_PENDING);
  bpf_map_update_elem(&rs_net_owners, &id, &pid, BPF_ANY);
}

static __always_inline void end_connection(const struct sock *sk, int state) {
  __u64 id = (__u64)sk;
  struct rs_net_pending *pending = bpf_map_lookup_elem(&rs_net_pending, &id);
  struct rs_net_process *process;
  struct rs_net_key key;

  if (!pending) return;
  key = pending->key;
  process = process_of(key.pid);
  if (state == TCP_ESTABLISHED) {
    key.outcome = RS_NET_CONNECTED;
    /* A known peer again, or one of the first: who comes later is a peer of collectives. */
    if (!bpf_map_lookup_elem(&rs_net_facts, &key) && process &&
        __sync_fetch_and_add(&process->peers, 1) >= RS_NET_PEERS) {
      bpf_map_delete_elem(&rs_net_pending, &id);
      return;
    }
  } else {
    key.error = BPF_CORE_READ(sk, sk_err);
    if (!key.error) key.error = BPF_CORE_READ(sk, sk_err_soft);
    key.outcome = key.error ? RS_NET_FAILED : RS_NET_ABANDONED;
    key.by_reset = pending->reset;
    if (process) __sync_fetch_and_add(&process->failures, 1);
  }
  count_fact(&key, bpf_ktime_get_ns() - pending->begin_ns);
  bpf_map_delete_elem(&rs_net_pending, &id);
}

SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(net_state, const struct sock *sk, int old_state, int new_state) {
  struct rs_net_key key = {};

  if (new_state == TCP_SYN_SENT) {
    begin_connection(sk);
  } else if (old_state == TCP_SYN_SENT) {
    end_connection(sk, new_state);
  } else if (new_state == TCP_LISTEN && rs_tracked_self() && own_process()) {
    key.pid = bpf_get_current_pid_tgid() >> 32;
    key.outcome = RS_NET_LISTENING;
    address_of(&key, sk, false);
    /* The state goes before the port where bind() has not chosen one. */
    if (key.port) count_fact(&key, 0);
  }
  return 0;
}

SEC("tp_btf/tcp_retransmit_skb")
int BPF_PROG(net_retransmit, const struct sock *sk) {
  __u64 id = (__u64)sk;
  struct rs_net_pending *pending;
  struct rs_net_process *process;
  __u32 *pid = bpf_map_lookup_elem(&rs_net_owners, &id);

  if (!pid) return 0;
  pending = bpf_map_lookup_elem(&rs_net_pending, &id);
  if (pending) pending->sent_again++;
  process = process_of(*pid);
  if (process) __sync_fetch_and_add(&process->retransmits, 1);
  return 0;
}

SEC("tp_btf/tcp_receive_reset")
int BPF_PROG(net_reset, struct sock *sk) {
  __u64 id = (__u64)sk;
  struct rs_net_pending *pending = bpf_map_lookup_elem(&rs_net_pending, &id);
  struct rs_net_process *process;
  struct rs_net_key key = {};
  __u32 *pid;

  if (pending) {
    pending->reset = 1;
    return 0;
  }
  pid = bpf_map_lookup_elem(&rs_net_owners, &id);
  if (!pid) return 0;
  process = process_of(*pid);
  if (!process) return 0;
  if (__sync_fetch_and_add(&process->resets, 1) >= RS_NET_PEERS) return 0;
  key.pid = *pid;
  key.outcome = RS_NET_RESET;
  address_of(&key, sk, true);
  count_fact(&key, 0);
  return 0;
}

SEC("tp_btf/tcp_destroy_sock")
int BPF_PROG(net_gone, struct sock *sk) {
  __u64 id = (__u64)sk;

  /* Looking takes no lock, deleting what is not there does. */
  if (bpf_map_lookup_elem(&rs_net_owners, &id)) bpf_map_delete_elem(&rs_net_owners, &id);
  return 0;
}

/* The process that sends or receives has the socket, whoever opened it. */
static __always_inline struct rs_net_process *message(struct sock *sk) {
  __u32 pid = bpf_get_current_pid_tgid() >> 32;
  __u64 id = (__u64)sk;

  if (!rs_is_tracked(pid) || sk->sk_protocol != IPPROTO_TCP) return 0;
  if (!bpf_map_lookup_elem(&rs_net_owners, &id)) {
    bpf_map_update_elem(&rs_net_owners, &id, &pid, BPF_ANY);
    return own_process();
  }
  return process_of(pid) ?: own_process();
}

SEC("tp_btf/sock_send_length")
int BPF_PROG(net_sent, struct sock *sk, int bytes, int flags) {
  struct rs_net_process *process = bytes > 0 ? message(sk) : 0;

  if (process) __sync_fetch_and_add(&process->sent_bytes, bytes);
  return 0;
}

SEC("tp_btf/sock_recv_length")
int BPF_PROG(net_received, struct sock *sk, int bytes, int flags) {
  struct rs_net_process *process = bytes > 0 && !(flags & MSG_PEEK) ? message(sk) : 0;

  if (process) __sync_fetch_and_add(&process->received_bytes, bytes);
  return 0;
}

static __always_inline int enter_call(struct trace_event_raw_sys_enter *ctx) {
  __u64 thread = bpf_get_current_pid_tgid();
  struct rs_net_call call = {};

  if (!rs_is_tracked(thread >> 32)) return 0;
  call.fd = ctx->args[0];
  call.address = ctx->args[1];
  if (bpf_map_update_elem(&rs_net_calls, &thread, &call, BPF_ANY)) lost(RS_NET_LOST_PENDING);
  return 0;
}

/* getaddrinfo connects datagram sockets to sort its answers: only streams are meant to arrive. */
static __always_inline bool is_stream(__u32 fd) {
  struct file *file = rs_own_file(fd);
  struct socket *socket = file ? BPF_CORE_READ(file, private_data) : 0;

  return socket && BPF_CORE_READ(socket, type) == SOCK_STREAM;
}

struct rs_sockaddr { /* sockaddr_in and sockaddr_in6, where they agree */
  __u16 family;
  __u16 port;
  __u32 address4; /* of IPv6 the flow */
  __u8 address6[16];
};

static __always_inline int fail_call(const struct rs_net_call *call, __u32 outcome, __u32 error) {
  struct rs_sockaddr address = {};
  struct rs_net_process *process;
  struct rs_net_key key = {};

  /* An IPv4 address ends after 16 bytes. */
  if (bpf_probe_read_user(&address, sizeof(address), (void *)call->address) &&
      bpf_probe_read_user(&address, 8, (void *)call->address)) {
    return 0;
  }
  if (address.family == AF_INET) {
    __builtin_memcpy(key.address, &address.address4, sizeof(address.address4));
  } else if (address.family == AF_INET6) {
    __builtin_memcpy(key.address, address.address6, sizeof(key.address));
  } else {
    return 0;
  }
  if (!address.port || !is_stream(call->fd)) return 0;
  process = own_process();
  if (!process) return 0;
  if (outcome == RS_NET_FAILED) __sync_fetch_and_add(&process->failures, 1);
  key.pid = bpf_get_current_pid_tgid() >> 32;
  key.family = address.family;
  key.port = address.port;
  key.outcome = outcome;
  key.error = error;
  count_fact(&key, 0);
  return 0;
}

static __always_inline struct rs_net_call *leave_call(struct rs_net_call *copy) {
  __u64 thread = bpf_get_current_pid_tgid();
  struct rs_net_call *call = bpf_map_lookup_elem(&rs_net_calls, &thread);

  if (!call) return 0;
  *copy = *call;
  bpf_map_delete_elem(&rs_net_calls, &thread);
  return copy;
}

SEC("tracepoint/syscalls/sys_enter_connect")
int net_enter_connect(struct trace_event_raw_sys_enter *ctx) {
  return enter_call(ctx);
}

SEC("tracepoint/syscalls/sys_exit_connect")
int net_exit_connect(struct trace_event_raw_sys_exit *ctx) {
  struct rs_net_call call;
  long error = -ctx->ret;

  if (!leave_call(&call)) return 0;
  /* Those that no packet is sent for; others are told by the socket's state. EINVAL is a route that
   * swallows. */
  if (error == ENETUNREACH || error == EHOSTUNREACH || error == ENETDOWN || error == EACCES ||
      error == EPERM || error == EINVAL || error == EADDRNOTAVAIL) {
    return fail_call(&call, RS_NET_FAILED, error);
  }
  return 0;
}

SEC("tracepoint/syscalls/sys_enter_bind")
int net_enter_bind(struct trace_event_raw_sys_enter *ctx) {
  return enter_call(ctx);
}

SEC("tracepoint/syscalls/sys_exit_bind")
int net_exit_bind(struct trace_event_raw_sys_exit *ctx) {
  struct rs_net_call call;
  long error = -ctx->ret;

  if (!leave_call(&call)) return 0;
  if (error == EADDRINUSE || error == EADDRNOTAVAIL || error == EACCES) {
    return fail_call(&call, RS_NET_NOT_BOUND, error);
  }
  return 0;
}

SEC("uprobe")
int net_enter_lookup(struct pt_regs *ctx) {
  const void *name = (const void *)PT_REGS_PARM1(ctx);
  __u64 thread = bpf_get_current_pid_tgid();
  struct rs_net_lookup *lookup;

  if (!name || !rs_is_tracked(thread >> 32)) return 0;
  if (bpf_map_update_elem(&rs_net_lookups, &thread, &rs_no_lookup, BPF_ANY)) {
    lost(RS_NET_LOST_PENDING);
    return 0;
  }
  lookup = bpf_map_lookup_elem(&rs_net_lookups, &thread);
  if (!lookup) return 0;
  lookup->pid = thread >> 32;
  lookup->process_start_ns =
      BPF_CORE_READ((struct task_struct *)bpf_get_current_task(), group_leader, start_boottime);
  bpf_probe_read_user_str(lookup->name, sizeof(lookup->name), name);
  lookup->header.time_ns = bpf_ktime_get_ns();
  return 0;
}

SEC("uretprobe")
int net_exit_lookup(struct pt_regs *ctx) {
  __u64 thread = bpf_get_current_pid_tgid();
  struct rs_net_lookup *lookup = bpf_map_lookup_elem(&rs_net_lookups, &thread);

  if (!lookup) return 0;
  lookup->end_ns = bpf_ktime_get_ns();
  lookup->code = PT_REGS_RC(ctx);
  if (lookup->code || lookup->end_ns - lookup->header.time_ns > SLOW_LOOKUP_NS) {
    if (bpf_ringbuf_output(&rs_net_events, lookup, sizeof(*lookup), 0)) lost(RS_NET_LOST_LOOKUP);
  }
  bpf_map_delete_elem(&rs_net_lookups, &thread);
  return 0;
}
