// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/probes/wait_calls.h"

#include <fcntl.h>
#include <sys/syscall.h>

#include <algorithm>
#include <charconv>

namespace rankscope::probes {
namespace {

struct CallRow {
  int number;
  uint8_t kind;
  std::string_view name;
};

constexpr CallRow kCalls[] = {
    {SYS_futex, RS_WAIT_FUTEX, "futex"},
#ifdef SYS_futex_waitv
    {SYS_futex_waitv, RS_WAIT_FUTEX, "futex_waitv"},
#endif
    {SYS_semtimedop, RS_WAIT_FUTEX, "semtimedop"},
    {SYS_semop, RS_WAIT_FUTEX, "semop"},
    {SYS_nanosleep, RS_WAIT_SLEEP, "nanosleep"},
    {SYS_clock_nanosleep, RS_WAIT_SLEEP, "clock_nanosleep"},
#ifdef SYS_pause
    {SYS_pause, RS_WAIT_SLEEP, "pause"},
#endif
    {SYS_rt_sigtimedwait, RS_WAIT_OTHER, "rt_sigtimedwait"},
    {SYS_rt_sigsuspend, RS_WAIT_OTHER, "rt_sigsuspend"},
    {SYS_flock, RS_WAIT_FILE_LOCK, "flock"},
    {SYS_fcntl, RS_CALL_FCNTL, "fcntl"},
    {SYS_wait4, RS_WAIT_CHILD, "wait4"},
    {SYS_waitid, RS_WAIT_CHILD, "waitid"},
#ifdef SYS_vfork
    {SYS_vfork, RS_WAIT_CHILD, "vfork"},
#endif
#ifdef SYS_poll
    {SYS_poll, RS_CALL_POLL, "poll"},
#endif
    {SYS_ppoll, RS_CALL_POLL, "ppoll"},
#ifdef SYS_select
    {SYS_select, RS_CALL_SELECT, "select"},
#endif
    {SYS_pselect6, RS_CALL_SELECT, "pselect6"},
#ifdef SYS_epoll_wait
    {SYS_epoll_wait, RS_WAIT_SOCKET, "epoll_wait"},
#endif
    {SYS_epoll_pwait, RS_WAIT_SOCKET, "epoll_pwait"},
#ifdef SYS_epoll_pwait2
    {SYS_epoll_pwait2, RS_WAIT_SOCKET, "epoll_pwait2"},
#endif
    {SYS_io_uring_enter, RS_WAIT_SOCKET, "io_uring_enter"},
    {SYS_io_getevents, RS_WAIT_BLOCK, "io_getevents"},
    {SYS_msgrcv, RS_WAIT_SOCKET, "msgrcv"},
    {SYS_msgsnd, RS_WAIT_SOCKET, "msgsnd"},
    {SYS_mq_timedreceive, RS_WAIT_SOCKET, "mq_timedreceive"},
    {SYS_connect, RS_WAIT_SOCKET, "connect"},
#ifdef SYS_accept
    {SYS_accept, RS_WAIT_SOCKET, "accept"},
#endif
    {SYS_accept4, RS_WAIT_SOCKET, "accept4"},
    {SYS_sendto, RS_WAIT_SOCKET, "sendto"},
    {SYS_recvfrom, RS_WAIT_SOCKET, "recvfrom"},
    {SYS_sendmsg, RS_WAIT_SOCKET, "sendmsg"},
    {SYS_recvmsg, RS_WAIT_SOCKET, "recvmsg"},
    {SYS_sendmmsg, RS_WAIT_SOCKET, "sendmmsg"},
    {SYS_recvmmsg, RS_WAIT_SOCKET, "recvmmsg"},
    {SYS_read, RS_CALL_FILE, "read"},
    {SYS_write, RS_CALL_FILE, "write"},
    {SYS_readv, RS_CALL_FILE, "readv"},
    {SYS_writev, RS_CALL_FILE, "writev"},
    {SYS_pread64, RS_CALL_FILE, "pread64"},
    {SYS_pwrite64, RS_CALL_FILE, "pwrite64"},
    {SYS_preadv, RS_CALL_FILE, "preadv"},
    {SYS_pwritev, RS_CALL_FILE, "pwritev"},
    {SYS_preadv2, RS_CALL_FILE, "preadv2"},
    {SYS_pwritev2, RS_CALL_FILE, "pwritev2"},
    {SYS_ioctl, RS_CALL_FILE, "ioctl"},
    {SYS_fsync, RS_CALL_FILE, "fsync"},
    {SYS_fdatasync, RS_CALL_FILE, "fdatasync"},
    {SYS_sync_file_range, RS_CALL_FILE, "sync_file_range"},
    {SYS_syncfs, RS_CALL_FILE, "syncfs"},
    {SYS_ftruncate, RS_CALL_FILE, "ftruncate"},
    {SYS_fallocate, RS_CALL_FILE, "fallocate"},
    {SYS_fstat, RS_CALL_FILE, "fstat"},
    {SYS_lseek, RS_CALL_FILE, "lseek"},
    {SYS_getdents64, RS_CALL_FILE, "getdents64"},
    {SYS_close, RS_CALL_FILE, "close"},
    {SYS_sendfile, RS_CALL_FILE, "sendfile"},
    {SYS_splice, RS_CALL_FILE, "splice"},
    {SYS_copy_file_range, RS_CALL_FILE, "copy_file_range"},
#ifdef SYS_open
    {SYS_open, RS_CALL_OTHER, "open"},
#endif
    {SYS_openat, RS_CALL_OTHER, "openat"},
#ifdef SYS_stat
    {SYS_stat, RS_CALL_OTHER, "stat"},
#endif
    {SYS_newfstatat, RS_CALL_OTHER, "newfstatat"},
    {SYS_statx, RS_CALL_OTHER, "statx"},
    {SYS_unlinkat, RS_CALL_OTHER, "unlinkat"},
    {SYS_mmap, RS_CALL_OTHER, "mmap"},
    {SYS_munmap, RS_CALL_OTHER, "munmap"},
    {SYS_msync, RS_CALL_OTHER, "msync"},
    {SYS_exit_group, RS_CALL_OTHER, "exit_group"},
};

const CallRow* FindCall(int32_t number) {
  for (const CallRow& row : kCalls) {
    if (row.number == number) return &row;
  }
  return nullptr;
}

bool StartsWithAny(std::string_view text, std::initializer_list<std::string_view> starts) {
  return std::any_of(starts.begin(), starts.end(),
                     [text](std::string_view start) { return text.starts_with(start); });
}

template <typename T>
std::optional<T> TakeNumber(std::string_view& text, int base) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  if (base == 16 && text.starts_with("0x")) text.remove_prefix(2);
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return value;
}

// Of a wait in a call about a file.
WaitClass ClassOfFile(std::string_view kind, bool uninterruptible) {
  if (kind == "pipe" || kind == "socket" || kind == "event") return WaitClass::kSocket;
  if (kind == "gpu") return WaitClass::kGpu;
  if (kind == "network_file") return WaitClass::kNetworkFile;
  if (kind == "file" || kind == "shared_memory") return WaitClass::kBlock;
  return kind.empty() && uninterruptible ? WaitClass::kBlock : WaitClass::kOther;
}

}  // namespace

std::array<uint8_t, RS_CALLS> WaitCalls() {
  std::array<uint8_t, RS_CALLS> calls{};
  calls.fill(RS_CALL_OTHER);
  for (const CallRow& row : kCalls) {
    if (row.number >= 0 && row.number < RS_CALLS) calls[static_cast<size_t>(row.number)] = row.kind;
  }
  return calls;
}

std::string_view CallName(int32_t number) {
  const CallRow* const row = FindCall(number);
  return row == nullptr ? std::string_view() : row->name;
}

std::optional<CallText> ParseCall(std::string_view text) {
  CallText call;
  if (text.starts_with("running")) {
    call.running = true;
    return call;
  }
  const auto number = TakeNumber<int32_t>(text, 10);
  if (!number) return std::nullopt;
  call.number = *number < 0 ? -1 : *number;
  if (call.number < 0) return call;
  call.first = TakeNumber<uint64_t>(text, 16).value_or(0);
  call.second = TakeNumber<uint64_t>(text, 16).value_or(0);
  return call;
}

bool IsAboutFile(const CallText& call) {
  const CallRow* const row = FindCall(call.number);
  return row != nullptr &&
         (row->kind == RS_CALL_FILE || row->kind == RS_CALL_FCNTL || row->number == SYS_flock);
}

std::string_view FileKind(std::string_view link, std::string_view file_system) {
  if (link.starts_with("pipe:")) return "pipe";
  if (link.starts_with("socket:")) return "socket";
  if (link.starts_with("anon_inode:")) return "event";
  if (link.starts_with("/dev/nvidia")) return "gpu";
  if (StartsWithAny(link, {"/dev/pts/", "/dev/tty", "/dev/console"})) return "terminal";
  if (link.starts_with("/dev/shm/")) return "shared_memory";
  if (link.starts_with("/dev/")) return "device";
  if (IsNetworkFileSystem(file_system)) return "network_file";
  return link.starts_with("/") ? "file" : "";
}

WaitClass ClassOf(char state, const std::optional<CallText>& call, std::string_view file_kind,
                  std::string_view wchan) {
  if (state == 'T' || state == 't') return WaitClass::kStopped;
  if (state == 'R' || (call && call->running)) return WaitClass::kRunning;
  const bool uninterruptible = state == 'D';
  if (IsNetworkFunction(wchan)) return WaitClass::kNetworkFile;
  const WaitClass by_state = uninterruptible ? WaitClass::kBlock : WaitClass::kOther;
  const CallRow* const row = call ? FindCall(call->number) : nullptr;
  if (row == nullptr) return by_state;
  switch (row->kind) {
    case RS_CALL_FCNTL:
      if (call->second == F_SETLKW || call->second == F_OFD_SETLKW) return WaitClass::kFileLock;
      return ClassOfFile(file_kind, uninterruptible);
    case RS_CALL_FILE:
      return ClassOfFile(file_kind, uninterruptible);
    case RS_CALL_POLL:
      return call->second != 0 ? WaitClass::kSocket : WaitClass::kSleep;
    case RS_CALL_SELECT:
      return call->first != 0 ? WaitClass::kSocket : WaitClass::kSleep;
    case RS_CALL_OTHER:
      return by_state;
    default:
      return static_cast<WaitClass>(row->kind);
  }
}

bool IsNetworkFunction(std::string_view wchan) {
  return StartsWithAny(
      wchan, {"nfs_", "nfs4_", "rpc_", "__rpc_", "ll_", "ptlrpc_", "osc_", "cl_sync", "ceph_",
              "cifs_", "smb2_", "fuse_", "__fuse_", "request_wait_answer", "p9_", "v9fs_", "afs_"});
}

bool IsNetworkFileSystem(std::string_view type) {
  return StartsWithAny(type, {"nfs", "lustre", "ceph", "cifs", "smb", "fuse", "gpfs", "beegfs",
                              "9p", "afs", "wekafs", "glusterfs", "pvfs", "orangefs"});
}

}  // namespace rankscope::probes
