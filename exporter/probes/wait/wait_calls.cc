// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/probes/wait/wait_calls.h"

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

// For calls that only older architectures have: a number that no call has.
constexpr int kNoCall = -1;
#ifndef SYS_accept
#define SYS_accept kNoCall
#endif
#ifndef SYS_epoll_pwait2
#define SYS_epoll_pwait2 kNoCall
#endif
#ifndef SYS_epoll_wait
#define SYS_epoll_wait kNoCall
#endif
#ifndef SYS_futex_waitv
#define SYS_futex_waitv kNoCall
#endif
#ifndef SYS_open
#define SYS_open kNoCall
#endif
#ifndef SYS_pause
#define SYS_pause kNoCall
#endif
#ifndef SYS_poll
#define SYS_poll kNoCall
#endif
#ifndef SYS_select
#define SYS_select kNoCall
#endif
#ifndef SYS_stat
#define SYS_stat kNoCall
#endif
#ifndef SYS_vfork
#define SYS_vfork kNoCall
#endif

// The system calls that tell something of a wait in them, by what they tell.
#define CALL(name, kind) \
  { SYS_##name, kind, #name }
constexpr CallRow kCalls[] = {
    CALL(futex, RS_WAIT_FUTEX),
    CALL(futex_waitv, RS_WAIT_FUTEX),
    CALL(semtimedop, RS_WAIT_FUTEX),
    CALL(semop, RS_WAIT_FUTEX),
    CALL(nanosleep, RS_WAIT_SLEEP),
    CALL(clock_nanosleep, RS_WAIT_SLEEP),
    CALL(pause, RS_WAIT_SLEEP),
    CALL(rt_sigtimedwait, RS_WAIT_OTHER),
    CALL(rt_sigsuspend, RS_WAIT_OTHER),
    CALL(flock, RS_WAIT_FILE_LOCK),
    CALL(fcntl, RS_CALL_FCNTL),
    CALL(wait4, RS_WAIT_CHILD),
    CALL(waitid, RS_WAIT_CHILD),
    CALL(vfork, RS_WAIT_CHILD),
    CALL(poll, RS_CALL_POLL),
    CALL(ppoll, RS_CALL_POLL),
    CALL(select, RS_CALL_SELECT),
    CALL(pselect6, RS_CALL_SELECT),
    CALL(epoll_wait, RS_WAIT_SOCKET),
    CALL(epoll_pwait, RS_WAIT_SOCKET),
    CALL(epoll_pwait2, RS_WAIT_SOCKET),
    CALL(io_uring_enter, RS_WAIT_SOCKET),
    CALL(msgrcv, RS_WAIT_SOCKET),
    CALL(msgsnd, RS_WAIT_SOCKET),
    CALL(mq_timedreceive, RS_WAIT_SOCKET),
    CALL(connect, RS_WAIT_SOCKET),
    CALL(accept, RS_WAIT_SOCKET),
    CALL(accept4, RS_WAIT_SOCKET),
    CALL(sendto, RS_WAIT_SOCKET),
    CALL(recvfrom, RS_WAIT_SOCKET),
    CALL(sendmsg, RS_WAIT_SOCKET),
    CALL(recvmsg, RS_WAIT_SOCKET),
    CALL(sendmmsg, RS_WAIT_SOCKET),
    CALL(recvmmsg, RS_WAIT_SOCKET),
    CALL(io_getevents, RS_WAIT_BLOCK),
    CALL(read, RS_CALL_FILE),
    CALL(write, RS_CALL_FILE),
    CALL(readv, RS_CALL_FILE),
    CALL(writev, RS_CALL_FILE),
    CALL(pread64, RS_CALL_FILE),
    CALL(pwrite64, RS_CALL_FILE),
    CALL(preadv, RS_CALL_FILE),
    CALL(pwritev, RS_CALL_FILE),
    CALL(preadv2, RS_CALL_FILE),
    CALL(pwritev2, RS_CALL_FILE),
    CALL(ioctl, RS_CALL_FILE),
    CALL(fsync, RS_CALL_FILE),
    CALL(fdatasync, RS_CALL_FILE),
    CALL(sync_file_range, RS_CALL_FILE),
    CALL(syncfs, RS_CALL_FILE),
    CALL(ftruncate, RS_CALL_FILE),
    CALL(fallocate, RS_CALL_FILE),
    CALL(fstat, RS_CALL_FILE),
    CALL(lseek, RS_CALL_FILE),
    CALL(getdents64, RS_CALL_FILE),
    CALL(close, RS_CALL_FILE),
    CALL(sendfile, RS_CALL_FILE),
    CALL(splice, RS_CALL_FILE),
    CALL(copy_file_range, RS_CALL_FILE),
    CALL(open, RS_CALL_OTHER),
    CALL(openat, RS_CALL_OTHER),
    CALL(stat, RS_CALL_OTHER),
    CALL(newfstatat, RS_CALL_OTHER),
    CALL(statx, RS_CALL_OTHER),
    CALL(unlinkat, RS_CALL_OTHER),
    CALL(mmap, RS_CALL_OTHER),
    CALL(munmap, RS_CALL_OTHER),
    CALL(msync, RS_CALL_OTHER),
    CALL(exit_group, RS_CALL_OTHER),
};
#undef CALL

const CallRow* FindCall(int32_t number) {
  const CallRow* const row = std::find_if(
      std::begin(kCalls), std::end(kCalls),
      [number](const CallRow& each) { return each.number != kNoCall && each.number == number; });
  return row != std::end(kCalls) ? row : nullptr;
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
  if (kind == "network_file" || kind == "fuse_file") return WaitClass::kNetworkFile;
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
  if (file_system.starts_with("fuse")) return "fuse_file";
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
